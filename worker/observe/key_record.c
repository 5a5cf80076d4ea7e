#include "worker/observe/key_record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST 4096u /* keys */

/* What it was asked for, with repetitions. */
struct asked_keys {
    uint64_t *keys;
    size_t count, room;
};

struct dp_key_record {
    const struct dp_graph *graph;
    struct dp_row_source source;
    struct asked_keys asked[DP_GRAPH_PARAMETERS_MAX];
};

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Ascending, each once. */
static void tidy(struct asked_keys *asked)
{
    size_t kept = 0;
    if (asked->count > 0)
        qsort(asked->keys, asked->count, sizeof *asked->keys, compare);
    for (size_t i = 0; i < asked->count; i++)
        if (kept == 0 || asked->keys[kept - 1] != asked->keys[i])
            asked->keys[kept++] = asked->keys[i];
    asked->count = kept;
}

static enum dp_status make_room(struct asked_keys *asked, size_t more, struct dp_error *err)
{
    if (asked->room - asked->count >= more)
        return DP_OK;
    tidy(asked);
    /* Twice what there is, so that keys are sorted rarely. */
    size_t room = asked->room ? asked->room : FIRST;
    while (room / 2 < asked->count + more)
        room *= 2;
    uint64_t *keys = realloc(asked->keys, room * sizeof *keys);
    if (!keys)
        return dp_fail(err, DP_NOMEM, "no memory for the %zu keys of a test set", room);
    asked->keys = keys;
    asked->room = room;
    return DP_OK;
}

static enum dp_status pull(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err)
{
    struct dp_key_record *record = of;
    struct asked_keys *asked = &record->asked[parameter];
    enum dp_status st = make_room(asked, n, err);
    if (st != DP_OK || n == 0)
        return st;
    memcpy(asked->keys + asked->count, mixed, n * sizeof *mixed);
    asked->count += n;
    memset(rows, 0, n * dp_graph_parameter(record->graph, parameter)->table.dim * sizeof *rows);
    return DP_OK;
}

enum dp_status dp_key_record_new(const struct dp_graph *graph, struct dp_key_record **out,
                                 struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for the keys of a test set");
    **out = (struct dp_key_record){.graph = graph, .source = {.pull = pull, .of = *out}};
    return DP_OK;
}

void dp_key_record_free(struct dp_key_record **record)
{
    struct dp_key_record *r = *record;
    *record = NULL;
    for (int p = 0; r && p < DP_GRAPH_PARAMETERS_MAX; p++)
        free(r->asked[p].keys);
    free(r);
}

const struct dp_row_source *dp_key_record_source(const struct dp_key_record *record)
{
    return &record->source;
}

void dp_key_record_take(struct dp_key_record *record, struct dp_sample_keys *out)
{
    *out = (struct dp_sample_keys){.tables = (uint32_t)dp_graph_parameters(record->graph)};
    for (uint32_t t = 0; t < out->tables; t++) {
        const struct dp_table_spec *spec = &dp_graph_parameter(record->graph, (int)t)->table;
        struct asked_keys *asked = &record->asked[t];
        tidy(asked);
        out->table[t] =
            (struct dp_sample_table){.dim = spec->dim, .count = asked->count, .keys = asked->keys};
        (void)snprintf(out->table[t].name, sizeof out->table[t].name, "%s", spec->name);
        *asked = (struct asked_keys){0};
    }
}
