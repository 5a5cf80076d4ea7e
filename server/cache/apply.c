#include "server/cache/apply.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#include <inttypes.h>

#define PREFETCH_AHEAD 12u

enum dp_status dp_apply_make_rows(struct dp_shard_base *base, const struct dp_section *section,
                                  struct dp_cached_table *table, uint32_t *rows)
{
    for (uint32_t i = 0; i < section->rows; i++) {
        if (dp_row_is_number(rows[i]))
            continue;
        uint64_t mixed = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
        if (dp_row_cache_insert(table->cache, mixed, &rows[i]) != DP_OK)
            return DP_NOMEM;
        dp_init_row(&table->spec, dp_unmix(mixed), dp_row_cache_row(table->cache, rows[i]));
        DP_COUNT(&base->counters, cache_rows, 1);
    }
    return DP_OK;
}

/* Once a table: the metric rows_bounded counts the rest. */
static void warn_of_bounded(struct dp_cached_table *table)
{
    if (!table->bounded)
        dp_log(DP_LOG_WARN,
               "table '%s': a push took values of a row beyond the range of f32; they stay at its largest "
               "finite number. Is the learning rate too high?",
               table->spec.name);
    table->bounded = true;
}

struct dp_applied dp_apply(const struct dp_section *section, struct dp_cached_table *table,
                           const uint32_t *rows, float rate, uint64_t lsn, uint64_t seen, float *scratch)
{
    struct dp_applied applied = {0};
    uint32_t dim = table->spec.dim;
    size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    const char *gradient = section->values;
    DP_ASSERT(lsn > 0 && (section->rows == 0 || section->value_bytes == section->rows * bytes));
    for (uint32_t i = 0; i < section->rows; i++, gradient += bytes) {
        if (i + PREFETCH_AHEAD < section->rows)
            dp_row_cache_prefetch(table->cache, rows[i + PREFETCH_AHEAD]);
        void *row = dp_row_cache_row(table->cache, rows[i]);
        uint64_t before = dp_row_lsn(row);
        if (before >= lsn)
            continue; /* replay: the stored row has it already */
        table->fresh += before == 0;
        applied.changed += before > seen;
        if (section->type == DP_BF16)
            dp_bf16_get(gradient, scratch, dim);
        applied.bounded += dp_optimizer_apply(
            table->optimizer, row, section->type == DP_F32 ? (const void *)gradient : scratch, rate);
        dp_row_set_lsn(row, lsn);
        dp_row_cache_set_dirty(table->cache, rows[i]);
    }
    if (applied.bounded > 0)
        warn_of_bounded(table);
    return applied;
}
