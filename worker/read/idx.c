#include "worker/read/idx.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_IMAGES 0x00000803u /* unsigned bytes, 3 dimensions */
#define MAGIC_LABELS 0x00000801u /* unsigned bytes, 1 dimension */
#define GROW         ((size_t)1 << 20)

/* A place in the decoded bytes of a file. */
struct idx_cursor {
    struct dp_unpack *unpack;
    const unsigned char *bytes;
    size_t len;
    uint64_t position;
};

/* Lends 1 to `most` bytes; *len == 0 is the end of the file. */
static enum dp_status cursor_lend(struct idx_cursor *c, uint64_t most, const unsigned char **bytes,
                                  size_t *len, struct dp_error *err)
{
    if (c->len == 0) {
        enum dp_status st = dp_unpack_next(c->unpack, &c->bytes, &c->len, err);
        if (st != DP_OK)
            return st;
    }
    *bytes = c->bytes;
    *len = c->len < most ? c->len : (size_t)most;
    c->bytes += *len;
    c->len -= *len;
    c->position += *len;
    return DP_OK;
}

static enum dp_status ends_early(const struct idx_cursor *c, const char *what, uint64_t expected,
                                 struct dp_error *err)
{
    return dp_fail(err, DP_DATA, "%s: byte %" PRIu64 ": file ends, expected %s up to byte %" PRIu64,
                   dp_unpack_name(c->unpack), c->position, what, expected);
}

static enum dp_status read_u32(struct idx_cursor *c, uint32_t *out, struct dp_error *err)
{
    unsigned char word[4];
    uint64_t end = c->position + sizeof word;
    for (size_t have = 0; have < sizeof word;) {
        const unsigned char *bytes;
        size_t len;
        enum dp_status st = cursor_lend(c, sizeof word - have, &bytes, &len, err);
        if (st != DP_OK)
            return st;
        if (len == 0)
            return ends_early(c, "an idx header", end, err);
        memcpy(word + have, bytes, len);
        have += len;
    }
    *out = dp_load_u32be(word);
    return DP_OK;
}

/* The rest of the file: exactly `len` bytes. */
static enum dp_status read_rest(struct idx_cursor *c, uint64_t len, const char *what, uint8_t **out,
                                struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint8_t *block = NULL;
    uint64_t have = 0, room = 0, end = c->position + len;
    const unsigned char *bytes;
    size_t part;
    while (have < len) {
        st = cursor_lend(c, len - have, &bytes, &part, err);
        if (st == DP_OK && part == 0)
            st = ends_early(c, what, end, err);
        if (st != DP_OK)
            goto done;
        if (part > room - have) {
            room = room * 2 > have + part + GROW ? room * 2 : have + part + GROW;
            room = room < len ? room : len;
            uint8_t *grown = realloc(block, room);
            if (!grown) {
                st = dp_fail(err, DP_NOMEM, "%s: no memory for %" PRIu64 " bytes of %s",
                             dp_unpack_name(c->unpack), room, what);
                goto done;
            }
            block = grown;
        }
        memcpy(block + have, bytes, part);
        have += part;
    }
    st = cursor_lend(c, 1, &bytes, &part, err);
    if (st == DP_OK && part != 0)
        st = dp_fail(err, DP_DATA, "%s: byte %" PRIu64 ": expected the end of the file after the %s",
                     dp_unpack_name(c->unpack), end, what);
done:
    if (st != DP_OK) {
        free(block);
        block = NULL;
    }
    *out = block;
    return st;
}

static enum dp_status read_magic(struct idx_cursor *c, uint32_t magic, const char *what, struct dp_error *err)
{
    uint32_t found;
    enum dp_status st = read_u32(c, &found, err);
    if (st == DP_OK && found != magic)
        st = dp_fail(err, DP_DATA, "%s: byte 0: expected the magic number 0x%08x of %s, found 0x%08x",
                     dp_unpack_name(c->unpack), magic, what, found);
    return st;
}

enum dp_status dp_idx_read_images(struct dp_unpack *unpack, struct dp_idx_images *out, struct dp_error *err)
{
    struct idx_cursor c = {.unpack = unpack};
    *out = (struct dp_idx_images){0};
    enum dp_status st = read_magic(&c, MAGIC_IMAGES, "idx3 images of bytes", err);
    if (st == DP_OK)
        st = read_u32(&c, &out->count, err);
    if (st == DP_OK)
        st = read_u32(&c, &out->rows, err);
    if (st == DP_OK)
        st = read_u32(&c, &out->columns, err);
    if (st != DP_OK)
        return st;
    uint64_t width = (uint64_t)out->rows * out->columns;
    if (out->count == 0)
        return dp_fail(err, DP_DATA, "%s: byte 4: expected at least one image, found 0",
                       dp_unpack_name(unpack));
    if (width == 0 || width > INT32_MAX)
        return dp_fail(err, DP_DATA,
                       "%s: byte 8: expected images of 1 to 2147483647 pixels, found %" PRIu32 " x %" PRIu32,
                       dp_unpack_name(unpack), out->rows, out->columns);
    return read_rest(&c, out->count * width, "images", &out->pixels, err);
}

enum dp_status dp_idx_read_labels(struct dp_unpack *unpack, uint32_t count, uint8_t **out,
                                  struct dp_error *err)
{
    struct idx_cursor c = {.unpack = unpack};
    uint32_t found = 0;
    *out = NULL;
    enum dp_status st = read_magic(&c, MAGIC_LABELS, "idx1 labels of bytes", err);
    if (st == DP_OK)
        st = read_u32(&c, &found, err);
    if (st == DP_OK && found != count)
        st = dp_fail(err, DP_DATA, "%s: byte 4: expected %" PRIu32 " labels, one an image, found %" PRIu32,
                     dp_unpack_name(unpack), count, found);
    return st == DP_OK ? read_rest(&c, count, "labels", out, err) : st;
}
