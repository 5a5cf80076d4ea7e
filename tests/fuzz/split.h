/* Split: a fuzzer's bytes as a message: u16 length, frame, u16 length, frame, ...; the last takes what is
 * left. Each frame is its own heap block, so that a read past its end is the sanitizer's. */
#ifndef DP_TESTS_FUZZ_SPLIT_H
#define DP_TESTS_FUZZ_SPLIT_H

#include "common/wire/limits.h"
#include "common/wire/message.h"

static inline struct dp_message *split_message(const uint8_t *bytes, size_t size)
{
    struct dp_message *message = dp_message_new(DP_FRAMES_MAX + 1);
    while (message && size >= 2 && message->frames <= DP_FRAMES_MAX) {
        size_t length = bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        size -= 2;
        length = length < size ? length : size;
        dp_message_add(message, dp_frame_copy(bytes, length));
        bytes += length;
        size -= length;
    }
    return message;
}

#endif
