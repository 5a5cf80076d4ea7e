/* Sections: the tables and keys that a pull or push names.
 * Thread    The shard's. */
#ifndef DP_SHARD_SECTIONS_H
#define DP_SHARD_SECTIONS_H

#include "server/cache/misses.h"
#include "server/shard/schedule.h"

/* Every section's table, its keys within the shard's range, no table twice: into waiting->lookup. */
enum dp_status dp_sections_check(const struct dp_shard_base *base, const struct dp_cached_tables *tables,
                                 struct dp_waiting *waiting, struct dp_error *err);
/* Finds the rows of the lookup, which was checked, or says that it must wait: waiting->waits_for. Else they are in
 * misses->rows, or err has why not. */
bool dp_sections_wait(struct dp_misses *misses, const struct dp_schedule *schedule,
                      struct dp_waiting *waiting, struct dp_error *err);

#endif
