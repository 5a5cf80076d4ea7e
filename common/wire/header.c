#include "common/wire/header.h"

#include <stdbool.h>
#include <string.h>

/* Field numbers that both oneofs, request's and reply's, keep for bodies. */
#define BODY_FIRST 10u
#define BODY_LAST  29u

struct header_cursor {
    const unsigned char *at, *end;
};

static bool read_varint(struct header_cursor *cursor, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
        unsigned char byte = *cursor->at++;
        value |= (uint64_t)(byte & 0x7fu) << shift;
        if (!(byte & 0x80u)) {
            *out = value;
            return true;
        }
    }
    return false;
}

static bool skip(struct header_cursor *cursor, uint64_t bytes)
{
    if (bytes > (uint64_t)(cursor->end - cursor->at))
        return false;
    cursor->at += bytes;
    return true;
}

static bool skip_field(struct header_cursor *cursor, unsigned wire_type)
{
    uint64_t value = 0;
    switch (wire_type) {
    case 0:
        return read_varint(cursor, &value);
    case 1:
        return skip(cursor, 8);
    case 2:
        return read_varint(cursor, &value) && skip(cursor, value);
    case 5:
        return skip(cursor, 4);
    default:
        return false;
    }
}

/* Whether the top level is sound and has one body at most. Protobuf merges a body that comes again into the
 * first, copying its lists each time: the time would grow with the square of the header. */
static bool is_sound(const unsigned char *bytes, size_t size)
{
    struct header_cursor cursor = {bytes, bytes + size};
    unsigned bodies = 0;
    while (cursor.at < cursor.end) {
        uint64_t tag = 0;
        if (!read_varint(&cursor, &tag) || !skip_field(&cursor, (unsigned)(tag & 7u)))
            return false;
        bodies += tag >> 3 >= BODY_FIRST && tag >> 3 <= BODY_LAST;
    }
    return bodies <= 1;
}

enum dp_status dp_header_unpack(const struct dp_message *message,
                                const ProtobufCMessageDescriptor *descriptor, const char *what,
                                size_t bytes_max, ProtobufCMessage **out, struct dp_error *err)
{
    *out = NULL;
    if (message->frames == 0)
        return dp_fail(err, DP_INVALID, "empty message: a %s has a header frame", what);
    if (message->frames > DP_FRAMES_MAX)
        return dp_fail(err, DP_INVALID, "%s of %u frames, the limit is %u", what, message->frames,
                       DP_FRAMES_MAX);
    size_t size = message->frame[0].size;
    if (size == 0 || size > bytes_max)
        return dp_fail(err, DP_INVALID, "header of a %s has %zu bytes, expected 1 to %zu", what, size,
                       bytes_max);
    if (is_sound(message->frame[0].data, size))
        *out = protobuf_c_message_unpack(descriptor, NULL, size, message->frame[0].data);
    if (!*out)
        return dp_fail(err, DP_INVALID, "header of %zu bytes is not a %s of downpour.proto", size, what);
    return DP_OK;
}

enum dp_status dp_header_pack(const ProtobufCMessage *header, const char *what, size_t bytes_max,
                              struct dp_frame *frames, uint32_t frame_count, struct dp_message **out,
                              struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct dp_frame first = {0};
    size_t size = protobuf_c_message_get_packed_size(header);
    *out = NULL;
    if (frame_count >= DP_FRAMES_MAX) {
        st = dp_fail(err, DP_ARGUMENT, "%s of %u frames, the limit is %u", what, frame_count + 1,
                     DP_FRAMES_MAX);
        goto done;
    }
    for (uint32_t i = 0; i < frame_count; i++)
        if (frames[i].size > DP_FRAME_BYTES_MAX) {
            st = dp_fail(err, DP_ARGUMENT, "frame %u of a %s has %zu bytes, the limit is %u", i + 1, what,
                         frames[i].size, DP_FRAME_BYTES_MAX);
            goto done;
        }
    if (size > bytes_max) {
        st = dp_fail(err, DP_ARGUMENT, "header of a %s has %zu bytes, the limit is %zu", what, size,
                     bytes_max);
        goto done;
    }
    first = dp_frame_new(size);
    *out = dp_message_new(1 + frame_count);
    if (!first.data || !*out) {
        dp_frame_release(&first);
        dp_message_free(out);
        st = dp_fail(err, DP_NOMEM, "out of memory for a %s of %u frames", what, 1 + frame_count);
        goto done;
    }
    (void)protobuf_c_message_pack(header, first.data);
    dp_message_add(*out, first);
    for (uint32_t i = 0; i < frame_count; i++) {
        dp_message_add(*out, frames[i]);
        frames[i] = (struct dp_frame){0};
    }
done:
    if (st != DP_OK)
        for (uint32_t i = 0; i < frame_count; i++)
            dp_frame_release(&frames[i]);
    return st;
}

enum dp_status dp_header_name(const char *field, const char *name, size_t len_min, size_t len_max, char *out,
                              struct dp_error *err)
{
    size_t len = strnlen(name, len_max + 1);
    if (len < len_min || len > len_max)
        return dp_fail(err, DP_INVALID, "%s: expected %zu to %zu bytes", field, len_min, len_max);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return dp_fail(err, DP_INVALID, "%s: byte %zu is a control character", field, i);
    memcpy(out, name, len);
    out[len] = '\0';
    return DP_OK;
}
