/* Rocks record: the fragments of which RocksDB's logs (its manifest, its log of marks) consist.
 * Format    Blocks of 32 KiB. A fragment ("part" here): masked CRC32C of type and payload u32 | bytes u16 |
 *           type u8 | payload. No part crosses the end of a block; fewer than 7 bytes at the end of a block
 *           are a trailer. A record is one full part, or first, middle*, last. (RocksDB, db/log_format.h.)
 *           The types of recycled logs are not used.
 * Thread    Any. */
#ifndef DP_STORE_ROCKS_RECORD_H
#define DP_STORE_ROCKS_RECORD_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_ROCKS_BLOCK  32768u
#define DP_ROCKS_HEADER 7u

enum dp_rocks_part {
    DP_ROCKS_NONE = 0,
    DP_ROCKS_FULL = 1,
    DP_ROCKS_FIRST = 2,
    DP_ROCKS_MIDDLE = 3,
    DP_ROCKS_LAST = 4
};

/* A whole log file in memory; {0} at first. */
struct dp_rocks_bytes {
    uint8_t *bytes;
    size_t size;
};

/* Reads the file. A failure leaves the log empty: DP_IO, DP_NOMEM, or the status of read_only_disk.h if the
 * file cannot be opened. */
DP_MUST_USE
enum dp_status dp_rocks_bytes_read(const char *path, struct dp_rocks_bytes *log, struct dp_error *err);
void dp_rocks_bytes_clear(struct dp_rocks_bytes *log);

uint32_t dp_rocks_masked(uint32_t crc);
/* Whether the part's checksum fits this type and this many bytes of payload. */
bool dp_rocks_part_fits(const uint8_t *part, uint8_t type, size_t payload);
/* The payload's length that the header states. */
static inline uint32_t dp_rocks_part_payload(const uint8_t *part)
{
    return (uint32_t)part[4] | (uint32_t)part[5] << 8;
}
/* Size of the intact part at `at`, with its header; 0: there is none. */
size_t dp_rocks_part_at(const struct dp_rocks_bytes *log, size_t at);
/* The type of an intact part. */
enum dp_rocks_part dp_rocks_part_type(const struct dp_rocks_bytes *log, size_t at);

#endif
