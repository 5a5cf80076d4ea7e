/* Apply: applies a push to rows, in the same way when it is new and when it is replayed.
 * Promise   A push changes a row only if it is newer than the row's lsn, so replaying what the store already
 *           has changes nothing.
 * Thread    The shard's. */
#ifndef DP_CACHE_APPLY_H
#define DP_CACHE_APPLY_H

#include "common/wire/request.h"
#include "server/cache/cached_tables.h"
#include "server/cache/shard_base.h"

/* rows: the row number or state of each key. A key without a row gets a new one with its initial value, and
 * its number. DP_NOMEM. */
enum dp_status dp_apply_make_rows(struct dp_shard_base *base, const struct dp_section *section,
                                  struct dp_cached_table *table, uint32_t *rows);
struct dp_applied {
    uint32_t changed; /* rows whose lsn was above `seen`: changed since a pull that showed it */
    uint32_t bounded; /* rows with a value beyond f32, which stays at its bound (optimizer.h) */
};

/* seen: UINT64_MAX: changed is not counted. scratch: one row of gradients, DP_TABLE_DIM_MAX, aligned; NULL where they are f32. */
struct dp_applied dp_apply(const struct dp_section *section, struct dp_cached_table *table,
                           const uint32_t *rows, float rate, uint64_t lsn, uint64_t seen, float *scratch);

#endif
