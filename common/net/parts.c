#include "common/net/parts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

/* Below this a copy is cheaper than a block of ZeroMQ's that counts references. */
#define COPY_MAX 512u

/* A received part lives where ZeroMQ put it; small ones inside zmq_msg_t itself, so it must not move. */
struct parts_held {
    zmq_msg_t part;
};

static void release_held(void *data, void *owner)
{
    struct parts_held *held = owner;
    (void)data;
    (void)zmq_msg_close(&held->part);
    free(held);
}

/* A frame's, with its header: flags and a length of one byte, or of eight. */
static uint64_t wire_bytes(size_t size)
{
    return size + (size <= 255 ? 2 : 9);
}

/* 0, or the error. Parts behind the first are there once the first is: messages arrive whole. */
static int receive_part(void *socket, zmq_msg_t *part, struct dp_parts_taken *taken)
{
    for (;;) {
        if (zmq_msg_recv(part, socket, ZMQ_DONTWAIT) >= 0) {
            taken->wire_bytes += wire_bytes(zmq_msg_size(part));
            if (taken->fd < 0) /* not of a ROUTER's own first part, which does not always have it */
                taken->fd = zmq_msg_get(part, ZMQ_SRCFD);
            return 0;
        }
        if (errno != EINTR)
            return errno;
    }
}

void dp_parts_drain(void *socket, struct dp_parts_taken *taken)
{
    zmq_msg_t part;
    bool more = true;
    while (more) {
        (void)zmq_msg_init(&part);
        more = receive_part(socket, &part, taken) == 0 && zmq_msg_more(&part);
        (void)zmq_msg_close(&part);
    }
}

static enum dp_status receive_frame(void *socket, struct dp_frame *out, bool *more,
                                    struct dp_parts_taken *taken)
{
    struct parts_held *held = malloc(sizeof *held);
    *more = true; /* what cannot be held is left in the socket: drained by the caller */
    if (!held)
        return DP_NOMEM;
    (void)zmq_msg_init(&held->part);
    if (receive_part(socket, &held->part, taken) != 0) {
        free(held);
        return DP_AGAIN;
    }
    *more = zmq_msg_more(&held->part) != 0;
    *out = (struct dp_frame){zmq_msg_data(&held->part), zmq_msg_size(&held->part), release_held, held};
    return DP_OK;
}

enum dp_status dp_parts_receive(void *socket, struct dp_message **out, struct dp_parts_taken *taken)
{
    struct dp_frame frames[DP_FRAMES_MAX];
    uint32_t n = 0;
    size_t bytes = 0;
    bool more = true;
    enum dp_status st = DP_OK;
    while (more && st == DP_OK) {
        st = n < DP_FRAMES_MAX ? receive_frame(socket, &frames[n], &more, taken) : DP_INVALID;
        if (st != DP_OK)
            break;
        bytes += frames[n++].size;
        if (bytes > DP_MESSAGE_BYTES_MAX)
            st = DP_INVALID;
    }
    *out = st == DP_OK ? dp_message_new(n) : NULL;
    if (st == DP_OK && !*out)
        st = DP_NOMEM;
    if (st == DP_OK) {
        for (uint32_t i = 0; i < n; i++)
            dp_message_add(*out, frames[i]);
        return DP_OK;
    }
    for (uint32_t i = 0; i < n; i++)
        dp_frame_release(&frames[i]);
    if (more && st != DP_AGAIN)
        dp_parts_drain(socket, taken);
    return st;
}

/* A frame whose bytes count against its peer's quota. */
struct counted {
    struct dp_frame frame;
    struct dp_send_quota *quota;
};

static void release_counted(void *data, void *owner)
{
    struct counted counted = *(struct counted *)owner;
    size_t bytes = counted.frame.size;
    (void)data;
    free(owner);
    dp_frame_release(&counted.frame);
    dp_send_quota_back(counted.quota, bytes);
}

static bool give_counted(struct dp_frame *frame, struct dp_send_quota *quota, zmq_msg_t *part)
{
    struct counted *counted = malloc(sizeof *counted);
    if (!counted)
        return false;
    *counted = (struct counted){*frame, quota};
    if (zmq_msg_init_data(part, frame->data, frame->size, release_counted, counted) != 0) {
        free(counted);
        return false;
    }
    dp_send_quota_give(quota, frame->size);
    *frame = (struct dp_frame){0};
    return true;
}

/* Takes a large frame over; one that was copied stays the message's. A frame without a release is copied: its
 * bytes are lent for the call only, and a part may outlive it. */
static bool make_part(struct dp_frame *frame, struct dp_send_quota *quota, zmq_msg_t *part)
{
    if (frame->size > COPY_MAX && quota) {
        if (!frame->release)
            *frame = dp_frame_copy(frame->data, frame->size);
        return frame->data && give_counted(frame, quota, part);
    }
    if (frame->size > COPY_MAX && frame->release) {
        if (zmq_msg_init_data(part, frame->data, frame->size, frame->release, frame->owner) != 0)
            return false;
        *frame = (struct dp_frame){0};
        return true;
    }
    if (zmq_msg_init_size(part, frame->size) != 0)
        return false;
    if (frame->size > 0)
        memcpy(zmq_msg_data(part), frame->data, frame->size);
    return true;
}

size_t dp_parts_counted(const struct dp_message *message)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < message->frames; i++)
        bytes += message->frame[i].size > COPY_MAX ? message->frame[i].size : 0;
    return bytes;
}

/* False: the part did not go, and is closed. */
static bool send_part(void *socket, zmq_msg_t *part, bool more)
{
    for (;;) {
        if (zmq_msg_send(part, socket, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) >= 0)
            return true;
        if (errno == EINTR)
            continue;
        (void)zmq_msg_close(part);
        return false;
    }
}

static bool send_to(void *socket, const struct dp_peer *to)
{
    zmq_msg_t id;
    if (zmq_msg_init_size(&id, to->size) != 0)
        return false;
    memcpy(zmq_msg_data(&id), to->id, to->size);
    return send_part(socket, &id, true);
}

enum dp_status dp_parts_send(void *socket, const struct dp_peer *to, struct dp_send_quota *quota,
                             struct dp_message **message)
{
    zmq_msg_t parts[DP_FRAMES_MAX];
    uint32_t n = (*message)->frames, made = 0, at = 0;
    DP_ASSERT(n >= 1 && n <= DP_FRAMES_MAX);
    /* All parts before the first goes: running out of memory between two would tear the message. */
    while (made < n && make_part(&(*message)->frame[made], quota, &parts[made]))
        made++;
    dp_message_free(message);
    bool sent = made == n && (!to || send_to(socket, to));
    if (sent) {
        sent = send_part(socket, &parts[at++], n > 1);
        /* When the peer goes away in the middle, ZeroMQ takes back the parts before and wants to be given
         * the ones behind, to drop them; only then does the next message begin. */
        bool begun = sent;
        while (begun && at < n) {
            sent = send_part(socket, &parts[at], at + 1 < n) && sent;
            at++;
        }
    }
    while (at < made)
        (void)zmq_msg_close(&parts[at++]);
    return sent ? DP_OK : DP_UNAVAILABLE;
}
