/* Applying a push to rows, the same when it is new and when it is replayed.
 * A row takes a push only if the push is newer than the row (its lsn): redo of what the store had already changes
 * nothing. */
#include "server/shard/shard_inner.h"

#include "common/base/bf16.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#include <inttypes.h>

#define PREFETCH_AHEAD 12u

enum dp_status dp_shard_make_rows(struct dp_shard *shard, const struct dp_section *section,
                                  struct dp_shard_table *table, uint32_t *rows, struct dp_error *err)
{
    for (uint32_t i = 0; i < section->rows; i++) {
        if (dp_row_is_number(rows[i]))
            continue;
        uint64_t mixed = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
        if (dp_row_cache_insert(table->cache, mixed, &rows[i]) != DP_OK)
            return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": new rows of table '%s'", shard->options.index,
                           table->spec.name);
        dp_init_row(&table->spec, dp_unmix(mixed), dp_row_cache_row(table->cache, rows[i]));
        DP_COUNT(&shard->counters, cache_rows, 1);
    }
    return DP_OK;
}

static const void *widen(struct dp_shard *shard, const char *halves, uint32_t dim)
{
    dp_bf16_get(halves, shard->scratch, dim);
    return shard->scratch;
}

void dp_shard_apply(struct dp_shard *shard, const struct dp_section *section, struct dp_shard_table *table,
                    const uint32_t *rows, float rate, uint64_t lsn)
{
    uint32_t dim = table->spec.dim;
    size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    const char *gradient = section->values;
    for (uint32_t i = 0; i < section->rows; i++, gradient += bytes) {
        if (i + PREFETCH_AHEAD < section->rows)
            dp_row_cache_prefetch(table->cache, rows[i + PREFETCH_AHEAD]);
        void *row = dp_row_cache_row(table->cache, rows[i]);
        if (dp_row_lsn(row) >= lsn)
            continue; /* replay: the store had it already */
        table->fresh += dp_row_lsn(row) == 0;
        dp_optimizer_apply(table->optimizer, row,
                           section->type == DP_F32 ? gradient : widen(shard, gradient, dim), rate);
        dp_row_set_lsn(row, lsn);
        dp_row_cache_set_dirty(table->cache, rows[i]);
    }
}
