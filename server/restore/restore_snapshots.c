#include "server/restore/restore_snapshots.h"

#include "common/base/log.h"
#include "server/store/rocks_store.h"
#include "server/store/snapshot_name.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct snapshot_splitting {
    const struct dp_restore_split *o;
    struct dp_store_snapshot is;
    struct dp_store *store; /* [count], the ones beside */
    struct dp_restore_target *target;
    struct dp_restore_rows *rows;
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

static enum dp_status open_beside(struct snapshot_splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++) {
        struct dp_checkpoint_path path;
        const struct dp_rocks_store_options store = {.directory = path.text,
                                                     .cluster = o->own->cluster,
                                                     .range = dp_range_of_shard(o->first + i, o->total),
                                                     .wake = wake};
        st = path_of(&path, o, "keeping", o->first + i, err);
        if (st == DP_OK)
            st = dp_rocks_store_open(&store, &s->store[i], err);
        s->target[i] = (struct dp_restore_target){.range = store.range, .store = &s->store[i]};
    }
    return st;
}

/* ---- rows */

static enum dp_status visit_view(void *self,
                                 enum dp_status (*visit)(void *context, struct dp_store_key key,
                                                         const void *row, size_t row_bytes,
                                                         struct dp_error *err),
                                 void *context, struct dp_error *err)
{
    return dp_store_view_rows(self, NULL, visit, context, err);
}

static enum dp_status take_shard(struct snapshot_splitting *s, uint32_t index, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    struct dp_store_view *view = NULL;
    struct dp_checkpoint_path path;
    enum dp_status st = path_of(&path, o, "source", index, err);
    if (st == DP_OK)
        st = dp_restore_copy_snapshot(o->from, index, s->is, NULL, path.text, err);
    if (st == DP_OK)
        st = dp_store_view_open(path.text, NULL, &view, err);
    const struct dp_store seen = {.visit_rows = visit_view, .self = view};
    if (st == DP_OK)
        st = dp_restore_rows_take(s->rows, &seen, o->from->manifest.shard[index].range, err);
    dp_store_view_close(&view);
    if (st == DP_OK)
        st = dp_restore_remove(path.text, true, err);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32 " of the checkpoint", index);
}

static enum dp_status take_rows(struct snapshot_splitting *s, struct dp_error *err)
{
    const struct dp_restore_from *from = s->o->from;
    const struct dp_restore_rows_options rows = {.target = s->target,
                                                 .targets = s->o->count,
                                                 .table = from->table,
                                                 .tables = from->tables,
                                                 .lsn_max = from->lsn_max};
    enum dp_status st = dp_restore_rows_new(&rows, &s->rows, err);
    for (uint32_t i = 0; st == DP_OK && i < from->manifest.shards; i++)
        if (dp_restore_split_needs(s->o, from->manifest.shard[i].range))
            st = take_shard(s, i, err);
    if (st == DP_OK)
        st = dp_restore_rows_end(s->rows, err);
    dp_restore_rows_free(&s->rows); /* before the stores: it may have jobs there */
    return st;
}

/* ---- snapshots */

static enum dp_status take(const struct snapshot_splitting *s, uint32_t target, struct dp_error *err)
{
    struct dp_store *store = &s->store[target];
    struct dp_store_job *done, job = {.kind = DP_STORE_SNAPSHOT, .snapshot = s->is};
    DP_ASSERT(store->submit(store->self, &job) == DP_OK); /* the only one */
    while (!(done = store->completed(store->self)))
        store->wait(store->self);
    DP_ASSERT(done == &job);
    if (job.status != DP_OK)
        *err = job.error;
    return job.status;
}

static enum dp_status move(const struct snapshot_splitting *s, uint32_t target, struct dp_error *err)
{
    struct dp_checkpoint_path beside, shard, from, to;
    char name[DP_SNAPSHOT_NAME_BYTES];
    dp_store_snapshot_name(s->is, name);
    enum dp_status st = path_of(&beside, s->o, "keeping", s->o->first + target, err);
    if (st == DP_OK)
        st = path_of(&shard, s->o, "shard", s->o->first + target, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&from, err, "%s/%s", beside.text, name);
    if (st == DP_OK)
        st = dp_checkpoint_path(&to, err, "%s/%s", shard.text, name);
    if (st == DP_OK && rename(from.text, to.text) != 0)
        st = dp_checkpoint_failed(err, "rename", from.text);
    return st == DP_OK ? dp_restore_remove(beside.text, true, err) : st;
}

static enum dp_status split_one(struct snapshot_splitting *s, struct dp_error *err)
{
    const struct dp_restore_split *o = s->o;
    enum dp_status st = open_beside(s, err);
    if (st == DP_OK)
        st = take_rows(s, err);
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++)
        st = take(s, i, err);
    for (uint32_t i = 0; i < o->count; i++)
        if (s->store[i].close) {
            s->store[i].close(s->store[i].self);
            s->store[i] = (struct dp_store){0};
        }
    for (uint32_t i = 0; st == DP_OK && i < o->count; i++)
        st = move(s, i, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "the weights that were kept of epoch %" PRIu32 " of run %" PRIu32 " are restored",
               s->is.epoch, s->is.run);
    return st == DP_OK
               ? st
               : dp_wrap(err, st, "the snapshot of run %" PRIu32 ", epoch %" PRIu32, s->is.run, s->is.epoch);
}

enum dp_status dp_restore_snapshots_split(const struct dp_restore_split *o, struct dp_error *err)
{
    struct snapshot_splitting s = {
        .o = o, .store = calloc(o->count, sizeof s.store[0]), .target = calloc(o->count, sizeof s.target[0])};
    enum dp_status st =
        s.store && s.target ? DP_OK : dp_fail(err, DP_NOMEM, "the snapshots of %" PRIu32 " shards", o->count);
    for (uint32_t i = 0; st == DP_OK && i < o->from->snapshots; i++) {
        s.is = o->from->snapshot[i];
        st = split_one(&s, err);
    }
    free(s.store);
    free(s.target);
    return st;
}
