/* Requests about snapshots: look, take, revert, drop (server/durable/snapshots.h). */
#include "common/model/stream.h"
#include "server/shard/drain.h"
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>

#define FAILED_NS UINT64_C(5000000000) /* so long a revert that failed is not tried again */

static void drop(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_store_snapshot none = {0};
    uint32_t run = waiting->request.run, last_run = dp_push_ids_last_run(shard->ids);
    if (shard->draining)
        (void)dp_snapshots_stopping(&shard->snapshots, err);
    else if (last_run > run)
        (void)dp_fail(err, DP_INVALID,
                      "shard %" PRIu32 ": run %" PRIu32 " has pushed since: run %" PRIu32
                      " cannot drop the snapshots that are kept now",
                      shard->base.index, last_run, run);
    else if (dp_snapshots_take(&shard->snapshots, none, none, err) == DP_OK)
        dp_snapshot_askers_add(&shard->askers, waiting);
}

static void take(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_store_snapshot named,
                 struct dp_error *err)
{
    const struct dp_store_snapshot keeps = {waiting->request.keeps ? named.run : 0, waiting->request.keeps};
    /* An epoch counts from 1 here, its stream from 0: `next` is that of the epoch behind it. */
    uint64_t next = dp_stream_of_run(named.run, named.epoch);
    if (shard->draining)
        (void)dp_snapshots_stopping(&shard->snapshots, err);
    else if (dp_push_ids_last_training(shard->ids) >= next)
        (void)dp_fail(err, DP_INVALID,
                      "shard %" PRIu32 ": a later epoch has pushed since epoch %" PRIu32 " of run %" PRIu32
                      ": its rows are not those of then",
                      shard->base.index, named.epoch, named.run);
    else if (dp_close_is_hidden(&shard->close))
        (void)dp_close_say(&shard->close, err);
    else if (dp_kept_count(&shard->kept) >
             0) /* its rows are those of the epoch's end only when they are applied */
        (void)dp_fail_wait(err, DP_AGAIN, dp_snapshots_progress(&shard->snapshots),
                           "shard %" PRIu32 " has not closed step %" PRIu64 " yet%s%.300s", shard->base.index,
                           shard->steps.open, shard->steps.stuck.status != DP_OK ? ": " : "",
                           shard->steps.stuck.text);
    else if (dp_snapshots_take(&shard->snapshots, named, keeps, err) == DP_OK)
        dp_snapshot_askers_add(&shard->askers, waiting);
}

/* Whoever asks hears AGAIN until it is opened with those rows. */
static void revert(struct dp_shard *shard, struct dp_store_snapshot named, struct dp_error *err)
{
    struct dp_snapshots *s = &shard->snapshots;
    const struct dp_error *failed = &shard->options.revert_failed;
    uint32_t last_run = dp_push_ids_last_run(shard->ids), index = shard->base.index;
    if (shard->draining) {
        (void)dp_snapshots_stopping(s, err);
    } else if (!dp_snapshots_holds(s, named)) {
        (void)dp_fail(err, DP_NOT_FOUND,
                      "shard %" PRIu32 " has no snapshot of run %" PRIu32 ", epoch %" PRIu32, index,
                      named.run, named.epoch);
    } else if (last_run > named.run) {
        (void)dp_fail(err, DP_INVALID,
                      "shard %" PRIu32 ": run %" PRIu32 " has pushed since: the rows of run %" PRIu32
                      ", epoch %" PRIu32 " would take it back",
                      index, last_run, named.run, named.epoch);
    } else if (dp_kept_floor(&shard->kept) < shard->journaling.lsn ||
               (dp_steps_has_backups(&shard->steps) && dp_steps_has_open(&shard->steps))) {
        (void)dp_fail_wait(err, DP_AGAIN,
                           (struct dp_wait){.reason = DP_WAIT_STEP,
                                            .subject = shard->steps.least_rank,
                                            .done = shard->steps.open,
                                            .total = shard->steps.open},
                           "shard %" PRIu32 " waits until the members of run %" PRIu32
                           " have left: worker %" PRIu32 " still takes part in step %" PRIu64,
                           index, shard->steps.view.run, shard->steps.least_rank, shard->steps.open);
    } else if (s->stage != DP_SNAPSHOT_NONE) {
        (void)dp_fail_wait(err, DP_AGAIN, dp_snapshots_progress(s),
                           "shard %" PRIu32 " is busy with another snapshot", index);
    } else if (failed->status != DP_OK && dp_shard_now(&shard->base) - shard->opened_ns < FAILED_NS) {
        (void)dp_fail(err, failed->status, "shard %" PRIu32 " has its last rows still: %.400s", index,
                      failed->text);
    } else {
        dp_snapshots_revert(s, named);
        dp_shard_drain(shard);
        (void)dp_snapshots_stopping(s, err);
    }
}

void dp_shard_snapshot(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    const struct dp_store_snapshot named = {request->run, request->epoch};
    const struct dp_store_snapshot reverted = shard->snapshots.reverted;
    struct dp_asker asker = dp_asker_of(waiting);
    bool done =
        request->action == DP_SNAPSHOT_LOOK ||
        (request->action == DP_SNAPSHOT_REVERT && reverted.run == named.run && reverted.epoch == named.epoch);
    struct dp_error err = {0};
    asker.sequence = 0;
    if (done)
        dp_snapshot_askers_answer(&shard->askers, &asker, named);
    else if (shard->options.read_only)
        (void)dp_fail(&err, DP_UNSUPPORTED,
                      "shard %" PRIu32 " serves its store read-only: start its server without --read-only",
                      shard->base.index);
    else if (request->action == DP_SNAPSHOT_REVERT)
        revert(shard, named, &err);
    else if (request->action == DP_SNAPSHOT_DROP)
        drop(shard, waiting, &err);
    else
        take(shard, waiting, named, &err);
    if (err.status != DP_OK)
        dp_replies_refuse(&shard->replies, &asker, &err);
}
