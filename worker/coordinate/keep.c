#include "worker/coordinate/keep.h"

#include "common/base/log.h"
#include "worker/job/retry.h"

#include <inttypes.h>
#include <stdlib.h>

#define SLICE_MS 500u /* a shard that is opened again is asked again soon */

static enum dp_status give_order(struct dp_job *job, const struct dp_snapshot_order *order,
                                 struct dp_snapshot_state *states, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do {
        st = dp_client_snapshot(job->client, order, states, dp_retry_slice_ms(&retry, SLICE_MS), err);
        /* A shard may wait for a member to leave that is gone. */
        struct dp_error why = {0};
        enum dp_status looked =
            st == DP_TIMEOUT && err->wait.reason == DP_WAIT_STEP ? dp_job_waits(job, &why) : DP_OK;
        if (looked != DP_OK) {
            *err = why;
            return looked;
        }
    } while (dp_retry_more(&retry, &st, err));
    return st;
}

/* out: NULL, or set to the states of all shards, which the caller frees. */
static enum dp_status order_all(struct dp_job *job, struct dp_snapshot_order order,
                                struct dp_snapshot_state **out, struct dp_error *err)
{
    struct dp_snapshot_state *states = calloc(job->shards, sizeof *states);
    if (!states)
        return dp_fail(err, DP_NOMEM, "no memory for the answers of %" PRIu32 " shards", job->shards);
    enum dp_status st = give_order(job, &order, states, err);
    if (st == DP_OK && out)
        *out = states;
    else
        free(states);
    return st;
}

enum dp_status dp_keep_take(struct dp_job *job, uint32_t epoch, uint32_t kept, struct dp_error *err)
{
    struct dp_snapshot_order order = {
        .action = DP_SNAPSHOT_TAKE, .run = job->cluster->training.run, .epoch = epoch, .keeps = kept};
    enum dp_status st = order_all(job, order, NULL, err);
    struct dp_error still = {0};
    if (st != DP_OK)
        return dp_wrap(err, st, "keeping the weights of epoch %" PRIu32, epoch);
    /* The previous one may go only now that all shards have the new one. If that fails, it goes with the
     * next. */
    order.keeps = epoch;
    if (kept > 0 && kept != epoch && order_all(job, order, NULL, &still) != DP_OK)
        dp_log(DP_LOG_WARN,
               "kept the weights of epoch %" PRIu32 ", but could not remove those of epoch %" PRIu32 ": %s",
               epoch, kept, still.text);
    return DP_OK;
}

static enum dp_status look(struct dp_job *job, uint32_t run, uint32_t epoch, struct dp_snapshot_state **out,
                           struct dp_error *err)
{
    const struct dp_snapshot_order order = {.action = DP_SNAPSHOT_LOOK, .run = run, .epoch = epoch};
    return order_all(job, order, out, err);
}

/* Finds the shards that have nothing to revert to, because their stores were replaced since. */
static enum dp_status find_replaced(struct dp_job *job, uint32_t run, uint32_t epoch, bool *replaced,
                                    struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    enum dp_status st = look(job, run, epoch, &states, err);
    for (uint32_t i = 0; st == DP_OK && i < job->shards; i++) {
        replaced[i] = !states[i].held && states[i].run != run;
        if (replaced[i])
            dp_log(
                DP_LOG_WARN,
                "shard %" PRIu32 " has no weights of epoch %" PRIu32 " of run %" PRIu32
                ", to which the other shards revert: its store was replaced since; its rows stay as they are",
                i, epoch, run);
    }
    free(states);
    return st;
}

static enum dp_status revert(struct dp_job *job, uint32_t run, uint32_t epoch, struct dp_error *err)
{
    bool *replaced = calloc(job->shards, sizeof *replaced);
    if (!replaced)
        return dp_fail(err, DP_NOMEM, "no memory for the answers of %" PRIu32 " shards", job->shards);
    const struct dp_snapshot_order order = {
        .action = DP_SNAPSHOT_REVERT, .run = run, .epoch = epoch, .spares = replaced};
    enum dp_status st = find_replaced(job, run, epoch, replaced, err);
    if (st == DP_OK)
        st = order_all(job, order, NULL, err);
    free(replaced);
    return st == DP_OK ? st
                       : dp_wrap(err, st, "reverting to the weights of epoch %" PRIu32 " of run %" PRIu32,
                                 epoch, run);
}

/* Finds the epoch of this run that the rows were reverted to; 0: none. */
static enum dp_status find_reverted(struct dp_job *job, uint32_t *epoch, struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    *epoch = 0;
    enum dp_status st = look(job, job->cluster->training.run, 1, &states, err);
    for (uint32_t i = 0; st == DP_OK && i < job->shards; i++)
        if (states[i].run == job->cluster->training.run)
            *epoch = states[i].epoch;
    free(states);
    return st;
}

/* Kept weights take disk space and are not needed any more: the rows stay those of the last epoch. */
static void drop(struct dp_job *job)
{
    const struct dp_snapshot_order order = {.action = DP_SNAPSHOT_DROP, .run = job->cluster->training.run};
    struct dp_error err = {0};
    if (order_all(job, order, NULL, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "cannot remove the kept weights of earlier epochs from the servers' disks: %s",
               err.text);
}

/* Finds the first shard that neither holds the weights of the epoch nor was reverted to them; job->shards:
 * none. */
static enum dp_status find_lost(struct dp_job *job, uint32_t epoch, uint32_t *shard, struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    enum dp_status st = look(job, job->cluster->training.run, epoch, &states, err);
    *shard = 0;
    while (st == DP_OK && *shard < job->shards &&
           (states[*shard].held || (states[*shard].run == job->cluster->training.run)))
        ++*shard;
    free(states);
    return st;
}

enum dp_status dp_keep_end(struct dp_job *job, uint32_t kept, uint32_t last, uint32_t *left,
                           struct dp_error *err)
{
    uint32_t run = job->cluster->training.run, reverted = 0, lost = 0;
    enum dp_status st = find_reverted(job, &reverted, err);
    *left = reverted ? reverted : kept ? kept : last;
    if (st != DP_OK)
        return st;
    if (*left == last && !reverted) {
        drop(job);
        return DP_OK;
    }
    if (!reverted)
        st = find_lost(job, *left, &lost, err);
    if (st == DP_OK && lost < job->shards && !reverted) {
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 " has lost the weights of epoch %" PRIu32
               ": the weights of the last epoch stay",
               lost, *left);
        *left = last;
        return DP_OK;
    }
    return st == DP_OK ? revert(job, run, *left, err) : st;
}

/* Finds the newest revert, and the first shard that has not made it; job->shards: none. */
static enum dp_status find_behind(struct dp_job *job, struct dp_snapshot_state *newest, uint32_t *behind,
                                  struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    *newest = (struct dp_snapshot_state){0};
    *behind = job->shards;
    enum dp_status st = look(job, job->cluster->training.run, 1, &states, err);
    if (st == DP_OK)
        *newest = states[dp_snapshot_newest(states, job->shards)];
    free(states);
    if (st != DP_OK || newest->run == 0)
        return st;
    states = NULL;
    st = look(job, newest->run, newest->epoch, &states, err);
    if (st == DP_OK)
        *behind = dp_snapshot_behind(states, job->shards, *newest);
    free(states);
    return st;
}

enum dp_status dp_keep_settle(struct dp_job *job, bool may_write, struct dp_error *err)
{
    struct dp_snapshot_state newest;
    uint32_t behind;
    enum dp_status st = find_behind(job, &newest, &behind, err);
    if (st != DP_OK)
        return st;
    /* This run completes its own revert when it reaches its end again. */
    if (behind == job->shards || (may_write && newest.run == job->cluster->training.run))
        return DP_OK;
    if (!may_write)
        return dp_fail(err, DP_DATA,
                       "shard %" PRIu32 " still has the last weights of run %" PRIu32
                       ", while others have those of its best epoch, %" PRIu32
                       ": that run was interrupted at its end; finish it: downpour run --dir DIR "
                       "--resume (by hand: start its servers and worker 0 again, with --resume)",
                       behind, newest.run, newest.epoch);
    dp_log(DP_LOG_WARN,
           "run %" PRIu32 " was interrupted at its end: shard %" PRIu32
           " now reverts to the weights of epoch %" PRIu32 ", as other shards did",
           newest.run, behind, newest.epoch);
    return revert(job, newest.run, newest.epoch, err);
}
