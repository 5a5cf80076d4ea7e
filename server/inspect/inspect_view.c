#include "server/inspect/inspect_view.h"

#include "common/base/memory.h"
#include "common/base/text.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
#include "server/durable/table_mark.h"
#include "server/journal/record.h"
#include "server/steps/steps_mark.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct view_gathering {
    struct dp_inspect_view *view;
    const struct dp_inspect_view_options *options;
    struct dp_store_view *inspect;
    uint64_t lsn_max;                    /* no row may be above it */
    struct dp_inspect_view_table *table; /* of the last row */
};

void dp_inspect_view_note(struct dp_inspect_view *view, const struct dp_error *found)
{
    struct dp_error clean = *found, *what = &clean;
    dp_text_clean(clean.text);
    for (size_t i = 0; i < view->damages && i < DP_INSPECT_DAMAGE_MAX; i++)
        if (strcmp(view->damage[i].text, what->text) == 0)
            return; /* the same place, met again */
    if (view->damages < DP_INSPECT_DAMAGE_MAX)
        view->damage[view->damages] = *what;
    view->damages++;
}

static void note_damage(void *context, const struct dp_error *what)
{
    dp_inspect_view_note(((struct view_gathering *)context)->view, what);
}

/* What was found damaged is noted, and it goes on; other failures end it. */
static enum dp_status pass(struct view_gathering *g, enum dp_status st, const struct dp_error *err)
{
    if (st != DP_CORRUPT)
        return st;
    note_damage(g, err);
    return DP_OK;
}

/* ---- marks */

static int compare_tables(const void *a, const void *b)
{
    const struct dp_inspect_view_table *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static enum dp_status take_table(struct view_gathering *g, const struct dp_store_mark *mark,
                                 struct dp_error *err)
{
    struct dp_inspect_view *view = g->view;
    struct dp_inspect_view_table table = {0};
    enum dp_status st = dp_table_mark_decode(mark, &table.spec, &table.marked_rows, err);
    if (st != DP_OK)
        return st;
    table.id = dp_table_id(table.spec.name);
    struct dp_inspect_view_table *more = realloc(view->table, (view->tables + 1) * sizeof more[0]);
    if (!more)
        return dp_fail(err, DP_NOMEM, "the tables");
    view->table = more;
    view->table[view->tables++] = table;
    qsort(view->table, view->tables, sizeof view->table[0], compare_tables);
    return DP_OK;
}

static bool is_key(const struct dp_store_mark *mark, const char *key)
{
    return mark->key_bytes == strlen(key) && memcmp(mark->key, key, mark->key_bytes) == 0;
}

static enum dp_status take_number(const struct dp_store_mark *mark, uint64_t *out, struct dp_error *err)
{
    if (mark->value_bytes != 8)
        return dp_fail(err, DP_CORRUPT, "the mark '%.*s' has %zu bytes, not 8", (int)mark->key_bytes,
                       (const char *)mark->key, mark->value_bytes);
    *out = dp_load_u64le(mark->value);
    return DP_OK;
}

static enum dp_status take_steps(const struct dp_store_mark *mark, struct dp_inspect_view_steps *out,
                                 struct dp_error *err)
{
    struct dp_steps *steps = calloc(1, sizeof *steps);
    if (!steps)
        return dp_fail(err, DP_NOMEM, "steps");
    enum dp_status st = dp_steps_mark_unpack(mark->value, mark->value_bytes, steps, 0, err);
    *out = (struct dp_inspect_view_steps){.run = steps->view.run,
                                          .members = steps->view.members,
                                          .mode = steps->view.mode,
                                          .slack = steps->view.slack,
                                          .open = steps->open};
    dp_steps_clear(steps);
    free(steps);
    return st;
}

static enum dp_status take_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct view_gathering *g = context;
    struct dp_inspect_view *view = g->view;
    enum dp_status st = DP_OK;
    size_t len = strlen(DP_TABLE_MARK_PREFIX);
    if (mark->key_bytes > len && memcmp(mark->key, DP_TABLE_MARK_PREFIX, len) == 0)
        st = take_table(g, mark, err);
    else if (is_key(mark, "lsn"))
        st = take_number(mark, &view->rows_lsn, err);
    else if (is_key(mark, "streams"))
        st = take_number(mark, &view->streams, err);
    else if (is_key(mark, "journal"))
        st = take_number(mark, &view->incarnation, err);
    else if (is_key(mark, "released"))
        st = take_number(mark, &view->released, err);
    else if (is_key(mark, "ids")) {
        st = dp_push_ids_unpack(view->ids, mark->value, mark->value_bytes, err);
        if (st == DP_CORRUPT) { /* what was unpacked before the damage is not complete */
            dp_push_ids_free(&view->ids);
            if (dp_push_ids_new(&view->ids) != DP_OK)
                return dp_fail(err, DP_NOMEM, "push ids");
        }
    } else if (is_key(mark, "steps")) {
        st = take_steps(mark, &view->steps, err);
    }
    if (st == DP_CORRUPT)
        (void)dp_wrap(err, st, "store %s: marks", view->directory);
    return pass(g, st, err);
}

/* ---- files */

static enum dp_status take_file(void *context, const struct dp_store_view_file *file, struct dp_error *err)
{
    struct view_gathering *g = context;
    struct dp_inspect_view_files *files = &g->view->row_files;
    (void)err;
    files->count++;
    files->bytes += file->bytes;
    files->entries += file->entries;
    return DP_OK;
}

static void count_unnamed(struct dp_inspect_view *view)
{
    uint64_t there = 0, named = view->row_files.count;
    DIR *list = opendir(view->directory);
    if (!list)
        return;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        size_t len = strlen(entry->d_name);
        there += len > 4 && strcmp(entry->d_name + len - 4, ".sst") == 0;
    }
    (void)closedir(list);
    view->unnamed_files = there > named ? there - named : 0;
}

/* ---- journal */

static void take_segment(void *context, const struct dp_inspect_segment *segment)
{
    struct dp_inspect_view *view = ((struct view_gathering *)context)->view;
    if (!dp_array_reserve(&view->segment, view->segments, &view->segment_room, sizeof view->segment[0]))
        return; /* one line less in a list for people */
    struct dp_inspect_view_segment *to = &view->segment[view->segments++];
    to->segment = *segment;
    to->segment.file = NULL;
    (void)snprintf(to->file, sizeof to->file, "%s", segment->file);
}

static enum dp_status take_record(void *context, uint64_t lsn, const void *record, size_t bytes,
                                  struct dp_error *err)
{
    struct view_gathering *g = context;
    struct dp_inspect_view *view = g->view;
    struct dp_record decoded;
    struct dp_request *push = calloc(1, sizeof *push);
    if (!push)
        return dp_fail(err, DP_NOMEM, "a record");
    enum dp_status st = dp_record_decode(record, bytes, &decoded, push, err);
    if (st == DP_OK) {
        view->replay_pushes += decoded.refused == DP_OK &&
                               (decoded.kind == DP_RECORD_PUSH || decoded.kind == DP_RECORD_KEPT_PUSH);
        view->replay_refused += decoded.refused != DP_OK;
        for (uint32_t s = 0; s < push->sections && decoded.kind != DP_RECORD_KEPT_PUSH; s++)
            view->replay_rows += push->section[s].rows;
        view->replay_kept += decoded.kind == DP_RECORD_KEPT_PUSH;
        view->replay_closed += decoded.kind == DP_RECORD_CLOSE;
    } else
        (void)dp_wrap(err, st, "store %s/journal: record lsn %" PRIu64, view->directory, lsn);
    free(push);
    return pass(g, st, err);
}

static enum dp_status gather_journal(struct view_gathering *g, struct dp_error *err)
{
    struct dp_inspect_view *view = g->view;
    char directory[4096];
    (void)snprintf(directory, sizeof directory, "%s/journal", view->directory);
    bool clean = view->own.state == DP_STORE_VIEW_CLEAN;
    uint64_t released = clean && view->incarnation > view->released ? view->incarnation : view->released;
    struct dp_inspect_journal_options options = {
        .directory = directory,
        .replay_after = view->rows_lsn,
        .incarnation = view->incarnation,
        .released = released,
        .must_be_there = view->own.state == DP_STORE_VIEW_OPEN_JOURNALED && view->incarnation > released,
        .clean = clean,
        .segment = take_segment,
        .record = take_record,
        .damaged = g->options->verify && view->in_use == 0 ? note_damage : NULL,
        .context = g};
    enum dp_status st = dp_inspect_journal(&options, &view->journal, err);
    if (st == DP_OK && view->segments == 0 && released > 0) { /* the store itself is what is durable */
        view->journal.incarnation = view->incarnation;
        view->journal.durable_lsn = view->rows_lsn;
    }
    if (st == DP_OK)
        return st;
    view->journal_refused = *err;
    dp_text_clean(view->journal_refused.text);
    /* A running server writes and renames: nothing is reported about its journal then. */
    return view->in_use != 0 ? DP_OK : pass(g, st, err);
}

/* ---- rows */

static enum dp_status wrong_row(struct view_gathering *g, struct dp_store_key key, const char *what)
{
    struct dp_error err = {0};
    (void)dp_fail(&err, DP_CORRUPT,
                  "store %s: the row of table %08" PRIx32 "%s%s, key %" PRIu64 " (mixed 0x%016" PRIx64 ") %s",
                  g->view->directory, key.table, g->table ? " " : "", g->table ? g->table->spec.name : "",
                  dp_unmix(key.mixed), key.mixed, what);
    note_damage(g, &err);
    return DP_OK;
}

static enum dp_status take_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct view_gathering *g = context;
    struct dp_inspect_view *view = g->view;
    (void)err;
    if (!g->table || g->table->id != key.table) {
        struct dp_inspect_view_table wanted = {.id = key.table};
        g->table =
            view->tables ? bsearch(&wanted, view->table, view->tables, sizeof wanted, compare_tables) : NULL;
    }
    if (!g->table)
        return wrong_row(g, key, "has a table without a mark");
    if (row_bytes != dp_row_bytes(&g->table->spec))
        return wrong_row(g, key, "has another length than its table's");
    if (dp_row_format(row) != DP_ROW_FORMAT)
        return wrong_row(g, key, "has another format than this build's");
    if (!dp_range_has(view->own.range, key.mixed))
        return wrong_row(g, key, "is outside of the shard's range");
    uint64_t lsn = dp_row_lsn(row);
    if (lsn > g->lsn_max)
        return wrong_row(g, key, "has an lsn above the end of the journal");
    if (g->options->verify &&
        !dp_all_finite_f32((const char *)row + DP_ROW_HEADER, (row_bytes - DP_ROW_HEADER) / 4))
        (void)wrong_row(g, key, "holds a NaN or an infinite value");
    struct dp_inspect_view_table *table = g->table;
    table->first_lsn = table->rows == 0 || lsn < table->first_lsn ? lsn : table->first_lsn;
    table->last_lsn = lsn > table->last_lsn ? lsn : table->last_lsn;
    table->rows++;
    table->bytes += row_bytes;
    if (g->options->digest)
        dp_digest_add_row(&table->digest, dp_unmix(key.mixed), row, row_bytes);
    return DP_OK;
}

static enum dp_status gather_rows(struct view_gathering *g, struct dp_error *err)
{
    struct dp_inspect_view *view = g->view;
    const struct dp_store_view_damage damage = {note_damage, g};
    uint64_t end = view->journal.last_lsn > view->rows_lsn ? view->journal.last_lsn : view->rows_lsn;
    size_t before = view->damages;
    /* Without a journal, or next to a running server, its end is unknown; a damaged one ends too early. */
    bool known = view->in_use == 0 && view->journal_refused.status == DP_OK &&
                 (view->own.state == DP_STORE_VIEW_CLEAN || view->own.state == DP_STORE_VIEW_OPEN_JOURNALED);
    g->lsn_max = known ? end : UINT64_MAX;
    enum dp_status st = dp_store_view_rows(g->inspect, g->options->verify ? &damage : NULL, take_row, g, err);
    view->complete = st == DP_OK && view->damages == before;
    return pass(g, st, err);
}

/* ---- all of it */

enum dp_status dp_inspect_view_gather(const char *directory, const struct dp_inspect_view_options *options,
                                      struct dp_inspect_view *out, struct dp_error *err)
{
    struct view_gathering g = {.view = out, .options = options};
    const struct dp_store_view_damage damage = {note_damage, &g};
    *out = (struct dp_inspect_view){.directory = directory, .in_use = dp_store_view_in_use(directory)};
    out->damage = calloc(DP_INSPECT_DAMAGE_MAX, sizeof out->damage[0]);
    if (!out->damage || dp_push_ids_new(&out->ids) != DP_OK)
        return dp_fail(err, DP_NOMEM, "inspect %s", directory);
    enum dp_status st = dp_store_view_open(directory, options->verify ? &damage : NULL, &g.inspect, err);
    if (st != DP_OK)
        return pass(&g, st, err);
    out->opened = true;
    out->own = *dp_store_view_own(g.inspect);
    st = dp_store_view_files(g.inspect, take_file, &g, err);
    if (st == DP_OK)
        st = pass(&g, dp_store_view_marks(g.inspect, "", take_mark, &g, err), err);
    if (st == DP_OK)
        st = gather_journal(&g, err);
    if (st == DP_OK)
        st = gather_rows(&g, err);
    if (st == DP_OK && out->in_use == 0)
        count_unnamed(out);
    dp_store_view_close(&g.inspect);
    return st;
}

void dp_inspect_view_clear(struct dp_inspect_view *view)
{
    dp_push_ids_free(&view->ids);
    free(view->table);
    free(view->segment);
    free(view->damage);
    *view = (struct dp_inspect_view){0};
}

bool dp_inspect_view_is_clean(const struct dp_inspect_view *view)
{
    return view->opened && view->in_use == 0 &&
           (view->own.state == DP_STORE_VIEW_CLEAN || view->own.state == DP_STORE_VIEW_NEW);
}

static int compare_names(const void *a, const void *b)
{
    const struct dp_digest_table *x = a, *y = b;
    return strcmp(x->name, y->name);
}

struct dp_digest_table *dp_inspect_view_sum(const struct dp_inspect_view *views, size_t count, size_t *tables)
{
    size_t room = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        room += views[i].tables;
    struct dp_digest_table *sum = calloc(room + 1, sizeof sum[0]);
    for (size_t i = 0; i < count && sum; i++)
        for (size_t t = 0; t < views[i].tables; t++) {
            const struct dp_inspect_view_table *table = &views[i].table[t];
            sum[n++] = (struct dp_digest_table){table->spec.name, table->spec.dim, table->digest};
            if (table->digest.rows == 0) /* without --digest */
                sum[n - 1].digest.rows = table->rows;
        }
    if (!sum)
        return NULL;
    qsort(sum, n, sizeof sum[0], compare_names);
    *tables = 0;
    for (size_t i = 0; i < n; i++) {
        if (*tables > 0 && strcmp(sum[*tables - 1].name, sum[i].name) == 0)
            dp_digest_add(&sum[*tables - 1].digest, &sum[i].digest);
        else
            sum[(*tables)++] = sum[i];
    }
    return sum;
}
