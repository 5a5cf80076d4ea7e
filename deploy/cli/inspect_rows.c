/* Rows of a table, as they are stored. Values are shown up to a bound; JSON has all of them. */
#include "deploy/cli/inspect_show.h"

#include "common/base/json.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/durable/table_mark.h"

#include <inttypes.h>
#include <stdio.h>

#define VALUES_SHOWN 64u

struct finding {
    const struct dp_show_rows *rows;
    uint32_t id;
    struct dp_table_spec spec;
    bool known; /* some shard has the table */
    uint64_t shown;
    bool only, met; /* one key is looked for */
    uint64_t mixed;
    const char *directory;
    json_t *list; /* NULL: as text */
};

static void show_values(const char *name, const float *values, uint32_t count)
{
    printf("  %-9s", name);
    for (uint32_t i = 0; i < count && i < VALUES_SHOWN; i++)
        printf(" %.9g", (double)values[i]);
    if (count > VALUES_SHOWN)
        printf(" ... %" PRIu32 " more", count - VALUES_SHOWN);
    printf("\n");
}

static json_t *values_of(const float *values, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(list, dp_json_real((double)values[i]));
    return list;
}

static enum dp_status take_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct finding *f = context;
    uint32_t dim = f->spec.dim, slots = dp_row_slots(&f->spec.optimizer);
    if (key.table != f->id || (f->only && key.mixed != f->mixed) || f->shown >= f->rows->limit)
        return DP_STOPPING; /* ends the visit */
    if (row_bytes != dp_row_bytes(&f->spec))
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the row of key %" PRIu64 " has %zu bytes, its table's have %zu",
                       f->directory, dp_unmix(key.mixed), row_bytes, dp_row_bytes(&f->spec));
    float *values = malloc(row_bytes); /* aligned */
    if (!values)
        return dp_fail(err, DP_NOMEM, "a row");
    memcpy(values, (const char *)row + DP_ROW_HEADER, row_bytes - DP_ROW_HEADER);
    f->shown++;
    f->met = true;
    if (f->list) {
        json_t *one = json_pack("{s:o, s:I, s:I, s:o}", "key", dp_json_u64(dp_unmix(key.mixed)), "step",
                                (json_int_t)dp_row_step(row), "lsn", (json_int_t)dp_row_lsn(row), "weights",
                                values_of(values, dim));
        for (uint32_t s = 0; s < slots; s++)
            (void)json_object_set_new(one, dp_row_slot_name(&f->spec.optimizer, s),
                                      values_of(values + (size_t)dim * (s + 1), dim));
        (void)json_array_append_new(f->list, one);
    } else {
        printf("key %" PRIu64 "  step %" PRIu32 "  lsn %" PRIu64 "  (%s)\n", dp_unmix(key.mixed),
               dp_row_step(row), dp_row_lsn(row), f->directory);
        show_values("weights", values, dim);
        for (uint32_t s = 0; s < slots; s++)
            show_values(dp_row_slot_name(&f->spec.optimizer, s), values + (size_t)dim * (s + 1), dim);
    }
    free(values);
    return f->only ? DP_STOPPING : DP_OK;
}

static enum dp_status find_table(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct finding *f = context;
    struct dp_table_spec spec;
    uint64_t rows;
    enum dp_status st = dp_table_mark_decode(mark, &spec, &rows, err);
    if (st == DP_OK && strcmp(spec.name, f->rows->table) == 0) {
        f->spec = spec;
        f->known = true;
    }
    return st;
}

static enum dp_status show_from(struct finding *f, struct dp_store_view *inspect, uint64_t mixed,
                                struct dp_error *err)
{
    enum dp_status st =
        dp_store_view_rows_from(inspect, (struct dp_store_key){f->id, mixed}, take_row, f, err);
    return st == DP_STOPPING ? DP_OK : st;
}

/* met: [key_count], which keys were found. */
static enum dp_status show_shard(struct finding *f, bool *met, struct dp_error *err)
{
    struct dp_store_view *inspect = NULL;
    bool here = false;
    enum dp_status st = dp_store_view_open(f->directory, NULL, &inspect, err);
    if (st != DP_OK)
        return st;
    bool before = f->known;
    f->known = false;
    st = dp_store_view_marks(inspect, DP_TABLE_MARK_PREFIX, find_table, f, err);
    here = f->known;
    f->known = before || here;
    for (size_t k = 0; st == DP_OK && here && k < f->rows->key_count; k++) {
        f->only = true;
        f->met = false;
        f->mixed = dp_mix(f->rows->keys[k]);
        st = show_from(f, inspect, f->mixed, err);
        met[k] = met[k] || f->met;
    }
    if (st == DP_OK && here && f->rows->key_count == 0)
        st = show_from(f, inspect, 0, err);
    dp_store_view_close(&inspect);
    return st;
}

enum dp_status dp_show_rows(const struct dp_show_rows *rows, struct dp_error *err)
{
    struct finding f = {.rows = rows, .id = dp_table_id(rows->table)};
    bool *met = calloc(rows->key_count + 1, sizeof met[0]);
    enum dp_status st = met ? DP_OK : dp_fail(err, DP_NOMEM, "rows");
    f.list = rows->json ? json_array() : NULL;
    for (size_t i = 0; st == DP_OK && i < rows->count && f.shown < rows->limit; i++) {
        f.directory = rows->directories[i];
        st = show_shard(&f, met, err);
    }
    if (st == DP_OK && !f.known)
        st = dp_fail(err, DP_NOT_FOUND, "there is no table '%s'; without --rows, all tables are listed",
                     rows->table);
    for (size_t k = 0; st == DP_OK && !f.list && k < rows->key_count && f.shown < rows->limit; k++)
        if (!met[k])
            printf("key %" PRIu64 "  is not stored: it was never pushed (or not written back yet), so its "
                   "row has the initial weights\n",
                   rows->keys[k]);
    if (st == DP_OK && f.list) {
        json_t *all = json_pack("{s:s, s:O}", "table", rows->table, "rows", f.list);
        if (json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0 ||
            fputc('\n', stdout) != '\n')
            st = dp_fail(err, DP_IO, "cannot write to standard output");
        json_decref(all);
    }
    json_decref(f.list);
    free(met);
    return st;
}
