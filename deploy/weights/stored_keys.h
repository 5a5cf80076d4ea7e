/* Stored keys: which keys of a table have rows in a run's stores, those of pushes that only a journal has
 * included.
 * Promise   The stores are looked at only (server/store/store_view.h). No process may write them during
 *           that: the caller has the run's lock.
 * Thread    One.
 * Memory    8 bytes a key, twice that while the journal of a store that was not closed cleanly is read.
 * Failure   DP_CORRUPT, DP_IO naming the store; DP_NOMEM. */
#ifndef DP_WEIGHTS_STORED_KEYS_H
#define DP_WEIGHTS_STORED_KEYS_H

#include "common/config/cluster.h"

#include <stddef.h>

/* Ascending, each once, not mixed; the caller frees *out. cluster: by dp_folder_cluster. */
enum dp_status dp_stored_keys(const struct dp_cluster *cluster, const char *table, uint64_t **out,
                              size_t *count, struct dp_error *err);

#endif
