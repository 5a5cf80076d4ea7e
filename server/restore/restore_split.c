#include "server/restore/restore_split.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "server/durable/snapshots.h"
#include "server/durable/table_mark.h"
#include "server/restore/restore_source.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct splitting {
    const struct dp_restore_split *o;
    struct dp_store *store; /* [count] */
    struct dp_restore_target *target;
    struct dp_restore_rows *rows;
    uint64_t streams; /* no stream from this one on was given out */
    /* What the old shards that were read last reverted to (server/durable/snapshots.h), if all say the same. */
    uint32_t read, reverted;
    char reverted_mark[DP_SNAPSHOT_MARK_BYTES];
};

static void wake(void *context)
{
    (void)context; /* its jobs are waited for (store.h, wait) */
}

static enum dp_status path_of(struct dp_checkpoint_path *path, const struct dp_restore_split *o,
                              const char *prefix, uint32_t index, struct dp_error *err)
{
    return dp_checkpoint_path(path, err, "%s/%s-%04" PRIu32, o->building, prefix, index);
}

static enum dp_status open_targets(struct splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++) {
        struct dp_checkpoint_path path;
        const struct dp_rocks_store_options store = {.directory = path.text,
                                                     .cluster = o->own->cluster,
                                                     .generation = o->own->generation,
                                                     .history = o->own->history,
                                                     .range = dp_range_of_shard(o->first + i, o->total),
                                                     .wake = wake};
        st = path_of(&path, o, "shard", o->first + i, err);
        if (st == DP_OK)
            st = dp_rocks_store_open(&store, &s->store[i], err);
        s->target[i] = (struct dp_restore_target){.range = store.range, .store = &s->store[i]};
    }
    return st;
}

/* ---- old shards */

static bool meets(struct dp_range a, struct dp_range b)
{
    return a.first <= b.last && b.first <= a.last;
}

static bool is_needed(const struct dp_restore_split *o, struct dp_range range)
{
    for (uint32_t i = 0; i < o->count; i++)
        if (meets(dp_range_of_shard(o->first + i, o->total), range))
            return true;
    return false;
}

static enum dp_status see_streams(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct splitting *s = context;
    uint64_t streams = mark->value_bytes == 8 ? dp_load_u64le(mark->value) : 0;
    (void)err;
    s->streams = streams > s->streams ? streams : s->streams;
    return DP_OK;
}

/* Its lsn is the old shard's: 0 says that pushes came since. */
static enum dp_status see_reverted(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct splitting *s = context;
    (void)err;
    if (mark->value_bytes != DP_SNAPSHOT_MARK_BYTES ||
        (s->reverted > 0 && memcmp(s->reverted_mark, mark->value, 8) != 0))
        return DP_OK;
    memcpy(s->reverted_mark, mark->value, 8);
    s->reverted++;
    return DP_OK;
}

static enum dp_status see_marks(struct splitting *s, const struct dp_store *store, struct dp_error *err)
{
    s->read++;
    enum dp_status st = store->visit_marks(store->self, "streams", 7, see_streams, s, err);
    if (st == DP_OK)
        st = store->visit_marks(store->self, DP_SNAPSHOT_MARK, sizeof DP_SNAPSHOT_MARK - 1, see_reverted, s,
                                err);
    return st;
}

static enum dp_status take_shard(struct splitting *s, uint32_t index, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    const struct dp_manifest_shard *shard = &o->from->manifest.shard[index];
    struct dp_restore_source *source = NULL;
    struct dp_checkpoint_path path;
    enum dp_status st = path_of(&path, o, "source", index, err);
    const struct dp_restore_source_options options = {.directory = path.text,
                                                      .index = index,
                                                      .shards = shard->shards,
                                                      .cluster = o->own->cluster,
                                                      .cache_bytes = o->cache_bytes,
                                                      .journal_bytes = o->journal_bytes};
    if (st == DP_OK)
        st = dp_restore_copy(o->from, index, o->own, path.text, err);
    if (st == DP_OK)
        st = dp_restore_source_open(&options, &source, err);
    struct dp_store *store = st == DP_OK ? dp_restore_source_store(source) : NULL;
    if (st == DP_OK)
        st = see_marks(s, store, err);
    if (st == DP_OK)
        st = dp_restore_rows_take(s->rows, store, shard->range, err);
    dp_restore_source_close(&source);
    if (st == DP_OK)
        st = dp_restore_remove(path.text, true, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "shard %" PRIu32 " of the checkpoint's %" PRIu32 ": its rows are restored", index,
               shard->shards);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32 " of the checkpoint", index);
}

/* ---- marks */

static void put_tables(struct dp_restore_marks *marks, const struct splitting *s, uint32_t target)
{
    const struct dp_restore_from *from = s->o->from;
    for (uint32_t i = 0; i < from->tables; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        const struct dp_store_mark mark =
            dp_table_mark_encode(&from->table[i].spec, dp_restore_rows_count(s->rows, target, i), bytes);
        dp_restore_marks_put(marks, &mark);
    }
}

/* Durable when it returns. */
static enum dp_status put_marks(struct dp_store *store, const struct dp_restore_marks *marks,
                                struct dp_error *err)
{
    struct dp_store_job *done, job = {.kind = DP_STORE_MARKS, .count = marks->count, .marks = marks->mark};
    DP_ASSERT(store->submit(store->self, &job) == DP_OK); /* the only one */
    while (!(done = store->completed(store->self)))
        store->wait(store->self);
    DP_ASSERT(done == &job);
    if (job.status != DP_OK)
        *err = job.error;
    return job.status;
}

static enum dp_status finish(struct splitting *s, uint32_t target, struct dp_error *err)
{
    const struct dp_restore_from *from = s->o->from;
    struct dp_restore_marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return dp_fail(err, DP_NOMEM, "the marks of shard %" PRIu32, s->o->first + target);
    /* The journal goes on behind every row, whichever shard it is from. One that began lower would give a push an lsn that its row
     * has already: it would be answered, and skipped. */
    dp_restore_marks_put_u64(marks, "lsn", from->lsn_max);
    dp_restore_marks_put_bytes(marks, "ids", from->ids, (size_t)from->manifest.ids.bytes);
    if (from->steps)
        dp_restore_marks_put_bytes(marks, "steps", from->steps, (size_t)from->manifest.steps.bytes);
    if (s->streams > 0)
        dp_restore_marks_put_u64(marks, "streams", s->streams);
    if (s->reverted > 0 && s->reverted == s->read)
        dp_restore_marks_put_bytes(marks, DP_SNAPSHOT_MARK, s->reverted_mark, sizeof s->reverted_mark);
    put_tables(marks, s, target);
    enum dp_status st = marks->failed
                            ? dp_fail(err, DP_NOMEM, "the marks of shard %" PRIu32, s->o->first + target)
                            : put_marks(&s->store[target], marks, err);
    dp_restore_marks_clear(marks);
    free(marks);
    return st == DP_OK ? dp_rocks_store_mark_clean(&s->store[target], err) : st;
}

/* ---- */

static enum dp_status split(struct splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    const struct dp_manifest *m = &o->from->manifest;
    const struct dp_restore_rows_options rows = {.target = s->target,
                                                 .targets = o->count,
                                                 .table = o->from->table,
                                                 .tables = o->from->tables,
                                                 .lsn_max = o->from->lsn_max};
    enum dp_status st = open_targets(s, err);
    if (st == DP_OK)
        st = dp_restore_rows_new(&rows, &s->rows, err);
    for (uint32_t i = 0; st == DP_OK && i < m->shards; i++)
        if (is_needed(o, m->shard[i].range))
            st = take_shard(s, i, err);
    if (st == DP_OK)
        st = dp_restore_rows_end(s->rows, err);
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++)
        st = finish(s, i, err);
    dp_restore_rows_free(&s->rows); /* before the stores: it may have jobs there */
    return st;
}

enum dp_status dp_restore_split(const struct dp_restore_split *o, struct dp_error *err)
{
    struct splitting s = {
        .o = o, .store = calloc(o->count, sizeof s.store[0]), .target = calloc(o->count, sizeof s.target[0])};
    enum dp_status st = s.store && s.target
                            ? split(&s, err)
                            : dp_fail(err, DP_NOMEM, "restoring %" PRIu32 " shards", o->count);
    for (uint32_t i = 0; s.store && i < o->count; i++)
        if (s.store[i].close)
            s.store[i].close(s.store[i].self);
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++) {
        struct dp_checkpoint_path path;
        st = path_of(&path, o, "shard", o->first + i, err);
        if (st == DP_OK)
            st = dp_checkpoint_sync_directory(path.text, err);
    }
    free(s.store);
    free(s.target);
    return st;
}
