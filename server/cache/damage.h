/* Damage: rows that the store found damaged, in a read or a count, and rows that show that the journal has
 * lost its end. Requests that touch them are refused. The operator sees them in the log and in the status
 * (store_damage), since no request may ever touch a damaged row.
 * Thread    The shard's. */
#ifndef DP_CACHE_DAMAGE_H
#define DP_CACHE_DAMAGE_H

#include "common/base/status.h"
#include "server/cache/shard_base.h"

/* Counted, and logged once a second at most. */
void dp_damage_found(struct dp_shard_base *base, const struct dp_error *err);
/* Fails with DP_CORRUPT. A row is written back only when the journal is synced past it, so one that is ahead of the last push
 * shows that the journal's end was lost. Taken all the same, it would not take new pushes, which get the lost ones' lsns. */
enum dp_status dp_damage_row_ahead(const char *table, uint64_t mixed, uint64_t row_lsn, uint64_t last,
                                   struct dp_error *err);

#endif
