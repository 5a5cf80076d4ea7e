#include "server/cache/apply.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#include <assert.h>
#include <inttypes.h>

/* Narrow rows are taken in blocks, each one call of the optimizer. A block of wide ones would ask for more
 * lines at once than a processor can. */
#define NARROW     512u /* bytes */
#define BLOCK      16u
#define AHEAD      24u /* rows asked for ahead of their use */
#define AHEAD_WIDE 12u

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
    const struct dp_row_cache *cache = table->cache;
    const bool narrow = cache->row_bytes <= NARROW;
    const uint32_t dim = table->spec.dim, ahead = narrow ? AHEAD : AHEAD_WIDE, block = narrow ? BLOCK : 1;
    const size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    const char *gradients = section->values;
    static_assert(BLOCK * NARROW <= DP_TABLE_DIM_MAX * sizeof(float), "a block's gradients fit into scratch");
    void *row[BLOCK];
    DP_ASSERT(lsn > 0 && (section->rows == 0 || section->value_bytes == section->rows * bytes));
    for (uint32_t i = 0; i < section->rows && i < ahead; i++)
        dp_row_cache_prefetch(cache, rows[i]);
    for (uint32_t at = 0, n; at < section->rows; at += n, gradients += n * bytes) {
        n = section->rows - at < block ? section->rows - at : block;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t number = rows[at + i];
            if (at + i + ahead < section->rows)
                dp_row_cache_prefetch(cache, rows[at + i + ahead]);
            row[i] = dp_row_cache_row(cache, number);
            uint64_t before = dp_row_lsn(row[i]);
            if (before >= lsn) {
                row[i] = NULL; /* replay: the stored row has it already */
                continue;
            }
            table->fresh += before == 0;
            applied.changed += before > seen;
            dp_row_set_lsn(row[i], lsn);
            dp_row_cache_set_dirty(table->cache, number);
        }
        if (section->type == DP_BF16)
            dp_bf16_get(gradients, scratch, (size_t)n * dim);
        applied.bounded += dp_optimizer_apply_rows(
            table->optimizer, row, n, section->type == DP_F32 ? (const void *)gradients : scratch, rate);
    }
    if (applied.bounded > 0)
        warn_of_bounded(table);
    return applied;
}
