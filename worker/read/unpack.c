#include "worker/read/unpack.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define BLOCK ((size_t)256 << 10)

#define XZ_MEMORY_MAX (UINT64_C(512) << 20) /* xz -9 takes 65 MiB */

enum packing { PLAIN, GZIP, ZSTD, XZ, BZIP2 };

static const char *const packing_names[] = {"", "gzip", "zstd", "xz", "bzip2"};

struct dp_unpack {
    char *path;
    int fd;
    enum packing packing;
    bool packed_end;  /* the file is read to its end */
    bool between;     /* the decoder is between members or frames, where the file may end */
    bool peeked;      /* next returns the block in `lent` */
    bool begun;       /* a block was lent, so the next is not the start of the text */
    uint64_t read_at; /* packed bytes read so far, for messages */
    z_stream gzip;
    ZSTD_DCtx *zstd;
    lzma_stream xz;
    bz_stream bzip2;
    bool bzip2_open;
    const unsigned char *lent;
    size_t lent_len;
    size_t in_at, in_len; /* the part of `in` that is not decoded yet */
    unsigned char in[BLOCK], out[BLOCK];
};

/* Fills `in` from its start until it is full or the file ends, so that a short read means the end. */
static enum dp_status read_in(struct dp_unpack *unpack, struct dp_error *err)
{
    unpack->in_at = unpack->in_len = 0;
    while (unpack->in_len < BLOCK && !unpack->packed_end) {
        ssize_t n = read(unpack->fd, unpack->in + unpack->in_len, BLOCK - unpack->in_len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dp_fail(err, DP_IO, "%s: cannot read at byte %" PRIu64 ": %s", unpack->path,
                           unpack->read_at, strerror(errno));
        unpack->packed_end = n == 0;
        unpack->in_len += (size_t)n;
        unpack->read_at += (uint64_t)n;
    }
    return DP_OK;
}

static enum packing packing_of(const unsigned char *bytes, size_t len)
{
    if (len >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return GZIP;
    if (len >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0)
        return ZSTD;
    /* A skippable frame: parallel and seekable compressors may put one first. */
    if (len >= 4 && (bytes[0] & 0xf0) == 0x50 && memcmp(bytes + 1, "\x2a\x4d\x18", 3) == 0)
        return ZSTD;
    if (len >= 6 && memcmp(bytes, "\xfd\x37zXZ\0", 6) == 0)
        return XZ;
    /* "BZh", a digit, and as much as there is of a block's or the end's magic number. */
    size_t mark = len < 10 ? len - 4 : 6;
    if (len >= 4 && memcmp(bytes, "BZh", 3) == 0 && bytes[3] >= '1' && bytes[3] <= '9' &&
        (memcmp(bytes + 4, "1AY&SY", mark) == 0 || memcmp(bytes + 4, "\x17rE8P\x90", mark) == 0))
        return BZIP2;
    return PLAIN;
}

static enum dp_status decoder_open(struct dp_unpack *unpack, struct dp_error *err)
{
    if (unpack->packing == GZIP && inflateInit2(&unpack->gzip, 15 + 16) != Z_OK)
        return dp_fail(err, DP_NOMEM, "%s: no memory for a gzip decoder", unpack->path);
    if (unpack->packing == ZSTD && !(unpack->zstd = ZSTD_createDCtx()))
        return dp_fail(err, DP_NOMEM, "%s: no memory for a zstd decoder", unpack->path);
    if (unpack->packing == XZ &&
        lzma_stream_decoder(&unpack->xz, XZ_MEMORY_MAX, LZMA_CONCATENATED) != LZMA_OK)
        return dp_fail(err, DP_NOMEM, "%s: no memory for an xz decoder", unpack->path);
    unpack->bzip2_open = unpack->packing == BZIP2 && BZ2_bzDecompressInit(&unpack->bzip2, 0, 0) == BZ_OK;
    if (unpack->packing == BZIP2 && !unpack->bzip2_open)
        return dp_fail(err, DP_NOMEM, "%s: no memory for a bzip2 decoder", unpack->path);
    return DP_OK;
}

enum dp_status dp_unpack_open(const char *path, struct dp_unpack **out, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct stat info;
    struct dp_unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack || !(unpack->path = strdup(path))) {
        free(unpack);
        return dp_fail(err, DP_NOMEM, "%s: no memory to read it", path);
    }
    /* Without O_NONBLOCK the open of a pipe would wait for its writer, without a deadline. */
    unpack->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (unpack->fd < 0 || fstat(unpack->fd, &info) != 0) {
        st = dp_fail(err, DP_IO, "%s: cannot open: %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(info.st_mode)) {
        st = dp_fail(err, DP_IO, "%s: is not a regular file: write the data into one", path);
        goto done;
    }
    st = read_in(unpack, err);
    if (st != DP_OK)
        goto done;
    unpack->packing = packing_of(unpack->in, unpack->in_len);
    st = decoder_open(unpack, err);
done:
    if (st != DP_OK)
        dp_unpack_close(&unpack);
    *out = unpack;
    return st;
}

void dp_unpack_close(struct dp_unpack **unpack)
{
    struct dp_unpack *u = *unpack;
    if (!u)
        return;
    if (u->packing == GZIP)
        (void)inflateEnd(&u->gzip);
    (void)ZSTD_freeDCtx(u->zstd);
    lzma_end(&u->xz);
    if (u->bzip2_open)
        (void)BZ2_bzDecompressEnd(&u->bzip2);
    if (u->fd >= 0)
        (void)close(u->fd);
    free(u->path);
    free(u);
    *unpack = NULL;
}

/* Calls the decoder once; *made: the bytes written to `out`. */
static enum dp_status inflate_some(struct dp_unpack *unpack, size_t *made, struct dp_error *err)
{
    z_stream *z = &unpack->gzip;
    if (unpack->between && inflateReset(z) != Z_OK)
        return dp_fail(err, DP_INTERNAL, "%s: cannot restart the gzip decoder", unpack->path);
    unpack->between = false;
    z->next_in = unpack->in + unpack->in_at;
    z->avail_in = (uInt)(unpack->in_len - unpack->in_at);
    z->next_out = unpack->out;
    z->avail_out = (uInt)BLOCK;
    int rc = inflate(z, Z_NO_FLUSH);
    unpack->in_at = unpack->in_len - z->avail_in;
    *made = BLOCK - z->avail_out;
    if (rc == Z_STREAM_END)
        unpack->between = true;
    else if (rc == Z_MEM_ERROR)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its gzip window", unpack->path);
    else if (rc != Z_OK && rc != Z_BUF_ERROR)
        return dp_fail(err, DP_DATA, "%s: gzip stream is corrupt before packed byte %" PRIu64 ": %s",
                       unpack->path, unpack->read_at - (unpack->in_len - unpack->in_at),
                       z->msg ? z->msg : "bad stream");
    return DP_OK;
}

static enum dp_status zstd_some(struct dp_unpack *unpack, size_t *made, struct dp_error *err)
{
    ZSTD_inBuffer in = {unpack->in, unpack->in_len, unpack->in_at};
    ZSTD_outBuffer out = {unpack->out, BLOCK, 0};
    size_t rc = ZSTD_decompressStream(unpack->zstd, &out, &in);
    unpack->in_at = in.pos;
    *made = out.pos;
    if (!ZSTD_isError(rc)) {
        unpack->between = rc == 0;
        return DP_OK;
    }
    if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its zstd window", unpack->path);
    if (ZSTD_getErrorCode(rc) == ZSTD_error_frameParameter_windowTooLarge)
        return dp_fail(
            err, DP_DATA,
            "%s: the zstd window is over 128 MiB: compress the file again without --long or --ultra",
            unpack->path);
    return dp_fail(err, DP_DATA, "%s: zstd stream is corrupt before packed byte %" PRIu64 ": %s",
                   unpack->path, unpack->read_at - (unpack->in_len - unpack->in_at), ZSTD_getErrorName(rc));
}

static uint64_t packed_at(const struct dp_unpack *unpack)
{
    return unpack->read_at - (unpack->in_len - unpack->in_at);
}

/* The decoder itself handles concatenated streams and the padding between them; only at the end of the file
 * does it report that they are complete. */
static enum dp_status xz_some(struct dp_unpack *unpack, size_t *made, struct dp_error *err)
{
    lzma_stream *xz = &unpack->xz;
    xz->next_in = unpack->in + unpack->in_at;
    xz->avail_in = unpack->in_len - unpack->in_at;
    xz->next_out = unpack->out;
    xz->avail_out = BLOCK;
    lzma_ret rc = lzma_code(xz, unpack->packed_end ? LZMA_FINISH : LZMA_RUN);
    unpack->in_at = unpack->in_len - xz->avail_in;
    *made = BLOCK - xz->avail_out;
    unpack->between = rc == LZMA_STREAM_END;
    if (rc == LZMA_OK || rc == LZMA_STREAM_END || rc == LZMA_BUF_ERROR)
        return DP_OK;
    if (rc == LZMA_MEM_ERROR)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its xz dictionary", unpack->path);
    if (rc == LZMA_MEMLIMIT_ERROR)
        return dp_fail(
            err, DP_DATA,
            "%s: the xz dictionary takes over 512 MiB: compress the file again with a smaller one (xz -9)",
            unpack->path);
    return dp_fail(err, DP_DATA, "%s: xz stream is corrupt before packed byte %" PRIu64, unpack->path,
                   packed_at(unpack));
}

static enum dp_status bzip2_some(struct dp_unpack *unpack, size_t *made, struct dp_error *err)
{
    bz_stream *z = &unpack->bzip2;
    if (unpack->between) {
        (void)BZ2_bzDecompressEnd(z);
        *z = (bz_stream){0};
        unpack->bzip2_open = BZ2_bzDecompressInit(z, 0, 0) == BZ_OK;
        if (!unpack->bzip2_open)
            return dp_fail(err, DP_NOMEM, "%s: no memory for a bzip2 decoder", unpack->path);
    }
    unpack->between = false;
    z->next_in = (char *)unpack->in + unpack->in_at;
    z->avail_in = (unsigned)(unpack->in_len - unpack->in_at);
    z->next_out = (char *)unpack->out;
    z->avail_out = (unsigned)BLOCK;
    int rc = BZ2_bzDecompress(z);
    unpack->in_at = unpack->in_len - z->avail_in;
    *made = BLOCK - z->avail_out;
    unpack->between = rc == BZ_STREAM_END;
    if (rc == BZ_OK || rc == BZ_STREAM_END)
        return DP_OK;
    if (rc == BZ_MEM_ERROR)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its bzip2 blocks", unpack->path);
    return dp_fail(err, DP_DATA, "%s: bzip2 stream is corrupt before packed byte %" PRIu64, unpack->path,
                   packed_at(unpack));
}

static enum dp_status decode_some(struct dp_unpack *unpack, size_t *made, struct dp_error *err)
{
    switch (unpack->packing) {
    case GZIP:
        return inflate_some(unpack, made, err);
    case ZSTD:
        return zstd_some(unpack, made, err);
    case XZ:
        return xz_some(unpack, made, err);
    case BZIP2:
    case PLAIN:
        break;
    }
    return bzip2_some(unpack, made, err);
}

/* Decodes until there is something to lend, or the complete file has ended. */
static enum dp_status decode(struct dp_unpack *unpack, struct dp_error *err)
{
    for (;;) {
        if (unpack->in_at == unpack->in_len && !unpack->packed_end) {
            enum dp_status st = read_in(unpack, err);
            if (st != DP_OK)
                return st;
        }
        bool starved = unpack->in_at == unpack->in_len;
        if (starved && unpack->between)
            return DP_OK;
        /* Without input the decoder may still hold output that did not fit. */
        size_t made = 0;
        enum dp_status st = decode_some(unpack, &made, err);
        if (st != DP_OK)
            return st;
        if (made > 0) {
            unpack->lent = unpack->out;
            unpack->lent_len = made;
            return DP_OK;
        }
        if (starved && !unpack->between)
            return dp_fail(err, DP_DATA,
                           "%s: %s stream is truncated: the file ends at packed byte %" PRIu64
                           " in the middle of it; fetch it again",
                           unpack->path, packing_names[unpack->packing], unpack->read_at);
    }
}

/* The next block; 0 bytes at the end. */
static enum dp_status next_block(struct dp_unpack *unpack, struct dp_error *err)
{
    unpack->lent_len = 0;
    if (unpack->packing != PLAIN)
        return decode(unpack, err);
    if (unpack->in_at == unpack->in_len && !unpack->packed_end) {
        enum dp_status st = read_in(unpack, err);
        if (st != DP_OK)
            return st;
    }
    unpack->lent = unpack->in + unpack->in_at;
    unpack->lent_len = unpack->in_len - unpack->in_at;
    unpack->in_at = unpack->in_len;
    return DP_OK;
}

/* Skips a UTF-8 byte order mark at the start, which is not data. */
static enum dp_status skip_mark(struct dp_unpack *unpack, struct dp_error *err)
{
    bool marked = !unpack->begun && unpack->lent_len >= 3 && memcmp(unpack->lent, "\xef\xbb\xbf", 3) == 0;
    unpack->begun = true;
    if (!marked)
        return DP_OK;
    unpack->lent += 3;
    unpack->lent_len -= 3;
    /* An empty block would mean the end. */
    return unpack->lent_len == 0 ? next_block(unpack, err) : DP_OK;
}

enum dp_status dp_unpack_peek(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err)
{
    if (!unpack->peeked) {
        enum dp_status st = next_block(unpack, err);
        if (st == DP_OK)
            st = skip_mark(unpack, err);
        if (st != DP_OK)
            return st;
        unpack->peeked = true;
    }
    *bytes = unpack->lent;
    *len = unpack->lent_len;
    return DP_OK;
}

enum dp_status dp_unpack_next(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err)
{
    enum dp_status st = dp_unpack_peek(unpack, bytes, len, err);
    unpack->peeked = false;
    return st;
}

const char *dp_unpack_name(const struct dp_unpack *unpack)
{
    return unpack->path;
}
