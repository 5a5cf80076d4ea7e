/* Snapshots: the rows of the end of an epoch, kept beside the store, and the way back to them.
 *     take:    ordered -> a write-back cycle that no push overtook -> the store copies itself -> answered
 *     revert:  ordered -> drained, as for a stop -> (its thread: store closed, reverted, opened) -> answered when asked again
 * Why       After a cycle whose rows_lsn is still the last lsn the store has what every push has made of every row, and nothing
 *           newer: then its files are the snapshot. A push that came meanwhile makes another cycle necessary.
 *           The store's order of writes puts the copy before all that is written back after it.
 * Orders    may come again, also to another process: what a shard has and what it reverted to lie in the store (the mark
 *           "reverted": run u32, epoch u32, and the lsn of then, u64).
 * Bound     ASKERS_MAX answers wait, one a session, PATIENCE_NS at most: then AGAIN, with how far it is.
 * Holds     No push number is free again after a revert: marks are those of now, rows those of then. As tables' marks count the
 *           rows of now, the store counts them anew. */
#include "server/shard/shard_inner.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <string.h>

#define PATIENCE_NS UINT64_C(250000000)
#define FAILED_NS   UINT64_C(5000000000) /* so long a revert that failed is not tried again */

static bool is_same(struct dp_store_snapshot a, struct dp_store_snapshot b)
{
    return a.run == b.run && a.epoch == b.epoch;
}

static bool holds(const struct dp_shard *shard, struct dp_store_snapshot snapshot)
{
    const struct dp_store *store = shard->options.store;
    return snapshot.run > 0 && store->holds && store->holds(store->self, snapshot);
}

/* ---- answers */

static void answer(struct dp_shard *shard, const struct dp_snapshot_asker *asker,
                   struct dp_store_snapshot named)
{
    const struct dp_snapshots *s = &shard->snapshots;
    struct dp_waiting to = {.peer = asker->peer};
    struct dp_reply reply = {.kind = DP_REPLY_SNAPSHOT,
                             .held = holds(shard, named),
                             .run = s->reverted.run,
                             .epoch = s->reverted.epoch};
    to.request.id = asker->id;
    to.request.session = asker->session;
    dp_shard_answer(shard, &to, &reply, NULL, 0);
}

static void refuse(struct dp_shard *shard, const struct dp_snapshot_asker *asker, const struct dp_error *err)
{
    struct dp_request request = {0};
    request.id = asker->id;
    request.session = asker->session;
    dp_shard_refuse(shard, &asker->peer, &request, 0, err);
}

static struct dp_snapshot_asker asker_of(const struct dp_shard *shard, const struct dp_waiting *waiting)
{
    return (struct dp_snapshot_asker){.peer = waiting->peer,
                                      .id = waiting->request.id,
                                      .session = waiting->request.session,
                                      .since_ns = dp_clock_ns(&shard->options.clock)};
}

/* Whoever asks again waits with his last request. */
static void add_asker(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    struct dp_snapshots *s = &shard->snapshots;
    uint32_t at = 0;
    while (at < s->askers && s->asker[at].session != waiting->request.session)
        at++;
    if (at == DP_SNAPSHOT_ASKERS_MAX)
        at = 0;
    s->askers += at == s->askers;
    s->asker[at] = asker_of(shard, waiting);
}

/* Why the shard takes no new requests. */
enum dp_status dp_shard_stopping(const struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_store_snapshot *to = &shard->snapshots.reverts;
    return to->run > 0
               ? dp_fail(err, DP_STOPPING,
                         "shard %" PRIu32 " is opening its store with the rows of run %" PRIu32
                         ", epoch %" PRIu32,
                         shard->options.index, to->run, to->epoch)
               : dp_fail(err, DP_STOPPING, "shard %" PRIu32 " is shutting down", shard->options.index);
}

/* ---- taking one */

static void end_order(struct dp_shard *shard, const struct dp_error *err)
{
    struct dp_snapshots *s = &shard->snapshots;
    for (uint32_t i = 0; i < s->askers; i++) {
        if (err->status == DP_OK)
            answer(shard, &s->asker[i], s->taken);
        else
            refuse(shard, &s->asker[i], err);
    }
    s->askers = 0;
    s->stage = DP_SNAPSHOT_NONE;
}

void dp_shard_snapshot_taken(struct dp_shard *shard, struct dp_shard_job *job)
{
    struct dp_error err = job->store.error;
    if (job->store.status != DP_OK)
        (void)dp_wrap(&err, job->store.status, "shard %" PRIu32 ": no snapshot was taken",
                      shard->options.index);
    end_order(shard, &err);
}

static void submit(struct dp_shard *shard)
{
    struct dp_snapshots *s = &shard->snapshots;
    struct dp_shard_job *job = dp_shard_job_new(DP_JOB_SNAPSHOT, NULL);
    if (!job)
        return; /* in a later turn */
    job->store.kind = DP_STORE_SNAPSHOT;
    job->store.snapshot = s->taken;
    job->store.keeps = s->keeps;
    if (dp_shard_try_submit(shard, job) == DP_OK)
        s->stage = DP_SNAPSHOT_COPY;
    else
        dp_shard_job_free(job);
}

static void tell_late(struct dp_shard *shard)
{
    struct dp_snapshots *s = &shard->snapshots;
    struct dp_error err = {0};
    uint64_t now = dp_clock_ns(&shard->options.clock);
    (void)dp_fail(&err, DP_AGAIN,
                  "shard %" PRIu32 " takes a snapshot: %" PRIu64 " rows are to be written back before",
                  shard->options.index, dp_shard_dirty_rows(shard));
    for (uint32_t i = 0; i < s->askers;) {
        if (now - s->asker[i].since_ns <= PATIENCE_NS) {
            i++;
            continue;
        }
        refuse(shard, &s->asker[i], &err);
        s->asker[i] = s->asker[--s->askers];
    }
}

bool dp_shard_snapshot_wants_cycle(const struct dp_shard *shard)
{
    return shard->snapshots.stage == DP_SNAPSHOT_ROWS && shard->write_back.stored_lsn != shard->lsn;
}

void dp_shard_snapshot_turn(struct dp_shard *shard)
{
    struct dp_snapshots *s = &shard->snapshots;
    const struct dp_write_back *w = &shard->write_back;
    const struct dp_error *why = dp_shard_not_writing(shard);
    if (s->stage == DP_SNAPSHOT_NONE)
        return;
    if (s->stage != DP_SNAPSHOT_COPY && (why || shard->draining)) {
        struct dp_error err = {0};
        if (why)
            (void)dp_fail(&err, why->status, "shard %" PRIu32 " takes no snapshot: %.400s",
                          shard->options.index, why->text);
        else
            (void)dp_shard_stopping(shard, &err);
        end_order(shard, &err);
        return;
    }
    if (s->stage == DP_SNAPSHOT_ROWS && w->cycle == DP_CYCLE_IDLE && w->stored_lsn == shard->lsn)
        s->stage = DP_SNAPSHOT_DUE;
    if (s->stage == DP_SNAPSHOT_DUE)
        submit(shard);
    tell_late(shard);
}

static void take(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_store_snapshot named,
                 struct dp_error *err)
{
    struct dp_snapshots *s = &shard->snapshots;
    const struct dp_store_snapshot keeps = {waiting->request.keeps ? named.run : 0, waiting->request.keeps};
    bool under_way = s->stage != DP_SNAPSHOT_NONE,
         same = is_same(s->taken, named) && is_same(s->keeps, keeps);
    if (shard->draining)
        (void)dp_shard_stopping(shard, err);
    else if (under_way && !same)
        (void)dp_fail(err, DP_AGAIN, "shard %" PRIu32 " is busy with another snapshot", shard->options.index);
    if (err->status != DP_OK)
        return;
    if (!under_way) {
        s->taken = named;
        s->keeps = keeps;
        s->stage = named.run == 0 || holds(shard, named) ? DP_SNAPSHOT_DUE : DP_SNAPSHOT_ROWS;
    }
    add_asker(shard, waiting);
}

/* ---- going back */

struct dp_store_snapshot dp_shard_reverts(const struct dp_shard *shard)
{
    return shard->snapshots.reverts;
}

struct dp_store_mark dp_shard_reverted_mark(const struct dp_shard *shard, char value[DP_SHARD_REVERTED_BYTES])
{
    dp_store_u32le(value, shard->snapshots.reverts.run);
    dp_store_u32le(value + 4, shard->snapshots.reverts.epoch);
    dp_store_u64le(value + 8, shard->lsn);
    return (struct dp_store_mark){.key = DP_SHARD_REVERTED,
                                  .key_bytes = sizeof DP_SHARD_REVERTED - 1,
                                  .value = value,
                                  .value_bytes = DP_SHARD_REVERTED_BYTES};
}

static enum dp_status visit_reverted(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct dp_snapshots *s = context;
    if (mark->value_bytes != DP_SHARD_REVERTED_BYTES)
        return dp_fail(err, DP_CORRUPT, "the store's mark '" DP_SHARD_REVERTED "' has %zu bytes, not %u",
                       mark->value_bytes, DP_SHARD_REVERTED_BYTES);
    const char *value = mark->value;
    s->reverted = (struct dp_store_snapshot){dp_load_u32le(value), dp_load_u32le(value + 4)};
    s->reverted_lsn = dp_load_u64le(value + 8);
    return DP_OK;
}

enum dp_status dp_shard_load_reverted(struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_store *store = shard->options.store;
    return store->visit_marks(store->self, DP_SHARD_REVERTED, sizeof DP_SHARD_REVERTED - 1, visit_reverted,
                              &shard->snapshots, err);
}

bool dp_shard_is_reverted(const struct dp_shard *shard)
{
    return shard->snapshots.reverted.run > 0 && shard->snapshots.reverted_lsn == shard->lsn;
}

/* Whoever asks hears AGAIN until it is opened with those rows. */
static void revert(struct dp_shard *shard, struct dp_store_snapshot named, struct dp_error *err)
{
    struct dp_snapshots *s = &shard->snapshots;
    const struct dp_error *failed = &shard->options.revert_failed;
    uint32_t last_run = dp_push_ids_last_run(shard->ids);
    if (shard->draining) {
        (void)dp_shard_stopping(shard, err);
    } else if (!holds(shard, named)) {
        (void)dp_fail(err, DP_NOT_FOUND,
                      "shard %" PRIu32 " has no snapshot of run %" PRIu32 ", epoch %" PRIu32,
                      shard->options.index, named.run, named.epoch);
    } else if (last_run > named.run) {
        (void)dp_fail(err, DP_INVALID,
                      "shard %" PRIu32 ": run %" PRIu32 " has pushed since: the rows of run %" PRIu32
                      ", epoch %" PRIu32 " would take it back",
                      shard->options.index, last_run, named.run, named.epoch);
    } else if (s->stage != DP_SNAPSHOT_NONE) {
        (void)dp_fail(err, DP_AGAIN, "shard %" PRIu32 " is busy with another snapshot", shard->options.index);
    } else if (failed->status != DP_OK && dp_clock_ns(&shard->options.clock) - shard->opened_ns < FAILED_NS) {
        (void)dp_fail(err, failed->status, "shard %" PRIu32 " has its last rows still: %.400s",
                      shard->options.index, failed->text);
    } else {
        s->reverts = named;
        dp_shard_drain(shard);
        (void)dp_shard_stopping(shard, err);
    }
}

void dp_shard_snapshot(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    const struct dp_store_snapshot named = {request->run, request->epoch};
    const struct dp_snapshot_asker asker = asker_of(shard, waiting);
    bool done = request->action == DP_SNAPSHOT_LOOK ||
                (request->action == DP_SNAPSHOT_REVERT && is_same(shard->snapshots.reverted, named));
    struct dp_error err = {0};
    if (done)
        answer(shard, &asker, named);
    else if (shard->options.read_only)
        (void)dp_fail(&err, DP_UNSUPPORTED,
                      "shard %" PRIu32 " serves its store read-only: start its server without --read-only",
                      shard->options.index);
    else if (request->action == DP_SNAPSHOT_REVERT)
        revert(shard, named, &err);
    else
        take(shard, waiting, named, &err);
    if (err.status != DP_OK)
        refuse(shard, &asker, &err);
}
