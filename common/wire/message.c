#include "common/wire/message.h"

#include <stdlib.h>
#include <string.h>

struct dp_message *dp_message_new(uint32_t room)
{
    struct dp_message *message = malloc(sizeof *message + room * sizeof message->frame[0]);
    if (!message)
        return NULL;
    message->frames = 0;
    message->room = room;
    return message;
}

void dp_message_free(struct dp_message **message)
{
    if (!*message)
        return;
    for (uint32_t i = 0; i < (*message)->frames; i++)
        dp_frame_release(&(*message)->frame[i]);
    free(*message);
    *message = NULL;
}

void dp_message_add(struct dp_message *message, struct dp_frame frame)
{
    DP_ASSERT(message->frames < message->room);
    message->frame[message->frames++] = frame;
}

static void release_heap(void *data, void *owner)
{
    (void)owner;
    free(data);
}

struct dp_frame dp_frame_new(size_t size)
{
    /* One byte at least, so that NULL always means out of memory. */
    struct dp_frame frame = {.data = malloc(size ? size : 1), .size = size, .release = release_heap};
    if (!frame.data)
        frame = (struct dp_frame){0};
    return frame;
}

struct dp_frame dp_frame_copy(const void *bytes, size_t size)
{
    struct dp_frame frame = dp_frame_new(size);
    if (frame.data && size > 0)
        memcpy(frame.data, bytes, size);
    return frame;
}

void dp_frame_release(struct dp_frame *frame)
{
    if (frame->release)
        frame->release(frame->data, frame->owner);
    *frame = (struct dp_frame){0};
}

size_t dp_message_bytes(const struct dp_message *message)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < message->frames; i++)
        bytes += message->frame[i].size;
    return bytes;
}
