/* Checksum: BLAKE2b-128 (RFC 7693) of a file's bytes, in 32 hex digits.
 *     begin -> put ... -> end
 * Thread    Any, each with a checksum of its own. */
#ifndef DP_CHECKPOINT_CHECKSUM_H
#define DP_CHECKPOINT_CHECKSUM_H

#include "server/checkpoint/pace.h"

#include <stddef.h>

#define DP_CHECKSUM_TEXT 33u /* 32 hex digits */

struct dp_checksum {
    _Alignas(64) unsigned char state[384];
};

void dp_checksum_begin(struct dp_checksum *sum);
void dp_checksum_put(struct dp_checksum *sum, const void *bytes, size_t size);
void dp_checksum_end(struct dp_checksum *sum, char text[DP_CHECKSUM_TEXT]);

/* Of a complete file, read from the disk and not from the page cache where that can be asked for. A pipe, a device or a
 * directory is DP_CORRUPT. DP_NOT_FOUND, DP_IO name the file. */
enum dp_status dp_checksum_file(const char *path, struct dp_pace *pace, uint64_t *bytes,
                                char text[DP_CHECKSUM_TEXT], struct dp_error *err);

#endif
