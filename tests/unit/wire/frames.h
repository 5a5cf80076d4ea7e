/* Frames for the wire's tests: deep copies of messages, so that each byte beyond a frame is the sanitizer's.
 */
#ifndef DP_TESTS_UNIT_WIRE_FRAMES_H
#define DP_TESTS_UNIT_WIRE_FRAMES_H

#include "common/wire/message.h"

#include <stdlib.h>

/* A copy of the message whose header has only `header_bytes` bytes. */
static inline struct dp_message *copy_cut(const struct dp_message *message, size_t header_bytes)
{
    struct dp_message *copy = dp_message_new(message->frames);
    for (uint32_t i = 0; copy && i < message->frames; i++)
        dp_message_add(copy,
                       dp_frame_copy(message->frame[i].data, i == 0 ? header_bytes : message->frame[i].size));
    return copy;
}

static inline struct dp_message *copy_of(const struct dp_message *message)
{
    return copy_cut(message, message->frame[0].size);
}

/* xorshift64*: the same bytes for the same seed everywhere. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1du;
}

/* 0 to 5 frames of 0 to 99 random bytes; the first is a mixture of small numbers, as headers are. */
static inline struct dp_message *random_message(uint64_t *state)
{
    uint32_t frames = (uint32_t)(next_random(state) % 6);
    struct dp_message *message = dp_message_new(frames);
    for (uint32_t i = 0; message && i < frames; i++) {
        struct dp_frame frame = dp_frame_new(next_random(state) % 100);
        for (size_t k = 0; k < frame.size; k++)
            ((unsigned char *)frame.data)[k] =
                (unsigned char)(next_random(state) >> (next_random(state) % 2 ? 56 : 60));
        dp_message_add(message, frame);
    }
    return message;
}

#endif
