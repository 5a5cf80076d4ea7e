/* Message: an ordered list of frames (bytes and the function that frees them), as it comes from or goes to a
 * socket. Nothing here knows ZeroMQ: the net room fills and drains messages without copying, tests make
 * their own.
 * Memory    A message owns its frames; a frame's bytes live until dp_frame_release. A message that is
 *           handed on (struct dp_message **) is set to NULL.
 * Thread    None is shared: a message belongs to one thread at a time. release may run on another thread
 *           (ZeroMQ's). */
#ifndef DP_WIRE_MESSAGE_H
#define DP_WIRE_MESSAGE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

struct dp_frame {
    void *data; /* of any alignment */
    size_t size;
    void (*release)(void *data, void *owner); /* NULL: nothing to free */
    void *owner;
};

struct dp_message {
    uint32_t frames, room;
    struct dp_frame frame[];
};

/* Where a reply goes: the routing id that the socket gave the peer. link: the socket's own note of its connection, 0: none. */
struct dp_peer {
    uint8_t size;
    unsigned char id[15];
    uint32_t link;
};

/* NULL: out of memory. `room`: frames it can hold. */
struct dp_message *dp_message_new(uint32_t room);
void dp_message_free(struct dp_message **message); /* releases the frames; accepts NULL inside */
/* Appends a frame; takes it over. There must be room. */
void dp_message_add(struct dp_message *message, struct dp_frame frame);
/* Heap bytes that free() releases; data NULL: out of memory. Not zero-filled. */
struct dp_frame dp_frame_new(size_t size);
/* A copy of bytes. */
struct dp_frame dp_frame_copy(const void *bytes, size_t size);
void dp_frame_release(struct dp_frame *frame);
size_t dp_message_bytes(const struct dp_message *message);

#endif
