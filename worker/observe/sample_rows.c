#include "worker/observe/sample_rows.h"

#include "common/base/search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4096u /* keys */

/* ---- a record of keys */

/* Ascending, each once. */
static void tidy(struct dp_sample_record *record, uint32_t parameter)
{
    uint64_t *keys = record->asked[parameter].keys;
    size_t count = record->asked[parameter].count, kept = 0;
    if (count > 0)
        qsort(keys, count, sizeof *keys, dp_compare_u64);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || keys[kept - 1] != keys[i])
            keys[kept++] = keys[i];
    record->asked[parameter].count = kept;
}

static enum dp_status note(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err)
{
    struct dp_sample_record *record = of;
    uint64_t *keys = record->asked[parameter].keys;
    if (n == 0)
        return DP_OK;
    if (record->asked[parameter].room - record->asked[parameter].count < n) {
        tidy(record, (uint32_t)parameter);
        /* Twice what there is, so that keys are sorted rarely. */
        size_t room = keys ? record->asked[parameter].room : FIRST;
        while (room / 2 < record->asked[parameter].count + n)
            room *= 2;
        keys = realloc(keys, room * sizeof *keys);
        if (!keys)
            return dp_fail(err, DP_NOMEM, "no memory for the %zu keys of a test set", room);
        record->asked[parameter].keys = keys;
        record->asked[parameter].room = room;
    }
    memcpy(keys + record->asked[parameter].count, mixed, n * sizeof *mixed);
    record->asked[parameter].count += n;
    memset(rows, 0, n * dp_graph_parameter(record->graph, parameter)->table.dim * sizeof *rows);
    return DP_OK;
}

struct dp_row_source dp_sample_record_source(struct dp_sample_record *record)
{
    return (struct dp_row_source){.pull = note, .of = record};
}

void dp_sample_record_take(struct dp_sample_record *record, struct dp_sample_keys *out)
{
    *out = (struct dp_sample_keys){.tables = (uint32_t)dp_graph_parameters(record->graph)};
    for (uint32_t t = 0; t < out->tables; t++) {
        const struct dp_table_spec *spec = &dp_graph_parameter(record->graph, (int)t)->table;
        tidy(record, t);
        out->table[t] = (struct dp_sample_table){
            .dim = spec->dim, .count = record->asked[t].count, .keys = record->asked[t].keys};
        (void)snprintf(out->table[t].name, sizeof out->table[t].name, "%s", spec->name);
    }
    *record = (struct dp_sample_record){0};
}

/* ---- the rows of a sample */

static enum dp_status pull(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err)
{
    const struct dp_sample_rows *sample = of;
    const struct dp_sample_table *table = &sample->keys->table[parameter];
    const float *from = sample->rows + dp_sample_keys_first(sample->keys, (uint32_t)parameter);
    for (size_t i = 0; i < n; i++) {
        size_t at = dp_lower_bound_u64(table->keys, table->count, mixed[i]);
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
