#include "server/checkpoint/copy_run.h"

#include "common/env/directory.h"
#include "common/model/range.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/pool.h"
#include "server/checkpoint/tail.h"
#include "server/durable/table_mark.h"
#include "server/store/store_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a processor, while shards are busy. Priority alone is not enough: what others leave of one processor is taken from their caches, and
 * from its other half where two share a core. */
#define SHARE_PERCENT 25u

struct dp_copy_run {
    struct dp_copy_job *job;
    const struct dp_copy_place *place;
    struct dp_checkpoint_path making, link;
    struct dp_manifest_shard shard;
    struct dp_pace pace;
    struct dp_manifest_files link_files; /* names and sizes */
};

/* ---- places */

static enum dp_status check_places(struct dp_copy_run *run, struct dp_error *err)
{
    struct stat is;
    char name[DP_COPY_LINK_BYTES];
    struct dp_copy_job *job = run->job;
    enum dp_status st = dp_checkpoint_path_making(job->directory, job->order, &run->making, err);
    dp_copy_link_name(job->order, job->cut, name);
    if (st == DP_OK)
        st = dp_checkpoint_path(&run->link, err, "%s/%s", run->place->directory, name);
    if (st == DP_OK && (stat(run->making.text, &is) != 0 || !S_ISDIR(is.st_mode)))
        st = dp_fail(err, DP_ARGUMENT,
                     "%.300s is not there: the checkpoints' directory must be one that all servers and the "
                     "command share",
                     run->making.text);
    return st == DP_OK ? dp_checkpoint_place_check(job->directory, err) : st;
}

static enum dp_status see_file(void *context, const char *name, struct dp_error *err)
{
    static const char none[] = "00000000000000000000000000000000";
    struct dp_copy_run *run = context;
    struct dp_checkpoint_path path;
    struct stat is;
    enum dp_status st = dp_checkpoint_path(&path, err, "%s/%s", run->link.text, name);
    if (st == DP_OK && lstat(path.text, &is) != 0)
        st = dp_checkpoint_failed(err, "look at", path.text);
    if (st != DP_OK || !S_ISREG(is.st_mode))
        return st;
    atomic_fetch_add(&run->job->all_bytes, (uint64_t)is.st_size);
    return dp_manifest_files_add(&run->link_files, name, (uint64_t)is.st_size, none, err);
}

static enum dp_status see_link(struct dp_copy_run *run, struct dp_error *err)
{
    return dp_checkpoint_visit(run->link.text, see_file, run, err);
}

/* ---- parts */

static enum dp_status copy_tail(struct dp_copy_run *run, struct dp_error *err)
{
    struct dp_checkpoint_path from, to;
    enum dp_status st = dp_checkpoint_path(&from, err, "%s/journal", run->place->directory);
    if (st == DP_OK)
        st = dp_checkpoint_path(&to, err, "%s/tail-%04" PRIu32, run->making.text, run->job->shard);
    if (st == DP_OK) /* of a cut that was made again */
        st = dp_directory_remove(to.text, true, DP_CHECKPOINT_DEPTH, err);
    const struct dp_tail_options options = {
        .from = from.text, .to = to.text, .job = run->job, .pace = &run->pace};
    if (st == DP_OK)
        st = dp_tail_copy(&options, &run->shard.tail, err);
    if (st == DP_OK)
        st = dp_checkpoint_sync_directory(run->making.text, err);
    for (size_t i = 0; st == DP_OK && i < run->shard.tail.files.count; i++)
        run->shard.bytes_new += run->shard.tail.files.file[i].bytes;
    if (st == DP_OK)
        atomic_store(&run->job->all_bytes,
                     atomic_load(&run->job->all_bytes) + atomic_load(&run->job->done_bytes));
    return st;
}

static enum dp_status copy_files(struct dp_copy_run *run, struct dp_error *err)
{
    struct dp_pool pool = {.directory = run->job->directory,
                           .store = run->job->store,
                           .order = run->job->order,
                           .full = run->job->full,
                           .link = run->job->link,
                           .pace = &run->pace};
    enum dp_status st = dp_pool_open(&pool, err);
    for (size_t i = 0; st == DP_OK && i < run->link_files.count; i++) {
        struct dp_checkpoint_path from;
        const char *name = run->link_files.file[i].name;
        st = dp_checkpoint_path(&from, err, "%s/%s", run->link.text, name);
        if (st == DP_OK)
            st = dp_pool_put(&pool, from.text, name, &run->shard.files, err);
    }
    if (st == DP_OK)
        st = dp_pool_sync(&pool, err);
    run->shard.bytes_new += pool.bytes_new;
    dp_pool_close(&pool);
    return st;
}

/* ---- tables */

static enum dp_status see_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_manifest_tables *tables = context;
    struct dp_manifest_table *more = realloc(tables->table, (tables->count + 1) * sizeof more[0]);
    if (!more)
        return dp_fail(err, DP_NOMEM, "no memory for a list of tables");
    tables->table = more;
    struct dp_manifest_table *table = &more[tables->count];
    enum dp_status st = dp_table_mark_decode(mark, &table->spec, &table->rows, err);
    tables->count += st == DP_OK;
    return st;
}

static enum dp_status link_tables(void *context, const char *link, struct dp_manifest_tables *out,
                                  struct dp_error *err)
{
    struct dp_store_view *view = NULL;
    (void)context;
    enum dp_status st = dp_store_view_open(link, NULL, &view, err);
    if (st != DP_OK)
        return st;
    st = dp_store_view_marks(view, DP_TABLE_MARK_PREFIX, see_mark, out, err);
    dp_store_view_close(&view);
    return st;
}

static int by_name(const void *a, const void *b)
{
    const struct dp_manifest_table *x = a, *y = b;
    return strcmp(x->spec.name, y->spec.name);
}

/* The counts are as of A, or unknown: the tail changes them. */
static enum dp_status take_tables(struct dp_copy_run *run, struct dp_error *err)
{
    struct dp_manifest_tables *tables = &run->shard.tables;
    enum dp_status st = run->place->tables
                            ? run->place->tables(run->place->context, run->link.text, tables, err)
                            : link_tables(NULL, run->link.text, tables, err);
    if (tables->count > 0)
        qsort(tables->table, tables->count, sizeof tables->table[0], by_name);
    for (size_t i = 0; i < tables->count; i++)
        tables->table[i].rows = DP_TABLE_ROWS_UNKNOWN;
    return st;
}

/* ---- all */

static void free_run(struct dp_copy_run **run)
{
    dp_manifest_files_clear(&(*run)->link_files);
    dp_manifest_shard_clear(&(*run)->shard);
    free(*run);
    *run = NULL;
}

/* Sets the job's status: the run is over. */
static void set_status(struct dp_copy_job *job, enum dp_status st)
{
    job->status = st;
    if (st == DP_OK)
        job->error = (struct dp_error){0};
    else
        (void)dp_wrap(&job->error, st, "copying shard %" PRIu32, job->shard);
}

static struct dp_copy_run *run_of(struct dp_copy_job *job, const struct dp_copy_place *place)
{
    struct dp_copy_run *run = calloc(1, sizeof *run);
    if (!run)
        return NULL;
    run->job = job;
    run->place = place;
    run->pace = dp_pace_real();
    run->pace.rate_bytes = job->rate_bytes;
    run->pace.done_bytes = &job->done_bytes;
    run->pace.cancelled = &job->cancelled;
    run->shard.index = job->shard;
    run->shard.shards = job->shards;
    run->shard.range = dp_range_of_shard(job->shard, job->shards);
    run->shard.store = job->store;
    run->shard.lsn = job->lsn;
    run->shard.after = job->after;
    return run;
}

struct dp_copy_run *dp_copy_run_begin(struct dp_copy_job *job, const struct dp_copy_place *place)
{
    struct dp_error *err = &job->error;
    struct dp_copy_run *run = run_of(job, place);
    enum dp_status st =
        run ? dp_pace_step(&run->pace, 0, err) : dp_fail(err, DP_NOMEM, "no memory for a copy");
    if (st == DP_OK)
        st = check_places(run, err);
    if (st == DP_OK)
        st = see_link(run, err);
    if (st == DP_OK)
        st = copy_tail(run, err);
    if (st == DP_OK) {
        atomic_store(&job->has_tail, true);
        return run;
    }
    set_status(job, st);
    if (run)
        free_run(&run);
    return NULL;
}

void dp_copy_run_end(struct dp_copy_run **run)
{
    struct dp_copy_job *job = (*run)->job;
    struct dp_error *err = &job->error;
    (*run)->pace.between = (*run)->place->between;
    (*run)->pace.between_context = (*run)->place->between_context;
    (*run)->pace.share_percent = SHARE_PERCENT; /* not of the tail, for which the journal is held */
    enum dp_status st = copy_files(*run, err);
    if (st == DP_OK) /* last: RocksDB may leave files of its own in what it reads */
        st = take_tables(*run, err);
    if (st == DP_OK) {
        job->manifest = dp_manifest_shard_text(&(*run)->shard);
        st = job->manifest
                 ? DP_OK
                 : dp_fail(err, DP_NOMEM, "no memory for the manifest of shard %" PRIu32, job->shard);
    }
    free_run(run);
    set_status(job, st);
}

void dp_copy_run_drop(struct dp_copy_run **run)
{
    if (*run)
        free_run(run);
}
