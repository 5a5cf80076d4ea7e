#include "server/steps/step_buffer_apply.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"
#include "server/cache/apply.h"

#include <stdlib.h>

#define ROWS_AT_ONCE 256u

enum dp_status dp_step_buffer_apply_init(struct dp_step_buffer_apply *apply,
                                         const struct dp_buffered_step *step, uint32_t sections,
                                         struct dp_cached_table *const *tables)
{
    enum dp_status st = DP_OK;
    uint32_t dim_max = 1;
    for (uint32_t s = 0; s < sections; s++)
        dim_max = tables[s]->spec.dim > dim_max ? tables[s]->spec.dim : dim_max;
    *apply = (struct dp_step_buffer_apply){0};
    apply->sum = calloc(sections + 1, sizeof apply->sum[0]);
    apply->gradients = dp_alloc_aligned((size_t)ROWS_AT_ONCE * dim_max * sizeof(float));
    if (!apply->sum || !apply->gradients)
        st = DP_NOMEM;
    for (uint32_t s = 0; st == DP_OK && s < sections; s++) {
        st = dp_buffer_sum_init(&apply->sum[s], step, tables[s]->id, tables[s]->spec.dim);
        apply->sections += st == DP_OK;
    }
    if (st != DP_OK)
        dp_step_buffer_apply_clear(apply);
    return st;
}

bool dp_step_buffer_apply(struct dp_step_buffer_apply *apply, uint32_t s, const struct dp_section *section,
                          struct dp_cached_table *table, const uint32_t *rows, float rate, uint64_t lsn)
{
    uint32_t dim = table->spec.dim;
    uint64_t mixed;
    DP_ASSERT(s < apply->sections && dim == apply->sum[s].dim);
    for (uint32_t done = 0, n; done < section->rows; done += n) {
        struct dp_section some = {.table = section->table,
                                  .keys = (const char *)section->keys + (size_t)done * 8};
        for (n = 0; n < ROWS_AT_ONCE && done + n < section->rows; n++)
            if (!dp_buffer_sum_next(&apply->sum[s], &mixed, apply->gradients + (size_t)n * dim) ||
                mixed != dp_load_u64le((const char *)some.keys + (size_t)n * 8))
                return false;
        some.rows = n;
        some.values = apply->gradients;
        some.value_bytes = (size_t)n * dim * sizeof(float);
        (void)dp_apply(&some, table, rows + done, rate, lsn, UINT64_MAX, NULL);
    }
    return !dp_buffer_sum_next(&apply->sum[s], &mixed, NULL);
}

void dp_step_buffer_apply_clear(struct dp_step_buffer_apply *apply)
{
    for (uint32_t s = 0; s < apply->sections; s++)
        dp_buffer_sum_clear(&apply->sum[s]);
    free(apply->sum);
    free(apply->gradients);
    *apply = (struct dp_step_buffer_apply){0};
}
