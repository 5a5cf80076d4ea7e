#include "worker/loop/step_inner.h"

#include "common/base/log.h"
#include "common/config/consistency.h"
#include "worker/loop/pull_wait.h"
#include "worker/schedule/shares.h"
#include "worker/telemetry/advice.h"

#include <inttypes.h>
#include <math.h>

static double seconds_of_epoch(const struct dp_loop *loop)
{
    return loop->seconds_before + (double)(dp_clock_ns(&loop->job->clock) - loop->begun_ns) / 1e9;
}

/* Notes the push for the stats, where it has minibatches. */
static void record(struct dp_loop *loop, uint64_t step, uint64_t number)
{
    const struct dp_step made = {.epoch = loop->epoch,
                                 .examples = loop->examples,
                                 .group = loop->leases ? number : step,
                                 .loss_sum = loop->loss_sum,
                                 .seconds = seconds_of_epoch(loop)};
    if (loop->examples + loop->passed > 0)
        dp_stats_history_push(loop->history, &made, loop->stats);
}

/* The step of a push in the run. Of leased work: the number of the worker's own pushes. */
static uint64_t clock_of(const struct dp_loop *loop, uint64_t step)
{
    if (loop->rounds.members > 0)
        return dp_rounds_step(&loop->rounds, loop->epoch, step);
    return loop->leases ? loop->issued : dp_rounds_clock(&loop->rounds, loop->epoch, step);
}

static void begin_next(struct dp_loop *loop)
{
    loop->issued++;
    loop->examples = loop->passed = 0;
    loop->loss_sum = 0;
}

/* Instead of a push. */
static enum dp_status exchange(struct dp_loop *loop, struct dp_gradients *gradients, uint64_t step,
                               float rate, struct dp_error *err)
{
    const struct dp_exchange *to = loop->exchange;
    const struct dp_push_options options = {
        .rate = rate, .step = clock_of(loop, step), .examples = loop->examples};
    enum dp_status st = to->step(to->of, &options, gradients, &loop->watch, err);
    if (gradients)
        dp_gradients_drop(gradients);
    if (st != DP_OK)
        return st;
    record(loop, step, 0);
    loop->stats->pushes += loop->examples > 0;
    begin_next(loop);
    return DP_OK;
}

/* step: of this epoch. gradients: NULL for an empty push. */
static enum dp_status push(struct dp_loop *loop, struct dp_gradients *gradients, uint64_t step, float rate,
                           struct dp_error *err)
{
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    if (loop->exchange)
        return exchange(loop, gradients, step, rate, err);
    /* In sync the client lets no shard get two steps ahead of another; here the wait has the retry policy. */
    bool alone = dp_cluster_rule_by_step(loop->rounds.rule) && loop->rounds.rule.slack == 0;
    enum dp_status st = dp_loop_wait_pushes(loop, alone ? 0 : loop->training->pushes_max - 1, err);
    if (st != DP_OK)
        return st;
    const struct dp_push_options options = {.rate = rate,
                                            .stream = dp_push_stream(loop->training->run, loop->epoch),
                                            .number =
                                                dp_push_number(loop->owner, loop->training->workers, step),
                                            .by_staleness = gradients && loop->training->rate_by_staleness,
                                            .in_step = loop->rounds.members > 0 || loop->job->seated,
                                            .step = clock_of(loop, step),
                                            .examples = loop->examples};
    struct dp_ticket *ticket = dp_in_flight_next(&loop->pushes);
    record(loop, step, options.number);
    if (gradients)
        st = dp_gradients_push(gradients, loop->job->client, &options, loop->training->timeout_ms, ticket,
                               err);
    else
        st = dp_client_push(loop->job->client, &options, NULL, 0, loop->training->timeout_ms, ticket, err);
    dp_step_timer_lap(&loop->watch, DP_PHASE_PUSH);
    if (st != DP_OK)
        return st;
    dp_in_flight_added(&loop->pushes, options.number, loop->examples, loop->passed,
                       loop->issued - loop->stands_on);
    begin_next(loop);
    return DP_OK;
}

static float rate_of(const struct dp_loop *loop, uint64_t step, uint64_t number)
{
    uint64_t rated = dp_rounds_rated(&loop->rounds, step, number);
    return dp_rate_at(&loop->rate, loop->epoch * loop->share.batches + rated);
}

/* What helps where gradients are stale, or may be; "" where a step has one state of the weights. */
static void explain_staleness(const struct dp_loop *loop, char *text, size_t size)
{
    const struct dp_cluster_training *t = loop->training;
    const struct dp_cluster_rule rule = dp_cluster_rule_of(t);
    double stale = dp_staleness_mean(&loop->stats->staleness);
    text[0] = '\0';
    if (t->workers == 1 || dp_cluster_rule_by_step(rule))
        return;
    if (stale > DP_ADVICE_STALE)
        (void)snprintf(
            text, size,
            "; a likely cause is asynchrony: weights had changed by %.1f pushes between a pull and "
            "its push: %s--consistency %ssync",
            stale, t->rate_by_staleness ? "" : "--rate-by-staleness, ",
            dp_cluster_rule_waits(rule) ? "" : "ssp:1 or ");
    else
        (void)snprintf(text, size,
                       "; if one worker does not diverge, stale gradients are the cause: --consistency sync, "
                       "or --rate-by-staleness");
}

/* Adds the place and a remedy to the error of a step. */
static enum dp_status explain(const struct dp_loop *loop, uint64_t number, enum dp_status st,
                              struct dp_error *err)
{
    const struct dp_cluster_training *t = loop->training;
    bool begins = loop->epoch == 0 && t->first_epoch > 0;
    char stale[200];
    if (st != DP_NOT_FINITE)
        return dp_wrap(err, st, "epoch %" PRIu32 ", minibatch %" PRIu64, dp_loop_shown_epoch(loop), number);
    explain_staleness(loop, stale, sizeof stale);
    return dp_wrap(err, st,
                   "training has diverged in epoch %" PRIu32 ", minibatch %" PRIu64
                   " (try a lower --rate than %g%s%s%s%s)",
                   dp_loop_shown_epoch(loop), number, t->rate, t->warmup_steps ? "" : ", --rate warmup=N",
                   loop->scale, stale,
                   begins ? "; if that does not help, the weights that it continued from are the cause: "
                            "--fresh starts with new ones"
                          : "");
}

/* The round at the end of the epoch in which this worker has no minibatch; of an exchange all such rounds. */
static enum dp_status push_empty(struct dp_loop *loop, struct dp_error *err)
{
    uint64_t rounds = loop->exchange ? loop->rounds.most : loop->rounds.count;
    enum dp_status st = DP_OK;
    for (uint64_t step = loop->rounds.own; st == DP_OK && step < rounds; step++)
        if (!dp_position_done(loop->position, loop->epoch, step))
            st = push(loop, NULL, step, rate_of(loop, step, 0), err);
    return st == DP_NOT_FINITE ? explain(loop, loop->share.batches - 1, st, err) : st;
}

/* Starts minibatch i of a fetch whose weights have arrived. */
static enum dp_status start(struct dp_loop *loop, struct dp_loop_fetch *fetch, uint32_t i,
                            struct dp_error *err)
{
    const struct dp_batch *batch = fetch->batch[i];
    struct dp_loop_flight *flight = &loop->flight[loop->flying];
    struct dp_gradients *gradients = loop->gradients[0];
    if (loop->flies && loop->flying > 0 && loop->flight[0].gradients == gradients)
        gradients = loop->gradients[1];
    *flight = (struct dp_loop_flight){
        .fetch = fetch, .i = i, .gradients = gradients, .begun_ns = dp_clock_ns(&loop->job->clock)};
    flight->written = dp_gradients_next(gradients, batch, dp_weights_pulled_at(fetch->weights));
    struct dp_program *program = loop->job->program;
    dp_program_gives_up(program, loop->late.pull ? dp_late_look : NULL, &loop->late);
    enum dp_status st =
        dp_program_start(program, batch, dp_weights_of(fetch->weights, i), flight->written, err);
    dp_program_gives_up(program, NULL, NULL);
    if (st == DP_OK)
        loop->flying++;
    dp_step_timer_lap(&loop->watch, DP_PHASE_COMPUTE);
    return st;
}

static void add_times(struct dp_loop *loop, const struct dp_device_times *times)
{
    double *seconds = loop->stats->times.seconds;
    seconds[DP_PHASE_DEVICE_COPY_IN] += times->copy_in;
    seconds[DP_PHASE_DEVICE_COMPUTE] += times->compute;
    seconds[DP_PHASE_DEVICE_COPY_OUT] += times->copy_out;
}

static void count(struct dp_loop *loop, const struct dp_loop_fetch *fetch, const struct dp_batch *batch,
                  double loss)
{
    if (loop->examples == 0) /* the first of a push, whose pull is the oldest */
        loop->stands_on = fetch->issued;
    loss *= loop->loss_unit;
    loop->loss_sum += loss * batch->examples;
    loop->examples += batch->examples;
    dp_progress_add(loop->progress, loss, batch->examples);
}

/* Injected delays. Of two on a device the later one begins when the earlier one has ended. */
static void delay(struct dp_loop *loop, const struct dp_loop_flight *flight, const struct dp_batch *batch)
{
    if (!loop->delays.is)
        return;
    uint64_t begun_ns = flight->begun_ns > loop->settled_ns ? flight->begun_ns : loop->settled_ns;
    (void)dp_delays_wait(&loop->delays, batch->epoch, batch->number, begun_ns, true);
    loop->settled_ns = dp_clock_ns(&loop->job->clock);
    dp_step_timer_lap(&loop->watch, DP_PHASE_INJECTED);
}

/* Waits for the oldest minibatch that was started, and pushes at the end of a group. */
static enum dp_status settle(struct dp_loop *loop, struct dp_error *err)
{
    const struct dp_loop_flight flight = loop->flight[0];
    struct dp_loop_fetch *fetch = flight.fetch;
    const struct dp_batch *batch = fetch->batch[flight.i];
    struct dp_share share = dp_share_with(loop->share, batch->number);
    uint64_t position = dp_share_position(share, batch->number);
    uint64_t step = position / loop->push_every;
    float rate = rate_of(loop, step, batch->number);
    struct dp_device_times times;
    float loss;
    DP_ASSERT(loop->flying > 0);
    enum dp_status st = dp_program_finish(loop->job->program, &loss, &times, err);
    if (st != DP_OK)
        return st;
    loop->flight[0] = loop->flight[1];
    loop->flying--;
    add_times(loop, &times);
    if (loop->is_device)
        dp_step_timer_lap(&loop->watch, DP_PHASE_WAITING_DEVICE);
    if (!isfinite(loss))
        return dp_fail(err, DP_NOT_FINITE, "the loss is %f", (double)loss);
    dp_step_timer_lap(&loop->watch, DP_PHASE_COMPUTE);
    delay(loop, &flight, batch);
    if (dp_late_look(&loop->late)) /* no shard takes it */
        return DP_OK;
    dp_gradients_add(flight.gradients);
    if (flight.i + 1 < fetch->count && !loop->accumulates)
        dp_weights_step(fetch->weights, rate, flight.written);
    dp_step_timer_lap(&loop->watch, DP_PHASE_COMPUTE);

    count(loop, fetch, batch, (double)loss);
    loop->owner = share.worker;
    if (dp_group_ends(dp_share_positions(share), loop->push_every, position))
        st = push(loop, flight.gradients, step, rate, err);
    return st;
}

static enum dp_status stop_here(const struct dp_loop *loop, uint64_t number, struct dp_error *err)
{
    return dp_job_stopped(loop->job)
               ? dp_fail(err, DP_STOPPING,
                         "stopped by a signal in epoch %" PRIu32 ", after minibatch %" PRIu64,
                         dp_loop_shown_epoch(loop), number)
               : DP_OK;
}

/* Passes over a fetch of a step that was closed without this worker, from a minibatch on. Its push has what was computed of the step
 * before that was known: other shards may take it. */
static enum dp_status pass_over(struct dp_loop *loop, uint64_t index, uint64_t from, struct dp_error *err)
{
    struct dp_group group = dp_group_at(loop->positions, loop->fetch_every, index);
    uint64_t number = 0;
    enum dp_status st = DP_OK;
    dp_loop_fetch_release(loop, &loop->fetch[index % 2]);
    for (uint32_t i = 0; st == DP_OK && i < group.count; i++) {
        uint64_t position = group.first + i, step = position / loop->push_every;
        number = dp_share_number(loop->share, position);
        if (number < from || dp_loop_is_done(loop, loop->epoch, number))
            continue;
        loop->passed += dp_loop_leave(loop, number);
        if (dp_group_ends(loop->positions, loop->push_every, position))
            st = push(loop, loop->examples ? loop->gradients[0] : NULL, step, rate_of(loop, step, number),
                      err);
    }
    return st == DP_OK ? stop_here(loop, number, err) : st;
}

/* Several threads: the minibatches of a fetch are one push. While the others compute this one reads and pulls the next
 * fetch. */
static enum dp_status train_shared(struct dp_loop *loop, uint64_t index, struct dp_error *err)
{
    struct dp_loop_fetch *fetch = &loop->fetch[index % 2];
    bool more = loop->overlap && !loop->leases && index + 1 < dp_groups(loop->positions, loop->fetch_every);
    float *rates = dp_hogwild_rates(loop->hogwild), rate = 0;
    uint64_t step = 0, number = 0; /* of this epoch */
    struct dp_error late = {0};
    DP_ASSERT(loop->push_every == loop->fetch_every);
    for (uint32_t i = 0; i < fetch->count; i++) {
        number = fetch->batch[i]->number;
        struct dp_share share = dp_share_with(loop->share, number);
        loop->owner = share.worker;
        step = dp_share_position(share, number) / loop->push_every;
        rates[i] = rate = rate_of(loop, step, number);
    }
    if (fetch->count > 0)
        dp_hogwild_start(loop->hogwild, fetch->weights, fetch->batch, fetch->count);
    enum dp_status next = more ? dp_loop_fetch_start(loop, index + 1, &late) : DP_OK, st = DP_OK;
    if (fetch->count > 0) {
        struct dp_hogwild_round round;
        st = dp_hogwild_finish(loop->hogwild, &round, err);
        dp_step_timer_lap(&loop->watch, DP_PHASE_COMPUTE);
        dp_step_timer_move(&loop->watch, round.injected_ns, DP_PHASE_COMPUTE, DP_PHASE_INJECTED);
        for (uint32_t i = 0; st == DP_OK && i < fetch->count; i++)
            count(loop, fetch, fetch->batch[i], (double)round.losses[i]);
        if (st == DP_OK)
            st = push(loop, round.sum, step, rate, err);
        if (st != DP_OK)
            return explain(loop, fetch->batch[round.at]->number, st, err);
        dp_loop_fetch_release(loop, fetch);
        st = stop_here(loop, number, err);
    }
    if (st == DP_OK && next != DP_OK && err)
        *err = late;
    return st == DP_OK ? next : st;
}

/* With backups the pull of the next step shows whether this one is closed. */
static void await_later(struct dp_loop *loop, uint64_t index)
{
    struct dp_loop_fetch *fetch = &loop->fetch[index % 2], *next = &loop->fetch[(index + 1) % 2];
    bool backups = dp_cluster_rule_backups(loop->rounds.rule) > 0;
    bool later = backups && next->count > 0 && next->step > fetch->step;
    dp_late_begin(&loop->late, later ? &next->ticket : NULL, next->step);
}

/* What skipped_steps.h is about, from this minibatch on. st: of its computing. */
static enum dp_status give_up(struct dp_loop *loop, uint64_t index, const struct dp_batch *batch,
                              enum dp_status st, struct dp_error *err)
{
    dp_step_timer_lap(&loop->watch, DP_PHASE_COMPUTE);
    if (st != DP_OK && st != DP_STOPPING)
        return explain(loop, batch->number, st, err);
    if (loop->late.failed != DP_OK)
        return dp_fail(err, loop->late.failed, "pull in epoch %" PRIu32 ": %s", dp_loop_shown_epoch(loop),
                       loop->late.err.text);
    if (err)
        *err = (struct dp_error){0};
    return pass_over(loop, index, batch->number, err);
}

static enum dp_status train_fetch(struct dp_loop *loop, uint64_t index, struct dp_error *err)
{
    struct dp_loop_fetch *fetch = &loop->fetch[index % 2];
    enum dp_status st = dp_loop_fetch_wait(loop, fetch, err);
    if (st != DP_OK)
        return st;
    if (dp_skipped_is(&loop->skipped, fetch->step))
        return pass_over(loop, index, 0, err);
    if (loop->hogwild)
        return train_shared(loop, index, err);
    await_later(loop, index);
    for (uint32_t i = 0; i < fetch->count; i++) {
        /* A push copies its gradients but borrows its keys, so all batches are released together at the end. */
        st = start(loop, fetch, i, err);
        if (st == DP_OK)
            st = settle(loop, err);
        if (loop->late.is)
            return give_up(loop, index, fetch->batch[i], st, err);
        if (st != DP_OK)
            return explain(loop, fetch->batch[i]->number, st, err);
        dp_progress_tick(loop->progress);
        dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
        st = stop_here(loop, fetch->batch[i]->number, err);
        if (st != DP_OK)
            return st;
    }
    dp_loop_fetch_release(loop, fetch);
    return DP_OK;
}

static enum dp_status train_fetches(struct dp_loop *loop, struct dp_error *err)
{
    uint64_t fetches = dp_groups(loop->positions, loop->fetch_every);
    bool overlap = loop->overlap;
    enum dp_status st = fetches ? dp_loop_fetch_start(loop, 0, err) : DP_OK;
    for (uint64_t i = 0; st == DP_OK && i < fetches; i++) {
        bool more = i + 1 < fetches;
        if (overlap && more && !loop->hogwild)
            st = dp_loop_fetch_start(loop, i + 1, err);
        if (st == DP_OK)
            st = train_fetch(loop, i, err);
        if (st == DP_OK && !overlap && more)
            st = dp_loop_wait_pushes(loop, 0, err);
        if (st == DP_OK && !overlap && more)
            st = dp_loop_fetch_start(loop, i + 1, err);
    }
    return st;
}

/* As train_fetches, of what the first server gives. */
static enum dp_status train_leased(struct dp_loop *loop, struct dp_error *err)
{
    bool overlap = loop->overlap, over = false;
    enum dp_status st = DP_OK;
    dp_loop_leased_begin(loop);
    for (uint64_t i = 0; st == DP_OK; i++) {
        struct dp_loop_fetch *fetch = &loop->fetch[i % 2];
        while (st == DP_OK && fetch->count == 0 && !over) {
            st = dp_loop_leased_start(loop, fetch, err);
            if (st == DP_OK && fetch->count == 0)
                st = dp_loop_leased_await(loop, &over, err);
        }
        if (st != DP_OK || over)
            break;
        if (overlap)
            st = dp_loop_leased_start(loop, &loop->fetch[(i + 1) % 2], err);
        if (st == DP_OK && dp_loop_leased_ended(loop))
            return dp_loop_leased_give_up(loop, err);
        if (st == DP_OK)
            st = train_fetch(loop, i, err);
        if (st == DP_OK && !overlap)
            st = dp_loop_wait_pushes(loop, 0, err);
    }
    return st;
}

/* Settles the oldest flight and returns its minibatch to the reader. */
static enum dp_status land(struct dp_loop *loop, struct dp_error *err)
{
    struct dp_loop_fetch *fetch = loop->flight[0].fetch;
    enum dp_status st = settle(loop, err);
    if (st != DP_OK)
        return explain(loop, fetch->batch[0]->number, st, err);
    uint64_t number = fetch->batch[0]->number;
    dp_loop_fetch_release(loop, fetch);
    dp_progress_tick(loop->progress);
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    return stop_here(loop, number, err);
}

/* Waits for the rows of a fetch, and lands a flight as soon as the device is done, since others may wait for
 * its push. */
static enum dp_status wait_flying(struct dp_loop *loop, struct dp_loop_fetch *fetch, struct dp_error *err)
{
    struct dp_error told = {0};
    struct dp_outcome outcome = {0};
    enum dp_status st = DP_TIMEOUT;
    dp_step_timer_lap(&loop->watch, DP_PHASE_OTHER);
    while (loop->flying > 0 && fetch->ticket.id != 0) {
        if (dp_program_done(loop->job->program)) {
            st = land(loop, err);
            if (st != DP_OK)
                return st;
            break;
        }
        enum dp_step_phase phase = dp_pull_wait_phase(loop->job, &told);
        st = dp_client_wait(loop->job->client, &fetch->ticket, 1, &outcome, &told);
        dp_step_timer_lap(&loop->watch, phase);
        if (st == DP_OK)
            fetch->ticket = (struct dp_ticket){0};
        else if (st != DP_TIMEOUT && st != DP_UNAVAILABLE)
            return dp_fail(err, st, "pull in epoch %" PRIu32 ": %s", dp_loop_shown_epoch(loop), told.text);
    }
    dp_skipped_hears(&loop->skipped, fetch->step, outcome.open, &loop->job->clock);
    return dp_loop_fetch_wait(loop, fetch, err);
}

/* As train_fetches with overlap, on a device that copies while it computes: while minibatch n computes, the
 * gradients of n - 1 are copied and pushed and the rows of n + 1 are pulled and copied. The order of the
 * requests is that of train_fetches: the push of n - 1, the pull of n + 1, the push of n, ... */
static enum dp_status train_flying(struct dp_loop *loop, struct dp_error *err)
{
    uint64_t fetches = loop->positions;
    enum dp_status st = fetches ? dp_loop_fetch_start(loop, 0, err) : DP_OK;
    for (uint64_t i = 0; st == DP_OK && i < fetches; i++) {
        struct dp_loop_fetch *fetch = &loop->fetch[i % 2];
        st = wait_flying(loop, fetch, err);
        if (st == DP_OK && dp_skipped_is(&loop->skipped, fetch->step)) {
            st = loop->flying > 0 ? land(loop, err) : DP_OK;
            if (st == DP_OK)
                st = pass_over(loop, i, 0, err);
        }
        if (st == DP_OK && fetch->count > 0) {
            st = start(loop, fetch, 0, err);
            if (st != DP_OK)
                st = explain(loop, fetch->batch[0]->number, st, err);
        }
        if (st == DP_OK && loop->flying > (fetch->count > 0 ? 1 : 0))
            st = land(loop, err);
        if (st == DP_OK && i + 1 < fetches)
            st = dp_loop_fetch_start(loop, i + 1, err);
    }
    /* Also after a signal: a minibatch that was started is finished. */
    struct dp_error late = {0};
    while ((st == DP_OK || st == DP_STOPPING) && loop->flying > 0) {
        enum dp_status landed = land(loop, st == DP_OK ? err : &late);
        if (landed != DP_OK && landed != DP_STOPPING && st == DP_STOPPING && err)
            *err = late;
        st = landed != DP_OK ? landed : st;
    }
    return st;
}

enum dp_status dp_loop_epoch(struct dp_loop *loop, uint32_t epoch, struct dp_error *err)
{
    struct dp_epoch_stats *stats = &loop->stats->epoch[epoch];
    loop->begun_ns = dp_clock_ns(&loop->job->clock);
    loop->watch = dp_step_timer_start(&loop->job->clock, &loop->stats->times);
    loop->epoch = epoch;
    loop->examples = loop->passed = 0; /* drops those of a push that was never made */
    loop->loss_sum = 0;
    loop->seconds_before = stats->seconds;
    /* To compare with other machines; as if the epoch had run without interruption. */
    stats->begun = dp_client_clock(loop->job->client) - stats->seconds;
    dp_progress_epoch(loop->progress, epoch + 1, stats->loss_sum, stats->examples);
    enum dp_status st = loop->leases  ? train_leased(loop, err)
                        : loop->flies ? train_flying(loop, err)
                                      : train_fetches(loop, err);
    if (st == DP_OK)
        st = push_empty(loop, err);
    /* Also after a signal: the worker waits until its pushes are answered before it ends. */
    struct dp_error late = {0};
    if (st == DP_OK || st == DP_STOPPING) {
        enum dp_status drained = dp_loop_wait_pushes(loop, 0, &late);
        if (drained != DP_OK) {
            if (err)
                *err = late;
            st = drained;
        }
    }
    stats->seconds = seconds_of_epoch(loop);
    if (st == DP_OK)
        dp_stats_history_epoch(loop->history, epoch, loop->stats);
    else
        dp_stats_history_end(loop->history, loop->stats);
    return st;
}
