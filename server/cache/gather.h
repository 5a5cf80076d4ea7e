/* Gather: copies the weights of rows into the answer of a pull.
 * Thread    The shard's. */
#ifndef DP_CACHE_GATHER_H
#define DP_CACHE_GATHER_H

#include "common/wire/request.h"
#include "server/cache/cached_tables.h"

/* rows: the row number or state of each key. to: [section->rows][dim] of the section's type. scratch: one row
 * of weights, DP_TABLE_DIM_MAX, aligned. Returns how many keys have no row: they have their initial value. */
uint64_t dp_gather(const struct dp_section *section, const struct dp_cached_table *table,
                   const uint32_t *rows, float *scratch, char *to);

#endif
