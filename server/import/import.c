#include "server/import/import.h"

#include "common/env/directory.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/pool.h"
#include "server/checkpoint/tail.h"
#include "server/checkpoint/verify.h"
#include "server/control/register_file.h"
#include "server/durable/table_mark.h"
#include "server/ids/push_ids.h"
#include "server/restore/restore_marks.h"
#include "server/restore/restore_rows.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define LSN   1u      /* of each row */
#define STORE "store" /* in the directory of the checkpoint in the making */

struct importing {
    const struct dp_import_options *o;
    uint64_t order;
    struct dp_checkpoint_path making, store, link;
    char link_name[DP_COPY_LINK_BYTES];
    const struct dp_import_table **table; /* [tables], ascending by id */
    struct dp_manifest manifest;
    struct dp_manifest_shard *shard; /* the manifest's only one */
    struct dp_pace pace;
    struct dp_pool pool;
    uint64_t rows;
    void *ids;
    size_t ids_bytes;
};

static int by_id(const void *a, const void *b)
{
    const struct dp_import_table *const *x = a, *const *y = b;
    uint32_t i = dp_table_id((*x)->spec.name), k = dp_table_id((*y)->spec.name);
    return (i > k) - (i < k);
}

static int by_name(const void *a, const void *b)
{
    const struct dp_manifest_table *x = a, *y = b;
    return strcmp(x->spec.name, y->spec.name);
}

/* ---- the rows */

struct import_place {
    uint64_t mixed, index;
};

static int by_mixed(const void *a, const void *b)
{
    const struct import_place *x = a, *y = b;
    return (x->mixed > y->mixed) - (x->mixed < y->mixed);
}

static enum dp_status visit_table(const struct dp_import_table *t, dp_store_visit_row *visit, void *context,
                                  struct dp_error *err)
{
    struct import_place *place =
        t->rows <= SIZE_MAX / sizeof *place - 1 ? malloc((t->rows + 1) * sizeof *place) : NULL;
    size_t row_bytes = dp_row_bytes(&t->spec);
    void *row = malloc(row_bytes);
    enum dp_status st = place && row ? DP_OK
                                     : dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " rows of table '%s'",
                                               t->rows, t->spec.name);
    for (uint64_t i = 0; st == DP_OK && i < t->rows; i++)
        place[i] = (struct import_place){dp_mix(t->key(t->of, i)), i};
    if (st == DP_OK)
        qsort(place, t->rows, sizeof *place, by_mixed);
    for (uint64_t i = 0; st == DP_OK && i < t->rows; i++) {
        const struct dp_store_key key = {dp_table_id(t->spec.name), place[i].mixed};
        DP_ASSERT(i == 0 || place[i - 1].mixed < place[i].mixed);
        bool stored = true;
        dp_init_row(&t->spec, dp_unmix(place[i].mixed), row);
        st = t->fill(t->of, place[i].index, row, &stored, err);
        if (st != DP_OK || !stored)
            continue;
        dp_row_set_lsn(row, LSN);
        st = visit(context, key, row, row_bytes, err);
    }
    if (st == DP_OK && t->unchanged)
        st = t->unchanged(t->of, err);
    free(place);
    free(row);
    return st;
}

/* Of a store that has only this: the tables' rows, in the order of stored keys. */
static enum dp_status visit_rows(void *self, dp_store_visit_row *visit, void *context, struct dp_error *err)
{
    const struct importing *m = self;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < m->o->tables; i++)
        st = visit_table(m->table[i], visit, context, err);
    return st;
}

/* ---- the store */

/* counts: [tables], by id. */
static enum dp_status write_rows(struct importing *m, struct dp_store *store, uint64_t *counts,
                                 struct dp_error *err)
{
    const struct dp_store source = {.visit_rows = visit_rows, .self = m};
    const struct dp_restore_target target = {m->shard->range, store};
    struct dp_restore_table *tables = calloc(m->o->tables + 1, sizeof *tables);
    struct dp_restore_rows *rows = NULL;
    if (!tables)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " tables", m->o->tables);
    for (uint32_t i = 0; i < m->o->tables; i++)
        tables[i] =
            (struct dp_restore_table){.id = dp_table_id(m->table[i]->spec.name), .spec = m->table[i]->spec};
    const struct dp_restore_rows_options options = {
        .target = &target, .targets = 1, .table = tables, .tables = m->o->tables, .lsn_max = LSN};
    enum dp_status st = dp_restore_rows_new(&options, &rows, err);
    if (st == DP_OK)
        st = dp_restore_rows_take(rows, &source, m->shard->range, err);
    if (st == DP_OK)
        st = dp_restore_rows_end(rows, err);
    for (uint32_t i = 0; st == DP_OK && i < m->o->tables; i++) {
        counts[i] = dp_restore_rows_count(rows, 0, i);
        m->rows += counts[i];
    }
    dp_restore_rows_free(&rows);
    free(tables);
    return st;
}

static enum dp_status write_marks(struct importing *m, struct dp_store *store, const uint64_t *counts,
                                  struct dp_error *err)
{
    struct dp_restore_marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return dp_fail(err, DP_NOMEM, "no memory for marks");
    dp_restore_marks_put_u64(marks, "lsn", LSN);
    dp_restore_marks_put_bytes(marks, "ids", m->ids, m->ids_bytes);
    for (uint32_t i = 0; i < m->o->tables; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        const struct dp_store_mark mark = dp_table_mark_encode(&m->table[i]->spec, counts[i], bytes);
        dp_restore_marks_put(marks, &mark);
    }
    enum dp_status st = dp_restore_marks_write(marks, store, err);
    dp_restore_marks_clear(marks);
    free(marks);
    return st;
}

static enum dp_status list_tables(struct importing *m, const uint64_t *counts, struct dp_error *err)
{
    struct dp_manifest_tables *tables = &m->shard->tables;
    tables->table = calloc(m->o->tables + 1, sizeof *tables->table);
    if (!tables->table)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " tables", m->o->tables);
    for (uint32_t i = 0; i < m->o->tables; i++)
        tables->table[i] = (struct dp_manifest_table){.spec = m->table[i]->spec, .rows = counts[i]};
    tables->count = m->o->tables;
    qsort(tables->table, tables->count, sizeof *tables->table, by_name);
    return DP_OK;
}

static enum dp_status fill_store(struct importing *m, struct dp_store *store, struct dp_error *err)
{
    uint64_t *counts = calloc(m->o->tables + 1, sizeof *counts);
    struct dp_store_job link = {.kind = DP_STORE_LINK};
    enum dp_status st =
        counts ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " tables", m->o->tables);
    (void)snprintf(link.link_name, sizeof link.link_name, "%s", m->link_name);
    if (st == DP_OK)
        st = write_rows(m, store, counts, err);
    if (st == DP_OK)
        st = write_marks(m, store, counts, err);
    if (st == DP_OK)
        st = dp_store_do(store, &link, err);
    if (st == DP_OK)
        st = list_tables(m, counts, err);
    free(counts);
    return st;
}

/* As a shard's, that is linked while it is open; the link is left. */
static enum dp_status make_store(struct importing *m, struct dp_error *err)
{
    struct dp_store store = {0};
    struct dp_store_id id;
    const struct dp_rocks_store_options options = {
        .directory = m->store.text, .cluster = m->o->cluster, .range = m->shard->range, .id = &id};
    enum dp_status st = dp_rocks_store_open(&options, &store, err);
    if (st != DP_OK)
        return st;
    m->shard->store = id.id;
    st = fill_store(m, &store, err);
    store.close(store.self);
    return st;
}

/* ---- its files */

static enum dp_status pool_file(void *context, const char *name, struct dp_error *err)
{
    struct importing *m = context;
    struct dp_checkpoint_path from;
    struct stat is;
    enum dp_status st = dp_checkpoint_path(&from, err, "%s/%s", m->link.text, name);
    if (st == DP_OK && lstat(from.text, &is) != 0)
        st = dp_checkpoint_failed(err, "look at", from.text);
    return st == DP_OK && S_ISREG(is.st_mode) ? dp_pool_put(&m->pool, from.text, name, &m->shard->files, err)
                                              : st;
}

static enum dp_status pool_files(struct importing *m, struct dp_error *err)
{
    m->pool = (struct dp_pool){
        .directory = m->o->directory, .store = m->shard->store, .order = m->order, .pace = &m->pace};
    enum dp_status st = dp_pool_open(&m->pool, err);
    if (st != DP_OK)
        return st;
    st = dp_checkpoint_visit(m->link.text, pool_file, m, err);
    if (st == DP_OK)
        st = dp_pool_sync(&m->pool, err);
    m->shard->bytes_new = m->pool.bytes_new;
    dp_pool_close(&m->pool);
    return st;
}

/* Of no records: where the journals of restored stores go on. */
static enum dp_status make_tail(struct importing *m, struct dp_error *err)
{
    struct dp_checkpoint_path journal, to;
    struct dp_copy_job *job = dp_copy_job_new();
    if (!job)
        return dp_fail(err, DP_NOMEM, "no memory for a journal");
    job->lsn = job->after = job->until = LSN;
    enum dp_status st = dp_checkpoint_path(&journal, err, "%s/journal", m->store.text);
    if (st == DP_OK)
        st = dp_directory_make(journal.text, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&to, err, "%s/tail-0000", m->making.text);
    const struct dp_tail_options options = {
        .from = journal.text, .to = to.text, .job = job, .pace = &m->pace};
    if (st == DP_OK)
        st = dp_tail_copy(&options, &m->shard->tail, err);
    for (size_t i = 0; st == DP_OK && i < m->shard->tail.files.count; i++)
        m->shard->bytes_new += m->shard->tail.files.file[i].bytes;
    dp_copy_job_free(&job);
    return st;
}

/* ---- the other files */

static enum dp_status put_register(struct importing *m, struct dp_error *err)
{
    struct dp_control_register_content content = {0};
    dp_store_id_draw(&content.id);
    void *bytes = dp_control_register_file_pack(&content);
    enum dp_status st = bytes ? dp_checkpoint_put(m->o->directory, m->order, DP_REGISTER_FILE, bytes,
                                                  dp_control_register_file_bytes(&content),
                                                  &m->manifest.register_file, NULL, err)
                              : dp_fail(err, DP_NOMEM, "no memory for a register");
    free(bytes);
    return st;
}

static enum dp_status put_files(struct importing *m, struct dp_error *err)
{
    const struct dp_import_options *o = m->o;
    enum dp_status st =
        dp_checkpoint_put(o->directory, m->order, "ids", m->ids, m->ids_bytes, &m->manifest.ids, NULL, err);
    if (st == DP_OK)
        st = put_register(m, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(o->directory, m->order, "cluster.conf", o->cluster_file, o->cluster_file_bytes,
                               &m->manifest.cluster_file, NULL, err);
    for (int i = 0; st == DP_OK && i < DP_SIDE_FILES; i++)
        if (o->side[i])
            st = dp_checkpoint_put(o->directory, m->order, dp_side_files[i].name, o->side[i],
                                   o->side_bytes[i], &m->manifest.side[i], NULL, err);
    return st;
}

static enum dp_status publish(struct importing *m, struct dp_error *err)
{
    struct dp_verify seen;
    enum dp_status st = put_files(m, err);
    if (st == DP_OK)
        st = dp_manifest_sum(&m->manifest, err);
    for (size_t i = 0; st == DP_OK && i < m->manifest.tables.count; i++)
        m->manifest.tables.table[i].rows = m->shard->tables.table[i].rows;
    if (st == DP_OK) /* before it counts: a checkpoint has nothing else in its directory */
        st = dp_directory_remove(m->store.text, true, DP_CHECKPOINT_DEPTH, err);
    if (st == DP_OK)
        st = dp_checkpoint_publish(m->o->directory, &m->manifest, err);
    if (st != DP_OK)
        return st;
    const struct dp_verify_options verify = {
        .directory = m->o->directory, .number = m->manifest.number, .checksums = true, .pace = &m->pace};
    st = dp_checkpoint_verify(&verify, &seen, err);
    return st == DP_OK ? st : dp_wrap(err, st, "checkpoint %" PRIu32, m->manifest.number);
}

/* ---- all */

static enum dp_status prepare(struct importing *m, struct dp_error *err)
{
    struct dp_push_ids *ids = NULL;
    struct tm tm;
    char made[32];
    time_t now = time(NULL);
    (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    dp_store_id_draw(&m->order);
    dp_copy_link_name(m->order, 1, m->link_name);
    m->table = calloc(m->o->tables + 1, sizeof *m->table);
    m->shard = calloc(1, sizeof *m->shard);
    m->manifest = (struct dp_manifest){.order = m->order,
                                       .made = strdup(made),
                                       .cluster = m->o->cluster,
                                       .cluster_name = strdup(m->o->cluster_name),
                                       .generation = DP_GENERATION_FIRST,
                                       .shard = m->shard,
                                       .shards = m->shard ? 1 : 0};
    enum dp_status st = dp_push_ids_new(&ids);
    if (st == DP_OK)
        m->ids = dp_push_ids_pack(ids, &m->ids_bytes);
    dp_push_ids_free(&ids);
    if (!m->table || !m->shard || !m->manifest.made || !m->manifest.cluster_name || !m->ids)
        return dp_fail(err, DP_NOMEM, "no memory for a checkpoint");
    *m->shard =
        (struct dp_manifest_shard){.shards = 1, .range = dp_range_of_shard(0, 1), .lsn = LSN, .after = LSN};
    for (uint32_t i = 0; i < m->o->tables; i++)
        m->table[i] = &m->o->table[i];
    qsort(m->table, m->o->tables, sizeof *m->table, by_id);
    st = dp_checkpoint_path_making(m->o->directory, m->order, &m->making, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&m->store, err, "%s/" STORE, m->making.text);
    return st == DP_OK ? dp_checkpoint_path(&m->link, err, "%s/%s", m->store.text, m->link_name) : st;
}

static enum dp_status make(struct importing *m, struct dp_error *err)
{
    struct dp_error ignored;
    enum dp_status st = dp_checkpoint_begin(m->o->directory, m->order, err);
    if (st == DP_OK)
        st = dp_checkpoint_sweep(m->o->directory, m->order, err);
    if (st == DP_OK)
        st = make_store(m, err);
    if (st == DP_OK)
        st = pool_files(m, err);
    if (st == DP_OK)
        st = make_tail(m, err);
    if (st == DP_OK)
        st = publish(m, err);
    if (st != DP_OK && m->manifest.number == 0 &&
        dp_checkpoint_abandon(m->o->directory, m->order, &ignored) != DP_OK)
        return st; /* the next checkpoint sweeps it */
    return st;
}

enum dp_status dp_import(const struct dp_import_options *options, struct dp_imported *out,
                         struct dp_error *err)
{
    struct importing m = {.o = options, .pace = dp_pace_real()};
    int lock = -1;
    enum dp_status st = prepare(&m, err);
    if (st == DP_OK)
        st = dp_checkpoint_place_check(options->directory, err);
    if (st == DP_OK)
        st = dp_checkpoint_lock(options->directory, &lock, err);
    if (st == DP_OK)
        st = make(&m, err);
    *out = (struct dp_imported){m.manifest.number, m.rows, m.manifest.bytes};
    dp_checkpoint_unlock(&lock);
    dp_manifest_clear(&m.manifest);
    free(m.table);
    free(m.ids);
    return st;
}
