#include "worker/allreduce/allreduce.h"

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/model/optimizer.h"
#include "worker/allreduce/ranks_report.h"
#include "worker/allreduce/replica.h"
#include "worker/allreduce/weights_file.h"
#include "worker/coordinate/agreed.h"
#include "worker/job/next_batch.h"
#include "worker/job/retry.h"
#include "worker/job/rounds.h"
#include "worker/loop/columns_file.h"
#include "worker/loop/defaults.h"
#include "worker/loop/delays.h"
#include "worker/loop/rate.h"
#include "worker/score/sets.h"
#include "worker/telemetry/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#define MS_NS UINT64_C(1000000)

/* Floats that are added with the gradients. */
enum { STOPS, DIVERGED, EXTRA };

struct rank {
    const struct dp_allreduce_options *options;
    const struct dp_reducer *reducer;
    struct dp_cluster
        settled; /* the cluster file with the defaults that depend on the training set, in sync */
    const struct dp_cluster_training *training;
    struct dp_job job;
    struct dp_sets sets; /* the training set alone */
    struct dp_share share;
    struct dp_rounds rounds;
    struct dp_rate rate;
    struct dp_delays *delays; /* [ranks] */
    struct dp_replica *replica;
    struct dp_reader *reader;
    struct dp_worker_stats stats;
    struct dp_step_timer watch;
    struct dp_sampling *sampling; /* rank 0, or NULL */
    uint64_t examples_all;        /* of an epoch */
    uint32_t epoch;
    double loss; /* of the minibatch at hand */
};

/* ---- opening */

/* With delays of each rank: who computes longer than timeout_ms, or than that as its delay lengthens it, is given up. */
static enum dp_status delays_open(struct rank *r, struct dp_error *err)
{
    r->delays = calloc(r->reducer->ranks, sizeof *r->delays);
    if (!r->delays)
        return dp_fail(err, DP_NOMEM, "no memory for the delays of %" PRIu32 " ranks", r->reducer->ranks);
    for (uint32_t w = 0; w < r->reducer->ranks; w++) {
        r->delays[w] = dp_delays_of(&r->job);
        r->delays[w].injection = dp_injection_of(r->training, w);
    }
    return DP_OK;
}

static enum dp_status data_open(struct rank *r, struct dp_error *err)
{
    uint32_t given = r->options->cluster->training.batch;
    r->job.keeps_blanks = dp_columns_file_keeps_blanks(r->settled.data.columns);
    enum dp_status st = dp_sets_train(&r->job, &r->sets, err);
    if (st != DP_OK)
        return st;
    r->examples_all = dp_dataset_examples(r->sets.train);
    dp_defaults_settle(&r->job.model, r->examples_all, &r->settled.training);
    if (given == 0)
        st = dp_dataset_set_batch(r->sets.train, r->training->batch, r->settled.data.train, err);
    if (st == DP_OK)
        st = dp_job_program(&r->job, r->sets.train, NULL, NULL, err);
    return st;
}

static void tell(const struct rank *r)
{
    char injected[DP_INJECTION_TEXT_BYTES];
    if (r->reducer->rank != 0)
        return;
    dp_log(DP_LOG_INFO,
           "%" PRIu32 " ranks, %zu parameters, %" PRIu32 " epochs of %" PRIu64 " minibatches of %" PRIu32,
           r->reducer->ranks, dp_replica_floats(r->replica), r->training->epochs, r->share.batches,
           r->training->batch);
    if (dp_injection_text(r->training, injected)[0])
        dp_log(DP_LOG_INFO, "delays are injected: %s", injected);
    if (r->settled.data.test[0])
        dp_log(DP_LOG_INFO, "the test set is not evaluated here: --observe samples the weights, --weights "
                            "keeps the last ones");
}

static enum dp_status rank_open(struct rank *r, struct dp_error *err)
{
    const struct dp_reducer *reducer = r->reducer;
    enum dp_status st = dp_job_open_alone(&r->settled, reducer->rank, r->options->stop, &r->job, err);
    if (st == DP_OK)
        st = data_open(r, err);
    if (st == DP_OK)
        st = delays_open(r, err);
    if (st != DP_OK)
        return st;
    r->share = (struct dp_share){
        .batches = dp_dataset_batches(r->sets.train), .worker = reducer->rank, .workers = reducer->ranks};
    r->rounds = dp_rounds_of(r->training, r->share);
    r->rate = dp_rate_of(r->training, r->share.batches * r->training->epochs);
    st = dp_replica_new(r->job.model.graph, &r->job.backend, EXTRA, &r->replica, err);
    if (st == DP_OK)
        st = dp_worker_stats_init(&r->stats, reducer->rank, r->training->epochs, err);
    if (st == DP_OK && reducer->rank == 0 && r->options->sample.samples)
        st = dp_sampling_open(&r->options->sample, r->job.model.graph, r->replica, r->job.clock, &r->sampling,
                              err);
    (void)snprintf(r->stats.device, sizeof r->stats.device, "%s", r->job.device);
    if (st == DP_OK && r->rounds.own > 0) {
        const struct dp_reader_plan plan = {
            .epochs = r->training->epochs, .offset = reducer->rank, .stride = reducer->ranks};
        st = dp_reader_start(r->sets.train, &plan, 4, 2, &r->reader, err);
    }
    return st;
}

static void rank_close(struct rank *r)
{
    if (r->job.program)
        dp_program_drain(r->job.program);
    dp_reader_stop(&r->reader);
    dp_sampling_close(&r->sampling);
    dp_replica_free(&r->replica);
    dp_worker_stats_clear(&r->stats);
    free(r->delays);
    dp_sets_close(&r->sets);
    dp_job_close(&r->job);
}

/* Ranks of other settings or data would add what does not belong together. */
static enum dp_status agree(struct rank *r, struct dp_error *err)
{
    char text[DP_AGREED_BYTES];
    const struct dp_agreed_set train = {.digest = dp_dataset_digest(r->sets.train),
                                        .examples = r->examples_all};
    const struct dp_rate *rate = &r->rate;
    const double rates[] = {rate->rate, rate->rate_end, (double)rate->decay, (double)rate->warmup};
    dp_agreed_text(&r->settled, &train, NULL, text);
    uint64_t hash = dp_hash_bytes(dp_hash_text(text), rates, sizeof rates);
    bool same = false;
    /* Until here each has read its data. */
    enum dp_status st =
        r->reducer->ops->meet(r->reducer->self, DP_RETRY_MOST * r->training->timeout_ms * MS_NS, err);
    if (st == DP_OK)
        st = dp_reducer_same(r->reducer, hash, &same, err);
    return st != DP_OK || same ? st
                               : dp_fail(err, DP_ARGUMENT,
                                         "the ranks differ in settings or data: give all of them the same "
                                         "cluster file and the same training file");
}

/* ---- a step */

/* Wall-clock time, to compare with other machines; durations are measured by the monotonic clock. */
static double unix_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint32_t examples_of(const struct rank *r, uint64_t number)
{
    if (number >= r->share.batches)
        return 0;
    uint64_t left = r->examples_all - number * r->training->batch;
    return left < r->training->batch ? (uint32_t)left : r->training->batch;
}

static enum dp_status explain(const struct rank *r, uint64_t number, enum dp_status st, struct dp_error *err)
{
    if (st != DP_NOT_FINITE)
        return dp_wrap(err, st, "epoch %" PRIu32 ", minibatch %" PRIu64, r->epoch + 1, number);
    return dp_wrap(err, st,
                   "training has diverged in epoch %" PRIu32 ", minibatch %" PRIu64
                   " (try a lower --rate than %g, more --warmup, " DP_ADVICE_SCALE ")",
                   r->epoch + 1, number, r->training->rate);
}

static enum dp_status run_program(struct rank *r, const struct dp_batch *batch, struct dp_error *err)
{
    struct dp_device_times times = {0};
    float loss = 0;
    bool is_device = dp_program_depth(r->job.program) > 1;
    enum dp_status st = dp_program_start(r->job.program, batch, dp_replica_weights(r->replica),
                                         dp_replica_gradients(r->replica), err);
    dp_step_timer_lap(&r->watch, DP_PHASE_COMPUTE);
    if (st == DP_OK)
        st = dp_program_finish(r->job.program, &loss, &times, err);
    if (st != DP_OK)
        return st;
    dp_step_timer_lap(&r->watch, is_device ? DP_PHASE_WAITING_DEVICE : DP_PHASE_COMPUTE);
    r->stats.times.seconds[DP_PHASE_DEVICE_COPY_IN] += times.copy_in;
    r->stats.times.seconds[DP_PHASE_DEVICE_COMPUTE] += times.compute;
    r->stats.times.seconds[DP_PHASE_DEVICE_COPY_OUT] += times.copy_out;
    r->loss = (double)loss;
    if (!isfinite(loss))
        return dp_fail(err, DP_NOT_FINITE, "the loss is %f", (double)loss);
    return dp_all_finite_f32(dp_replica_sums(r->replica), dp_replica_floats(r->replica))
               ? DP_OK
               : dp_fail(err, DP_NOT_FINITE, "a gradient is NaN or infinite");
}

/* Its gradients, times its share of the step's examples. DP_STOPPING: a signal came before they were computed. */
static enum dp_status compute(struct rank *r, uint64_t number, float share, struct dp_error *err)
{
    struct dp_batch *batch = NULL;
    dp_step_timer_lap(&r->watch, DP_PHASE_OTHER);
    enum dp_status st = dp_next_batch(&r->job, r->reader, &batch, err);
    dp_step_timer_lap(&r->watch, DP_PHASE_READ);
    if (st != DP_OK)
        return st;
    DP_ASSERT(batch->number == number && batch->epoch == r->epoch);
    uint64_t begun_ns = dp_clock_ns(&r->job.clock);
    st = run_program(r, batch, err);
    if (st == DP_OK && r->delays[r->reducer->rank].is) {
        (void)dp_delays_wait(&r->delays[r->reducer->rank], r->epoch, number, begun_ns, false);
        dp_step_timer_lap(&r->watch, DP_PHASE_INJECTED);
    }
    if (st == DP_OK)
        dp_replica_scale(r->replica, share);
    dp_reader_give_back(r->reader, &batch);
    dp_step_timer_lap(&r->watch, DP_PHASE_COMPUTE);
    return st;
}

/* How long the others may take until they have come to this step. */
static uint64_t limit_of(const struct rank *r, uint64_t first)
{
    uint64_t limit_ns = r->training->timeout_ms * MS_NS, most = limit_ns;
    for (uint32_t w = 0; w < r->reducer->ranks; w++) {
        uint64_t takes_ns = dp_delays_takes_ns(&r->delays[w], r->epoch, first + w, limit_ns);
        most = takes_ns > most ? takes_ns : most;
    }
    return most;
}

/* A step that some rank could not compute is applied by none. own: this rank's error of it, or DP_OK. */
static enum dp_status given_up(const struct rank *r, uint64_t number, enum dp_status own,
                               struct dp_error *err)
{
    if (own == DP_NOT_FINITE)
        return own;
    *err = (struct dp_error){0};
    return explain(r, number, dp_fail(err, DP_NOT_FINITE, "another rank's loss or gradient is not finite"),
                   err);
}

/* Round s of the epoch. *stops: a rank was asked to stop, and nobody applied the step. DP_NOT_FINITE: on all ranks. */
static enum dp_status step(struct rank *r, uint64_t s, bool *stops, struct dp_error *err)
{
    const struct dp_reducer *reducer = r->reducer;
    uint64_t first = s * reducer->ranks, number = first + reducer->rank, all = 0, pushes = 0;
    uint32_t own = examples_of(r, number);
    for (uint32_t w = 0; w < reducer->ranks; w++) {
        all += examples_of(r, first + w);
        pushes += examples_of(r, first + w) > 0;
    }
    enum dp_status st = own > 0 ? compute(r, number, (float)own / (float)all, err) : DP_OK;
    if (st != DP_OK && st != DP_STOPPING)
        st = explain(r, number, st, err);
    if (st != DP_OK && st != DP_STOPPING && st != DP_NOT_FINITE)
        return st;
    if (own == 0 || st != DP_OK)
        dp_replica_scale(r->replica, 0);
    const enum dp_status computed = st;
    float *extra = dp_replica_sums(r->replica) + dp_replica_floats(r->replica);
    extra[STOPS] = dp_job_stopped(&r->job) ? 1 : 0;
    extra[DIVERGED] = computed == DP_NOT_FINITE ? 1 : 0;
    dp_step_timer_lap(&r->watch, DP_PHASE_OTHER);
    st = reducer->ops->meet(reducer->self, limit_of(r, first), err);
    dp_step_timer_lap(&r->watch, DP_PHASE_WAITING_RULE);
    if (st == DP_OK)
        st = reducer->ops->sum(reducer->self, dp_replica_sums(r->replica),
                               dp_replica_floats(r->replica) + EXTRA, err);
    dp_step_timer_lap(&r->watch, DP_PHASE_PUSH);
    if (st != DP_OK)
        return dp_wrap(err, st, "epoch %" PRIu32 ", step %" PRIu64, r->epoch + 1, s);
    if (extra[DIVERGED] > 0)
        return given_up(r, number, computed, err);
    *stops = extra[STOPS] > 0;
    if (*stops)
        return DP_OK;
    uint64_t rated = dp_rounds_rated(&r->rounds, s, number);
    dp_replica_apply(r->replica, dp_rate_at(&r->rate, r->epoch * r->share.batches + rated));
    dp_step_timer_lap(&r->watch, DP_PHASE_COMPUTE);
    if (r->sampling)
        dp_sampling_step(r->sampling, pushes, all);
    r->stats.pushes += own > 0;
    r->stats.epoch[r->epoch].examples += own;
    r->stats.epoch[r->epoch].loss_sum += own * r->loss;
    return DP_OK;
}

/* ---- epochs */

static enum dp_status check_copies(const struct rank *r, struct dp_error *err)
{
    bool same = false;
    const struct dp_reducer *reducer = r->reducer;
    enum dp_status st = reducer->ops->meet(reducer->self, r->training->timeout_ms * MS_NS, err);
    if (st == DP_OK)
        st = dp_reducer_same(reducer, dp_replica_digest(r->replica), &same, err);
    return st != DP_OK || same
               ? st
               : dp_fail(err, DP_INTERNAL,
                         "after epoch %" PRIu32
                         " the ranks' weights differ, which makes all of them worthless: with --sum mpi, "
                         "this MPI gives ranks different sums: take --sum ordered; else a rank's memory is "
                         "faulty",
                         r->epoch + 1);
}

static enum dp_status train_epoch(struct rank *r, bool *stops, struct dp_error *err)
{
    struct dp_epoch_stats *stats = &r->stats.epoch[r->epoch];
    const uint64_t rounds = (r->share.batches + r->share.workers - 1) / r->share.workers;
    uint64_t begun_ns = dp_clock_ns(&r->job.clock);
    enum dp_status st = DP_OK;
    r->watch = dp_step_timer_start(&r->job.clock, &r->stats.times);
    stats->begun = unix_seconds();
    for (uint64_t s = 0; st == DP_OK && !*stops && s < rounds; s++)
        st = step(r, s, stops, err);
    stats->seconds = (double)(dp_clock_ns(&r->job.clock) - begun_ns) / 1e9;
    if (st != DP_OK || *stops)
        return st;
    r->stats.ended = r->epoch + 1;
    if (stats->examples && r->reducer->rank == 0)
        dp_log(DP_LOG_INFO, "epoch %" PRIu32 " of %" PRIu32 ", own share: loss %.5g, %.0f examples/s",
               r->epoch + 1, r->training->epochs, stats->loss_sum / (double)stats->examples,
               (double)stats->examples / stats->seconds);
    return check_copies(r, err);
}

static enum dp_status finish(struct rank *r, bool stopped, struct dp_error *err)
{
    const struct dp_allreduce_options *options = r->options;
    const struct dp_ranks_report report = {.cluster = &r->settled,
                                           .given = options->cluster,
                                           .train = r->sets.train,
                                           .own = &r->stats,
                                           .stopped = stopped};
    enum dp_status st = DP_OK;
    if (r->sampling)
        dp_sampling_end(r->sampling);
    if (r->reducer->rank == 0 && options->weights)
        st = dp_weights_file_write(options->weights, &r->settled, r->job.model.graph, r->replica, err);
    if (st == DP_OK)
        st = r->reducer->ops->meet(r->reducer->self, DP_RETRY_MOST * r->training->timeout_ms * MS_NS, err);
    return st == DP_OK ? dp_ranks_report_write(&report, r->reducer, err) : st;
}

/* All ranks know it, so all hand over what they measured. None ends before the report is there: that ends the others. */
static void report_diverged(struct rank *r, const struct dp_error *why)
{
    const struct dp_ranks_report report = {.cluster = &r->settled,
                                           .given = r->options->cluster,
                                           .train = r->sets.train,
                                           .own = &r->stats,
                                           .diverged = r->epoch + 1,
                                           .error = why->text};
    const struct dp_reducer *reducer = r->reducer;
    const uint64_t limit_ns = DP_RETRY_MOST * r->training->timeout_ms * MS_NS;
    struct dp_error err = {0};
    enum dp_status st = reducer->ops->meet(reducer->self, limit_ns, &err);
    if (st == DP_OK)
        st = dp_ranks_report_write(&report, reducer, &err);
    if (st == DP_OK)
        st = reducer->ops->meet(reducer->self, limit_ns, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "there is no report of the training that diverged: %s", err.text);
}

static enum dp_status train(struct rank *r, struct dp_error *err)
{
    bool stops = false;
    enum dp_status st = agree(r, err);
    if (st == DP_OK)
        tell(r);
    for (r->epoch = 0; st == DP_OK && !stops && r->epoch < r->training->epochs;) {
        st = train_epoch(r, &stops, err);
        r->epoch += st == DP_OK;
    }
    if (st == DP_NOT_FINITE)
        report_diverged(r, err);
    if (st == DP_OK)
        st = finish(r, stops, err);
    return st == DP_OK && stops ? dp_fail(err, DP_STOPPING,
                                          "stopped by a signal after %" PRIu32 " of %" PRIu32
                                          " epochs; there is no way to go on from there",
                                          r->stats.ended, r->training->epochs)
                                : st;
}

enum dp_status dp_allreduce(const struct dp_allreduce_options *options, struct dp_error *err)
{
    enum dp_status st = dp_allreduce_check(options->cluster, options->reducer->ranks, err);
    if (st != DP_OK)
        return st;
    struct rank *r = calloc(1, sizeof *r);
    if (!r)
        return dp_fail(err, DP_NOMEM, "no memory for a training");
    r->options = options;
    r->reducer = options->reducer;
    r->settled = *options->cluster;
    r->training = &r->settled.training;
    (void)snprintf(r->settled.training.consistency, sizeof r->settled.training.consistency, "sync");
    st = rank_open(r, err);
    if (st == DP_OK)
        st = train(r, err);
    rank_close(r);
    free(r);
    return st;
}
