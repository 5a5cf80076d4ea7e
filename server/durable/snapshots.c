/* Why       If no push came since a cycle began, the store has after it the result of every push and
 *           nothing newer: its files are the snapshot. A push during the cycle makes another cycle necessary.
 *           The store writes in order, so the copy comes before all later write-back. */
#include "server/durable/snapshots.h"

#include "common/base/bytes.h"

#include <inttypes.h>

static bool is_same(struct dp_store_snapshot a, struct dp_store_snapshot b)
{
    return a.run == b.run && a.epoch == b.epoch;
}

bool dp_snapshots_holds(const struct dp_snapshots *s, struct dp_store_snapshot named)
{
    const struct dp_store *store = s->jobs->store;
    return named.run > 0 && store->holds && store->holds(store->self, named);
}

static void set_stage(struct dp_snapshots *s, enum dp_snapshot_stage stage)
{
    s->stage = stage;
    dp_write_back_set_cycles(s->write_back, stage == DP_SNAPSHOT_ROWS  ? DP_CYCLES_UNTIL_STORED
                                            : stage == DP_SNAPSHOT_DUE ? DP_CYCLES_NONE
                                                                       : DP_CYCLES_AS_DUE);
}

static void end(struct dp_snapshots *s, const struct dp_error *err)
{
    DP_ASSERT(s->stage != DP_SNAPSHOT_NONE);
    s->ended(s->context, err);
    set_stage(s, DP_SNAPSHOT_NONE);
}

/* ---- taking one */

struct dp_wait dp_snapshots_progress(struct dp_snapshots *s)
{
    uint64_t left = dp_cached_tables_dirty_rows(s->write_back->tables);
    s->rows_max = left > s->rows_max ? left : s->rows_max;
    return (struct dp_wait){.reason = DP_WAIT_SNAPSHOT,
                            .subject = (uint64_t)s->taken.run << 32 | s->taken.epoch,
                            .done = s->rows_max - left,
                            .total = s->rows_max};
}

enum dp_status dp_snapshots_take(struct dp_snapshots *s, struct dp_store_snapshot named,
                                 struct dp_store_snapshot keeps, struct dp_error *err)
{
    if (s->stage != DP_SNAPSHOT_NONE)
        return is_same(s->taken, named) && is_same(s->keeps, keeps)
                   ? DP_OK
                   : dp_fail_wait(err, DP_AGAIN, dp_snapshots_progress(s),
                                  "shard %" PRIu32 " is busy with another snapshot", s->base->index);
    DP_ASSERT(s->reverts.run == 0); /* a draining shard takes no order */
    s->taken = named;
    s->keeps = keeps;
    s->rows_max = dp_cached_tables_dirty_rows(s->write_back->tables);
    set_stage(s, named.run == 0 || dp_snapshots_holds(s, named) ? DP_SNAPSHOT_DUE : DP_SNAPSHOT_ROWS);
    return DP_OK;
}

static void taken(void *context, struct dp_io_job *job)
{
    struct dp_snapshots *s = context;
    struct dp_error err = job->store.error;
    DP_ASSERT(s->stage == DP_SNAPSHOT_COPY);
    if (job->store.status != DP_OK)
        (void)dp_wrap(&err, job->store.status, "shard %" PRIu32 ": no snapshot was taken", s->base->index);
    end(s, &err);
    dp_io_job_free(job);
}

static void submit(struct dp_snapshots *s)
{
    struct dp_io_job *job = dp_io_job_new(taken, s, NULL);
    if (!job)
        return; /* try in a later turn */
    DP_ASSERT(s->stage == DP_SNAPSHOT_DUE);
    job->store.kind = DP_STORE_SNAPSHOT;
    job->store.snapshot = s->taken;
    job->store.keeps = s->keeps;
    if (dp_io_jobs_submit(s->jobs, job) == DP_OK)
        set_stage(s, DP_SNAPSHOT_COPY);
    else
        dp_io_job_free(job);
}

void dp_snapshots_turn(struct dp_snapshots *s, const struct dp_error *stopping)
{
    const struct dp_write_back *w = s->write_back;
    const struct dp_error *why = dp_write_back_refuses(w);
    if (s->stage == DP_SNAPSHOT_NONE || s->stage == DP_SNAPSHOT_COPY)
        return;
    if (why || stopping) {
        struct dp_error err = {0};
        if (why)
            (void)dp_fail(&err, why->status, "shard %" PRIu32 " takes no snapshot: %.400s", s->base->index,
                          why->text);
        else
            err = *stopping;
        end(s, &err);
        return;
    }
    if (s->stage == DP_SNAPSHOT_ROWS && w->cycle == DP_CYCLE_IDLE && dp_write_back_has_all(w))
        set_stage(s, DP_SNAPSHOT_DUE);
    if (s->stage == DP_SNAPSHOT_DUE)
        submit(s);
}

/* ---- reverting */

void dp_snapshots_revert(struct dp_snapshots *s, struct dp_store_snapshot named)
{
    DP_ASSERT(s->stage == DP_SNAPSHOT_NONE && named.run > 0 && s->reverts.run == 0);
    s->reverts = named;
}

struct dp_store_mark dp_snapshots_mark(const struct dp_snapshots *s, char value[DP_SNAPSHOT_MARK_BYTES])
{
    dp_store_u32le(value, s->reverts.run);
    dp_store_u32le(value + 4, s->reverts.epoch);
    dp_store_u64le(value + 8, s->write_back->journaling->lsn);
    return (struct dp_store_mark){.key = DP_SNAPSHOT_MARK,
                                  .key_bytes = sizeof DP_SNAPSHOT_MARK - 1,
                                  .value = value,
                                  .value_bytes = DP_SNAPSHOT_MARK_BYTES};
}

static enum dp_status visit_reverted(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_snapshots *s = context;
    if (mark->value_bytes != DP_SNAPSHOT_MARK_BYTES)
        return dp_fail(err, DP_CORRUPT, "the store's mark '" DP_SNAPSHOT_MARK "' has %zu bytes, not %u",
                       mark->value_bytes, DP_SNAPSHOT_MARK_BYTES);
    const char *value = mark->value;
    s->reverted = (struct dp_store_snapshot){dp_load_u32le(value), dp_load_u32le(value + 4)};
    s->reverted_lsn = dp_load_u64le(value + 8);
    return DP_OK;
}

enum dp_status dp_snapshots_load(struct dp_snapshots *s, struct dp_error *err)
{
    const struct dp_store *store = s->jobs->store;
    return store->visit_marks(store->self, DP_SNAPSHOT_MARK, sizeof DP_SNAPSHOT_MARK - 1, visit_reverted, s,
                              err);
}

bool dp_snapshots_is_reverted(const struct dp_snapshots *s)
{
    return s->reverted.run > 0 && s->reverted_lsn == s->write_back->journaling->lsn;
}

enum dp_status dp_snapshots_stopping(const struct dp_snapshots *s, struct dp_error *err)
{
    return s->reverts.run > 0
               ? dp_fail_wait(err, DP_STOPPING, (struct dp_wait){.reason = DP_WAIT_OPENING},
                              "shard %" PRIu32 " is opening its store with the rows of run %" PRIu32
                              ", epoch %" PRIu32,
                              s->base->index, s->reverts.run, s->reverts.epoch)
               : dp_fail_wait(err, DP_STOPPING, (struct dp_wait){.reason = DP_WAIT_STOPPING},
                              "shard %" PRIu32 " is shutting down", s->base->index);
}
