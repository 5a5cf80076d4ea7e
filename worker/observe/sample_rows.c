#include "worker/observe/sample_rows.h"

#include <string.h>

/* The place of the first key that is not below this one. */
static uint64_t place_of(const struct dp_sample_table *table, uint64_t key)
{
    uint64_t low = 0, high = table->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (table->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static enum dp_status pull(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err)
{
    const struct dp_sample_rows *sample = of;
    const struct dp_sample_table *table = &sample->keys->table[parameter];
    const float *from = sample->rows + dp_sample_keys_first(sample->keys, (uint32_t)parameter);
    for (size_t i = 0; i < n; i++) {
        uint64_t at = place_of(table, mixed[i]);
        if (at == table->count || table->keys[at] != mixed[i])
            return dp_fail(err, DP_DATA,
                           "the sample lacks a row of table %s that this test set reads: its keys are those "
                           "of another set; make them again (--score-keys)",
                           table->name);
        memcpy(rows + i * table->dim, from + at * table->dim, table->dim * sizeof *rows);
    }
    return DP_OK;
}

struct dp_row_source dp_sample_rows_source(const struct dp_sample_rows *rows)
{
    return (struct dp_row_source){.pull = pull, .of = (void *)(uintptr_t)rows};
}
