#include "worker/loop/step_inner.h"

#include "worker/loop/pull_wait.h"

#include <inttypes.h>

/* The reader's thread asks this, too: nothing that it reads changes after open. */
bool dp_loop_is_done(const struct dp_loop *loop, uint32_t epoch, uint64_t number)
{
    return dp_position_done(loop->position, epoch, dp_share_position(loop->share, number) / loop->push_every);
}

/* What is done and was not made was missed while this worker was away: it is no progress. */
static bool was_made(const struct dp_loop *loop, uint64_t number)
{
    return dp_position_made(loop->position, loop->epoch,
                            dp_share_position(loop->share, number) / loop->push_every);
}

static uint64_t step_of(const struct dp_loop *loop, uint32_t epoch, uint64_t number)
{
    return dp_rounds_step(&loop->rounds, epoch, dp_share_position(loop->share, number) / loop->push_every);
}

bool dp_loop_needs_no_reading(const void *of, uint32_t epoch, uint64_t number)
{
    const struct dp_loop *loop = of;
    return dp_loop_is_done(loop, epoch, number) ||
           dp_skipped_is(&loop->skipped, step_of(loop, epoch, number));
}

uint32_t dp_loop_leave(struct dp_loop *loop, uint64_t number)
{
    uint64_t before = number * loop->training->batch, left = loop->examples_all - before;
    uint64_t examples = left < loop->training->batch ? left : loop->training->batch;
    loop->progress->examples += examples;
    dp_progress_tick(loop->progress);
    return (uint32_t)examples;
}

/* The reader may have filled some before it was known that they are skipped. */
static enum dp_status next_batch(struct dp_loop *loop, uint64_t number, struct dp_batch **out,
                                 struct dp_error *err)
{
    uint32_t epoch = loop->training->first_epoch + loop->epoch;
    enum dp_status st = dp_job_next_batch(loop->job, loop->reader, out, err);
    while (st == DP_OK && ((*out)->epoch < epoch || ((*out)->epoch == epoch && (*out)->number < number))) {
        DP_ASSERT(dp_skipped_is(&loop->skipped,
                                step_of(loop, (*out)->epoch - loop->training->first_epoch, (*out)->number)));
        dp_reader_give_back(loop->reader, out);
        st = dp_job_next_batch(loop->job, loop->reader, out, err);
    }
    if (st != DP_OK)
        return dp_wrap(err, st, "epoch %" PRIu32 ", minibatch %" PRIu64, dp_loop_shown_epoch(loop), number);
    DP_ASSERT((*out)->epoch == epoch && (*out)->number == number);
    return DP_OK;
}

enum dp_status dp_loop_fetch_start(struct dp_loop *loop, uint64_t index, struct dp_error *err)
{
    struct dp_loop_fetch *fetch = &loop->fetch[index % 2];
    struct dp_group group = dp_group_at(loop->positions, loop->fetch_every, index);
    uint32_t timeout_ms = loop->training->timeout_ms;
    DP_ASSERT(fetch->count == 0);
    /* A fetch of minibatches of several steps waits until its last step may begin. */
    uint64_t last = (group.first + group.count - 1) / loop->push_every;
    fetch->step = dp_rounds_step(&loop->rounds, loop->epoch, last);
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    for (uint32_t i = 0; i < group.count; i++) {
        uint64_t number = dp_share_number(loop->share, group.first + i);
        struct dp_batch *batch;
        if (dp_loop_is_done(loop, loop->epoch, number)) {
            if (was_made(loop, number))
                (void)dp_loop_leave(loop, number);
            continue;
        }
        if (dp_skipped_is(&loop->skipped, fetch->step))
            continue;
        enum dp_status st = next_batch(loop, number, &batch, err);
        if (st != DP_OK)
            return st;
        fetch->batch[fetch->count++] = batch;
    }
    dp_step_timer_lap(&loop->watch, DP_PHASE_READ);
    if (fetch->count == 0) /* nothing later in this fetch checks for a signal */
        return dp_job_stopped(loop->job) ? dp_fail(err, DP_STOPPING,
                                                   "stopped by a signal in epoch %" PRIu32
                                                   ", while skipping minibatches that are already done",
                                                   dp_loop_shown_epoch(loop))
                                         : DP_OK;
    fetch->issued = loop->issued;
    enum dp_status st = dp_weights_take(fetch->weights, fetch->batch, fetch->count, err);
    if (st == DP_OK)
        st = dp_weights_issue(fetch->weights, loop->job->client, DP_WEIGHTS_ALL,
                              loop->rounds.members ? &fetch->step : NULL, timeout_ms, &fetch->ticket, err);
    dp_step_timer_lap(&loop->watch, DP_PHASE_PULL);
    return st;
}

enum dp_status dp_loop_fetch_wait(struct dp_loop *loop, struct dp_loop_fetch *fetch, struct dp_error *err)
{
    struct dp_outcome outcome = {0};
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    enum dp_status st = dp_pull_wait(loop->progress, &fetch->ticket, &loop->watch, &outcome, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "pull in epoch %" PRIu32, dp_loop_shown_epoch(loop));
    dp_skipped_hears(&loop->skipped, fetch->step, outcome.open, &loop->job->clock);
    return DP_OK;
}

void dp_loop_fetch_release(struct dp_loop *loop, struct dp_loop_fetch *fetch)
{
    for (uint32_t i = 0; i < fetch->count; i++)
        dp_reader_give_back(loop->reader, &fetch->batch[i]);
    fetch->count = 0;
}

enum dp_status dp_loop_wait_pushes(struct dp_loop *loop, uint32_t leave, struct dp_error *err)
{
    if (loop->pushes.count <= leave)
        return DP_OK;
    enum dp_status st = dp_in_flight_wait(&loop->pushes, leave, err);
    dp_step_timer_lap(&loop->watch, DP_PHASE_WAITING_PUSH);
    return st == DP_OK ? st : dp_wrap(err, st, "push in epoch %" PRIu32, dp_loop_shown_epoch(loop));
}
