/* Unpack: the bytes of a regular file, block by block, decompressed if its first bytes are those of gzip,
 * zstd, xz, bzip2 or zip.
 *     open -> (check_text) -> peek, next, next, ... -> close
 * Promise   Concatenated gzip members, zstd frames, or xz or bzip2 streams are read as one, as gzip(1) and
 *           the others do; a zip holds one file. Zeros after gzip or bzip2 data are padding. The end is
 *           reported only after the last member's or frame's own check (length, checksum) passed. Text in a
 *           named encoding is decoded to UTF-8.
 * Thread    One at a time.
 * Memory    Fixed buffers and the decoder's window (zstd: at most 128 MiB; xz: as the file requires),
 *           independent of the file's size. A block is lent until the next call.
 * Failure   DP_IO (cannot open or read, not a regular file), DP_DATA (truncated or corrupt stream, wrong
 *           encoding), DP_ARGUMENT (no such encoding), DP_NOMEM; the text names the file. */
#ifndef DP_READ_UNPACK_H
#define DP_READ_UNPACK_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct dp_unpack;

enum dp_status dp_unpack_open(const char *path, struct dp_unpack **out, struct dp_error *err);
/* The same of a text in this encoding; NULL: as it is. */
enum dp_status dp_unpack_open_text(const char *path, const char *encoding, struct dp_unpack **out,
                                   struct dp_error *err);
/* DP_IO unless a file of this st_mode can be read: a device may have no end. */
enum dp_status dp_unpack_check_kind(const char *path, mode_t mode, struct dp_error *err);
/* From now on next refuses what is no UTF-8, by line. */
void dp_unpack_check_text(struct dp_unpack *unpack);
void dp_unpack_close(struct dp_unpack **unpack); /* accepts NULL inside, leaves NULL */
/* Lends the next block; *len == 0 at the end. */
enum dp_status dp_unpack_next(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err);
/* Lends the block that the following dp_unpack_next lends again. */
enum dp_status dp_unpack_peek(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err);
/* Bytes of a file, on the heap, from its begin: {0}, then the caller's to free. */
struct dp_unpack_bytes {
    unsigned char *at;
    uint64_t len, room;
};
/* Reads until there are `wanted` bytes, or the file ends. Memory grows with the bytes that come. */
enum dp_status dp_unpack_read(struct dp_unpack *unpack, uint64_t wanted, struct dp_unpack_bytes *bytes,
                              struct dp_error *err);
/* The path as it was opened. */
const char *dp_unpack_name(const struct dp_unpack *unpack);

#endif
