/* Space: whether a disk has room for a write, asked before RocksDB does it. The room's own.
 * Why       RocksDB does not come back from a log that could not be written for want of space: it fails every write
 *           until it is opened again, and Debian's build, with its assertions, ends the process when it tries to mend
 *           itself. So it should not meet a full disk there: what would leave less than a reserve is refused before.
 *           (Files of rows are written beside the database, and compaction bears a full disk: both are tried again.)
 * Thread    Any. */
#ifndef DP_STORE_SPACE_H
#define DP_STORE_SPACE_H

#include "common/base/status.h"

#include <stdint.h>

/* 1/32 of the disk, 256 KiB to 64 MiB. */
#define DP_SPACE_SHARE 32u
#define DP_SPACE_MIN   (256u << 10)
#define DP_SPACE_MAX   (64u << 20)

enum dp_space_use {
    DP_SPACE_ROWS,  /* must leave the reserve */
    DP_SPACE_MARKS, /* half of it: rows that are in need their marks */
};

/* DP_FULL naming directory and sizes; DP_OK also where the disk does not tell. */
DP_MUST_USE
enum dp_status dp_space_check(const char *directory, uint64_t bytes, enum dp_space_use use,
                              struct dp_error *err);

#endif
