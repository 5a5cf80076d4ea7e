/* Space: checks that the disk has space for a write before RocksDB makes it. Private to the room.
 * Why       If RocksDB cannot write its manifest because the disk is full, it fails every write until it is
 *           opened again. Debian's build has assertions on and aborts the process during RocksDB's own
 *           recovery. So a write that would leave less than a reserve is refused beforehand. (Files of rows
 *           are written outside the database, and compaction survives a full disk: both are retried.)
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
    DP_SPACE_MARKS, /* must leave half of it: rows that are stored already need their marks */
};

/* DP_FULL, naming the directory and the sizes. DP_OK also if the disk's free space is unknown. */
enum dp_status dp_space_check(const char *directory, uint64_t bytes, enum dp_space_use use,
                              struct dp_error *err);

#endif
