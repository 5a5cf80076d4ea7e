#include "worker/keep.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "worker/patience.h"
#include "worker/peers.h"

#include <inttypes.h>
#include <stdlib.h>

#define SLICE_MS 500u /* a shard that is opened again is asked again soon */

static enum dp_status give_order(struct dp_job *job, const struct dp_snapshot_order *order,
                                 struct dp_snapshot_state *states, struct dp_error *err)
{
    struct dp_patience patience = dp_patience_begin(job);
    enum dp_status st;
    do
        st = dp_client_snapshot(job->client, order, states, dp_patience_slice_ms(&patience, SLICE_MS), err);
    while (dp_patience_more(&patience, &st, err));
    return st;
}

/* states: NULL, or those of all shards, the caller's. */
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
    /* Only now, when all have it, the one before may go. Where it cannot, it goes with the next; the new one is kept all the same. */
    order.keeps = epoch;
    if (kept > 0 && kept != epoch && order_all(job, order, NULL, &still) != DP_OK)
        dp_log(DP_LOG_WARN,
               "the weights of epoch %" PRIu32 " are kept; those of epoch %" PRIu32 " stay too: %s", epoch,
               kept, still.text);
    return DP_OK;
}

static enum dp_status go_back(struct dp_job *job, uint32_t run, uint32_t epoch, struct dp_error *err)
{
    const struct dp_snapshot_order order = {.action = DP_SNAPSHOT_REVERT, .run = run, .epoch = epoch};
    enum dp_status st = order_all(job, order, NULL, err);
    return st == DP_OK ? st
                       : dp_wrap(err, st, "going back to the weights of epoch %" PRIu32 " of run %" PRIu32,
                                 epoch, run);
}

static enum dp_status look(struct dp_job *job, uint32_t epoch, struct dp_snapshot_state **out,
                           struct dp_error *err)
{
    const struct dp_snapshot_order order = {
        .action = DP_SNAPSHOT_LOOK, .run = job->cluster->training.run, .epoch = epoch};
    return order_all(job, order, out, err);
}

enum dp_status dp_keep_look(struct dp_job *job, uint32_t *epoch, struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    *epoch = 0;
    enum dp_status st = look(job, 1, &states, err);
    for (uint32_t i = 0; st == DP_OK && i < job->shards; i++)
        if (states[i].run == job->cluster->training.run)
            *epoch = states[i].epoch;
    free(states);
    return st;
}

/* What is kept costs disk; the rows are the last ones, and stay so. */
static void drop(struct dp_job *job)
{
    const struct dp_snapshot_order order = {.action = DP_SNAPSHOT_DROP};
    struct dp_error err = {0};
    if (order_all(job, order, NULL, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "what was kept of earlier epochs stays on the servers' disks: %s", err.text);
}

/* The first shard that has not, and has not gone back to it either; job->shards: each has. */
static enum dp_status find_lost(struct dp_job *job, uint32_t epoch, uint32_t *shard, struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    enum dp_status st = look(job, epoch, &states, err);
    *shard = 0;
    while (st == DP_OK && *shard < job->shards &&
           (states[*shard].held || (states[*shard].run == job->cluster->training.run)))
        ++*shard;
    free(states);
    return st;
}

static enum dp_status leave(struct dp_job *job, uint32_t kept, uint32_t last, uint32_t *left,
                            struct dp_error *err)
{
    uint32_t run = job->cluster->training.run, reverted = 0, lost = 0;
    enum dp_status st = dp_keep_look(job, &reverted, err);
    *left = reverted ? reverted : kept ? kept : last;
    if (st != DP_OK)
        return st;
    if (*left == last && !reverted) {
        drop(job);
        return DP_OK;
    }
    st = find_lost(job, *left, &lost, err);
    if (st == DP_OK && lost < job->shards && !reverted) {
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 " has not kept the weights of epoch %" PRIu32 ": the last ones stay", lost,
               *left);
        *left = last;
        return DP_OK;
    }
    return st == DP_OK ? go_back(job, run, *left, err) : st;
}

enum dp_status dp_keep_end(struct dp_job *job, struct dp_progress *progress, uint32_t kept, uint32_t last,
                           uint32_t *left, struct dp_error *err)
{
    struct dp_note note = {0};
    unsigned char bytes[4];
    enum dp_status st;
    *left = last;
    if (job->worker == 0) {
        st = leave(job, kept, last, left, err);
        dp_store_u32le(bytes, *left);
        return st == DP_OK ? dp_peers_keep(job, "kept", bytes, sizeof bytes, err) : st;
    }
    const struct dp_wish wish = {.what = "kept", .count = 1};
    st = dp_peers_wait_for(job, progress, &wish, &note, err);
    if (st == DP_OK && note.bytes && note.size == sizeof bytes)
        *left = dp_load_u32le(note.bytes);
    dp_peers_clear(&note, 1);
    return st;
}

/* Runs ascend, and each goes back once, in its end: the newest is the one that is not done. */
static const struct dp_snapshot_state *newest_of(const struct dp_snapshot_state *states, uint32_t shards)
{
    const struct dp_snapshot_state *newest = &states[0];
    for (uint32_t i = 1; i < shards; i++)
        if (states[i].run > newest->run)
            newest = &states[i];
    return newest;
}

enum dp_status dp_keep_settle(struct dp_job *job, bool may_write, struct dp_error *err)
{
    struct dp_snapshot_state *states = NULL;
    uint32_t behind = 0;
    enum dp_status st = look(job, 1, &states, err);
    if (st != DP_OK)
        return st;
    const struct dp_snapshot_state newest = *newest_of(states, job->shards);
    while (behind < job->shards && states[behind].run == newest.run)
        behind++;
    free(states);
    /* This run's own is ended by it, when it comes to its end again. */
    if (behind == job->shards || (may_write && newest.run == job->cluster->training.run))
        return DP_OK;
    if (!may_write)
        return dp_fail(err, DP_DATA,
                       "shard %" PRIu32 " has the last weights of run %" PRIu32
                       " still, others those of its epoch %" PRIu32
                       ", the best one: that run was cut short in its end; let it end (downpour run --dir "
                       "DIR --resume; by "
                       "hand: start its servers and worker 0 again, with --resume)",
                       behind, newest.run, newest.epoch);
    dp_log(DP_LOG_WARN,
           "run %" PRIu32 " was cut short in its end: shard %" PRIu32
           " goes back to the weights of its epoch %" PRIu32 " now, as others have",
           newest.run, behind, newest.epoch);
    return go_back(job, newest.run, newest.epoch, err);
}
