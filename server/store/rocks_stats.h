/* Rocks stats: RocksDB's statistics, taken from time to time by one thread and read by any. Private to the
 * room. */
#ifndef DP_STORE_ROCKS_STATS_H
#define DP_STORE_ROCKS_STATS_H

#include "server/store/rocks_db.h"

#include <stdatomic.h>

struct dp_rocks_stats {
    _Atomic uint64_t l0_files, compaction_debt_bytes, file_bytes, block_cache_bytes, reader_bytes, rows_about,
        disk_free_bytes;
};

/* One thread at a time. */
void dp_rocks_stats_take(const struct dp_rocks_db *db, struct dp_rocks_stats *stats);
void dp_rocks_stats_get(struct dp_rocks_stats *stats, struct dp_store_stats *out);

#endif
