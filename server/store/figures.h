/* Figures: what RocksDB says of itself, taken now and then by one thread, read by any. The room's own. */
#ifndef DP_STORE_FIGURES_H
#define DP_STORE_FIGURES_H

#include "server/store/rocks_db.h"
#include "server/store/store.h"

#include <stdatomic.h>

struct dp_figures {
    _Atomic uint64_t l0_files, compaction_debt_bytes, file_bytes, block_cache_bytes, reader_bytes, rows_about,
        disk_free_bytes;
};

/* One thread at a time. */
void dp_figures_take(const struct dp_rocks_db *db, struct dp_figures *figures);
void dp_figures_get(struct dp_figures *figures, struct dp_store_figures *out);

#endif
