/* Reads and pulls for an epoch with leased work: the worker takes as many minibatches from the first
 * server's list as it can (work_leases.h).
 *     ask -> read -> pull -> (step.c: compute -> push -> answered) -> ask ... until the epoch is over
 * It asks before it begins its last leased minibatch, so that reading and pulling continue during the
 * request. When nothing is left to begin, it waits for its own pushes first, because a worker without
 * leases may get those of slow workers. */
#include "worker/loop/step_inner.h"

#include <inttypes.h>

#define MS_NS UINT64_C(1000000)

static void want(struct dp_loop *loop)
{
    while (dp_work_leases_left(loop->leases) > 0 && dp_reader_has_room(loop->reader)) {
        dp_reader_want(loop->reader, loop->training->first_epoch + loop->epoch,
                       dp_work_leases_next(loop->leases));
        loop->wanted++;
    }
}

/* Minibatches that are held and not begun. */
static uint64_t stock(const struct dp_loop *loop)
{
    return loop->wanted + dp_work_leases_left(loop->leases);
}

/* One fetch to be pulled and one to be read, and of quick ones more, so that one asks seldom. Others come to do a slow worker's leases at
 * the end of the epoch: it holds no more. */
static uint64_t enough(const struct dp_loop *loop)
{
    uint64_t fetch = loop->fetch_every, ahead = dp_work_leases_ahead(loop->leases);
    return ahead < 2 * fetch ? 2 * fetch : ahead < 4 * fetch + 2 ? ahead : 4 * fetch + 2;
}

static enum dp_status ask(struct dp_loop *loop, bool patient, enum dp_lease_state *state, uint32_t *wait_ms,
                          struct dp_error *err)
{
    uint64_t has = stock(loop), wants = enough(loop);
    uint64_t least = wants > has ? (wants - has + loop->push_every - 1) / loop->push_every : 1;
    enum dp_status st = dp_work_leases_ask(loop->leases, (uint32_t)least, patient, state, wait_ms, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "epoch %" PRIu32, dp_loop_shown_epoch(loop));
    loop->others_ended = *state == DP_LEASE_OVER;
    loop->ask_at_ns = dp_clock_ns(&loop->job->clock) + *wait_ms * MS_NS;
    want(loop);
    return DP_OK;
}

void dp_loop_leased_begin(struct dp_loop *loop)
{
    dp_work_leases_begin(loop->leases, loop->epoch);
    loop->ask_at_ns = 0;
    loop->others_ended = false;
}

bool dp_loop_leased_ended(const struct dp_loop *loop)
{
    return loop->others_ended && loop->examples + loop->passed == 0; /* no lease is half computed */
}

enum dp_status dp_loop_leased_give_up(struct dp_loop *loop, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (int i = 0; st == DP_OK && i < 2; i++) {
        if (loop->fetch[i].count > 0)
            st = dp_loop_fetch_wait(loop, &loop->fetch[i], err);
        if (st == DP_OK)
            dp_loop_fetch_release(loop, &loop->fetch[i]);
    }
    while (st == DP_OK && loop->wanted > 0) {
        struct dp_batch *batch;
        st = dp_job_next_batch(loop->job, loop->reader, &batch, err);
        if (st == DP_OK)
            dp_reader_give_back(loop->reader, &batch);
        loop->wanted--;
    }
    if (st == DP_OK)
        dp_work_leases_give_up(loop->leases, loop->pushes.count);
    return st;
}

/* As much as is enough; one fetch at least, as long as some are given. The answer may say that the epoch is over while this worker
 * still has some of it: others did it too. */
static enum dp_status keep_stock(struct dp_loop *loop, struct dp_error *err)
{
    uint64_t fetch = loop->fetch_every;
    enum dp_lease_state state = DP_LEASE_GIVEN;
    uint32_t wait_ms;
    enum dp_status st = DP_OK;
    if (stock(loop) >= enough(loop) || dp_clock_ns(&loop->job->clock) < loop->ask_at_ns)
        return DP_OK;
    do
        st = ask(loop, false, &state, &wait_ms, err);
    while (st == DP_OK && state == DP_LEASE_GIVEN && stock(loop) < fetch);
    return st;
}

/* Where a fetch is as long as a lease, it is one: what is accumulated or computed by several threads is pushed as one. */
static bool fetch_ends(const struct dp_loop *loop, uint64_t number)
{
    struct dp_share share = dp_share_with(loop->share, number);
    return loop->fetch_every == loop->push_every &&
           dp_group_ends(dp_share_positions(share), loop->push_every, dp_share_position(share, number));
}

enum dp_status dp_loop_leased_start(struct dp_loop *loop, struct dp_loop_fetch *fetch, struct dp_error *err)
{
    enum dp_status st = keep_stock(loop, err);
    DP_ASSERT(fetch->count == 0);
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    for (bool ends = false; st == DP_OK && !ends && loop->wanted > 0 && fetch->count < loop->fetch_every;) {
        struct dp_batch *batch;
        st = dp_job_next_batch(loop->job, loop->reader, &batch, err);
        if (st != DP_OK)
            return dp_wrap(err, st, "epoch %" PRIu32, dp_loop_shown_epoch(loop));
        fetch->batch[fetch->count++] = batch;
        ends = fetch_ends(loop, batch->number);
        loop->wanted--;
        want(loop);
    }
    dp_step_timer_lap(&loop->watch, DP_PHASE_READ);
    if (st != DP_OK || fetch->count == 0)
        return st;
    fetch->issued = loop->issued;
    st = dp_weights_take(fetch->weights, fetch->batch, fetch->count, err);
    if (st == DP_OK)
        st = dp_weights_issue(fetch->weights, loop->job->client, DP_WEIGHTS_ALL, NULL,
                              loop->training->timeout_ms, &fetch->ticket, err);
    dp_step_timer_lap(&loop->watch, DP_PHASE_PULL);
    return st;
}

enum dp_status dp_loop_leased_await(struct dp_loop *loop, bool *over, struct dp_error *err)
{
    enum dp_lease_state state = DP_LEASE_WAIT;
    uint32_t wait_ms = 0;
    enum dp_status st = dp_loop_wait_pushes(loop, 0, err);
    while (st == DP_OK && state == DP_LEASE_WAIT) {
        st = ask(loop, true, &state, &wait_ms, err);
        if (st == DP_OK && state == DP_LEASE_WAIT)
            st = dp_shared_pause(loop->job, wait_ms, err);
        dp_progress_tick(loop->progress);
    }
    dp_step_timer_lap(&loop->watch, DP_PHASE_WAITING_RULE);
    *over = st == DP_OK && state == DP_LEASE_OVER;
    return st;
}
