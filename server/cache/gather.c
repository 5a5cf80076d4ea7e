#include "server/cache/gather.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#define PREFETCH_AHEAD 24u
#define NARROW         128u /* bytes */

static void prefetch_weights(const struct dp_row_cache *cache, uint32_t row, size_t bytes)
{
    if (dp_row_is_number(row))
        dp_prefetch((const char *)dp_row_cache_row(cache, row) + DP_ROW_HEADER, bytes);
}

/* Without a call for narrow rows, which would cost more than the copy. */
static void copy(char *to, const char *from, size_t bytes)
{
    if (bytes > NARROW) {
        memcpy(to, from, bytes);
        return;
    }
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16)
        memcpy(to + at, from + at, 16);
    for (; at < bytes; at += 4)
        memcpy(to + at, from + at, 4);
}

uint64_t dp_gather(const struct dp_section *section, const struct dp_cached_table *table,
                   const uint32_t *rows, float *scratch, char *to)
{
    uint32_t dim = table->spec.dim;
    uint64_t initial = 0;
    size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    for (uint32_t i = 0; i < section->rows; i++, to += bytes) {
        if (i + PREFETCH_AHEAD < section->rows)
            prefetch_weights(table->cache, rows[i + PREFETCH_AHEAD], (size_t)dim * 4);
        const float *weights = scratch;
        initial += !dp_row_is_number(rows[i]);
        if (dp_row_is_number(rows[i]))
            weights = dp_row_weights_const(dp_row_cache_row(table->cache, rows[i]));
        else
            dp_init_weights(&table->spec,
                            dp_unmix(dp_load_u64le((const char *)section->keys + (size_t)i * 8)), scratch);
        if (section->type == DP_F32)
            copy(to, (const char *)weights, bytes);
        else
            dp_bf16_put(weights, to, dim);
    }
    return initial;
}
