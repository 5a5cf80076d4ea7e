/* Rocks record: the parts of which RocksDB's logs (its manifest, its log of marks) consist.
 * Format    Blocks of 32 KiB; a part: CRC32C, masked, of type and payload u32 | bytes u16 | type u8 | payload; none crosses a
 *           block's end, and fewer than 7 bytes at a block's end are a trailer. A record is one full part, or first, middle*,
 *           last. (RocksDB, db/log_format.h.) Types of recycled logs are not used here.
 * Thread    Any. */
#ifndef DP_STORE_ROCKS_RECORD_H
#define DP_STORE_ROCKS_RECORD_H

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

/* A log in memory. */
struct dp_rocks_bytes {
    uint8_t *bytes;
    size_t size;
};

/* Bytes of the intact part at `at`, its header included; 0: there is none. */
size_t dp_rocks_part_at(const struct dp_rocks_bytes *log, size_t at);
/* Of an intact part. */
enum dp_rocks_part dp_rocks_part_type(const struct dp_rocks_bytes *log, size_t at);

#endif
