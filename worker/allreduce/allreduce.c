#include "worker/allreduce/allreduce.h"

#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/config/injection.h"
#include "common/model/optimizer.h"
#include "common/tensors/tensor_file.h"
#include "worker/allreduce/replica.h"
#include "worker/context/exchange.h"
#include "worker/context/retry.h"
#include "worker/context/training_settings.h"
#include "worker/loop/gradients.h"
#include "worker/loop/step.h"
#include "worker/schedule/rate.h"
#include "worker/schedule/shares.h"
#include "worker/score/sets.h"
#include "worker/telemetry/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct dp_replica *replica;
    struct dp_exchange exchange;
    /* Of the loop. It stops when all ranks do, and nothing was done before. */
    atomic_int never;
    struct dp_progress progress;
    struct dp_position position;
    struct dp_stats_history history;
    struct dp_worker_stats stats;
    struct dp_loop *loop;
    struct dp_sampling *sampling; /* rank 0, or NULL */
    uint64_t examples_all;        /* of an epoch */
    uint64_t step;                /* of the run, the next one */
    bool stopped, diverged;       /* as all ranks know */
};

/* ---- a step */

static uint32_t examples_of(const struct rank *r, uint64_t number)
{
    if (number >= r->share.batches)
        return 0;
    uint64_t left = r->examples_all - number * r->training->batch;
    return left < r->training->batch ? (uint32_t)left : r->training->batch;
}

/* How long the others may take until they have come to this step, whose first minibatch is this one:
 * timeout_ms, or that as a rank's injected delay lengthens it. */
static uint64_t limit_of(const struct rank *r, uint64_t first)
{
    uint64_t limit_ns = r->training->timeout_ms * MS_NS, most = limit_ns;
    for (uint32_t w = 0; w < r->reducer->ranks; w++) {
        const struct dp_injection injection = dp_injection_of(r->training, w);
        uint64_t takes_ns = dp_injection_takes_ns(&injection, r->training->seed, r->step / r->rounds.most,
                                                  first + w, limit_ns);
        most = takes_ns > most ? takes_ns : most;
    }
    return most;
}

/* Its gradients, times its share of the step's examples. false: one is not finite. */
static bool put_gradients(struct rank *r, const struct dp_gradients *gradients, float share)
{
    bool finite = true;
    for (int p = 0; p < dp_graph_parameters(r->job.model.graph); p++) {
        const float *of = gradients ? dp_gradients_sum(gradients, p) : NULL;
        finite =
            finite &&
            (!of || dp_all_finite_f32(of, dp_parameter_floats(dp_graph_parameter(r->job.model.graph, p))));
        dp_replica_put(r->replica, p, of, share);
    }
    return finite;
}

/* The next step, by all ranks. finite: what this one computed for it is. */
static enum dp_status reduce(struct rank *r, const struct dp_gradients *gradients, bool finite, float rate,
                             struct dp_step_timer *watch, struct dp_error *err)
{
    const struct dp_reducer *reducer = r->reducer;
    uint64_t first = r->step % r->rounds.most * reducer->ranks, all = 0, pushes = 0;
    uint32_t own = examples_of(r, first + reducer->rank);
    for (uint32_t w = 0; w < reducer->ranks; w++) {
        all += examples_of(r, first + w);
        pushes += examples_of(r, first + w) > 0;
    }
    finite = put_gradients(r, gradients, (float)own / (float)all) && finite;
    if (!finite)
        (void)put_gradients(r, NULL, 0);
    float *extra = dp_replica_sums(r->replica) + dp_replica_floats(r->replica);
    extra[STOPS] = atomic_load(r->options->stop) != 0 ? 1 : 0;
    extra[DIVERGED] = finite ? 0 : 1;
    dp_step_timer_lap(watch, DP_PHASE_COMPUTE);
    enum dp_status st = reducer->ops->meet(reducer->self, limit_of(r, first), err);
    dp_step_timer_lap(watch, DP_PHASE_WAITING_RULE);
    if (st == DP_OK)
        st = reducer->ops->sum(reducer->self, dp_replica_sums(r->replica),
                               dp_replica_floats(r->replica) + EXTRA, err);
    dp_step_timer_lap(watch, DP_PHASE_PUSH);
    r->diverged = st == DP_OK && extra[DIVERGED] > 0;
    r->stopped = st == DP_OK && !r->diverged && extra[STOPS] > 0;
    if (r->diverged)
        return dp_fail(err, DP_NOT_FINITE, "%s",
                       finite ? "another rank's loss or gradient is not finite"
                              : "a gradient is NaN or infinite");
    if (r->stopped)
        return dp_fail(err, DP_STOPPING, "a rank was asked to stop");
    if (st != DP_OK)
        return st;
    dp_replica_apply(r->replica, rate);
    dp_step_timer_lap(watch, DP_PHASE_COMPUTE);
    r->step++;
    if (r->sampling)
        dp_sampling_step(r->sampling, pushes, all);
    return DP_OK;
}

/* Of the loop. */
static enum dp_status take_step(void *of, const struct dp_push_options *options,
                                const struct dp_gradients *gradients, struct dp_step_timer *watch,
                                struct dp_error *err)
{
    struct rank *r = of;
    DP_ASSERT(options->step == r->step);
    return reduce(r, gradients, true, options->rate, watch, err);
}

/* ---- opening */

static enum dp_status data_open(struct rank *r, struct dp_error *err)
{
    enum dp_status st = dp_sets_train(&r->job, &r->settled.training, &r->sets, err);
    if (st != DP_OK)
        return st;
    r->examples_all = dp_dataset_examples(r->sets.train);
    return dp_job_program(&r->job, r->sets.train, NULL, NULL, err);
}

static void tell(const struct rank *r)
{
    if (r->reducer->rank != 0)
        return;
    dp_log(DP_LOG_INFO,
           "%" PRIu32 " ranks, %zu parameters, %" PRIu32 " epochs of %" PRIu64 " minibatches of %" PRIu32,
           r->reducer->ranks, dp_replica_floats(r->replica), r->training->epochs, r->share.batches,
           r->training->batch);
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
    if (st != DP_OK)
        return st;
    r->share = (struct dp_share){
        .batches = dp_dataset_batches(r->sets.train), .worker = reducer->rank, .workers = reducer->ranks};
    r->rounds = dp_rounds_of(r->training, r->share);
    r->rate = dp_rate_of(r->training, r->share.batches * r->training->epochs);
    st = dp_replica_new(r->job.model.graph, EXTRA, &r->replica, err);
    if (st == DP_OK)
        st = dp_worker_stats_init(&r->stats, reducer->rank, r->training->epochs, err);
    if (st == DP_OK && reducer->rank == 0 && r->options->sample.samples)
        st = dp_sampling_open(&r->options->sample, r->job.model.graph, r->replica, r->job.clock, &r->sampling,
                              err);
    (void)snprintf(r->stats.device, sizeof r->stats.device, "%s", r->job.device);
    if (st != DP_OK)
        return st;
    r->exchange = (struct dp_exchange){.step = take_step, .of = r, .rows = dp_replica_rows(r->replica)};
    r->job.stop = &r->never;
    dp_progress_init(&r->progress, &r->job, 0);
    const struct dp_loop_options loop = {.job = &r->job,
                                         .data = r->sets.train,
                                         .progress = &r->progress,
                                         .stats = &r->stats,
                                         .position = &r->position,
                                         .history = &r->history,
                                         .exchange = &r->exchange};
    return dp_loop_open(&loop, &r->loop, err);
}

static void rank_close(struct rank *r)
{
    dp_loop_close(&r->loop);
    dp_sampling_close(&r->sampling);
    dp_replica_free(&r->replica);
    dp_worker_stats_clear(&r->stats);
    dp_sets_close(&r->sets);
    dp_job_close(&r->job);
}

/* For what takes a while: reading the data, and rank 0's files. */
static enum dp_status meet_long(const struct rank *r, struct dp_error *err)
{
    return r->reducer->ops->meet(r->reducer->self, DP_RETRY_MOST * r->training->timeout_ms * MS_NS, err);
}

/* Ranks of other settings or data would add what does not belong together. */
static enum dp_status agree(struct rank *r, struct dp_error *err)
{
    char text[DP_TRAINING_SETTINGS_BYTES];
    const struct dp_training_settings_set train = {.digest = dp_dataset_digest(r->sets.train),
                                                   .examples = r->examples_all};
    const struct dp_rate *rate = &r->rate;
    const double rates[] = {rate->rate, rate->rate_end, (double)rate->decay, (double)rate->warmup};
    dp_training_settings_text(&r->settled, &train, NULL, text);
    uint64_t hash = dp_hash_bytes(dp_hash_text(text), rates, sizeof rates);
    bool same = false;
    /* Until here each has read its data. */
    enum dp_status st = meet_long(r, err);
    if (st == DP_OK)
        st = dp_reducer_same(r->reducer, hash, &same, err);
    return st != DP_OK || same ? st
                               : dp_fail(err, DP_ARGUMENT,
                                         "the ranks differ in settings or data: give all of them the same "
                                         "cluster file and the same training file");
}

/* ---- epochs */

static enum dp_status check_copies(const struct rank *r, uint32_t epoch, struct dp_error *err)
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
                         epoch + 1);
}

static enum dp_status train_epoch(struct rank *r, uint32_t epoch, struct dp_error *err)
{
    const struct dp_epoch_stats *stats = &r->stats.epoch[epoch];
    enum dp_status st = dp_loop_epoch(r->loop, epoch, err);
    if (st == DP_NOT_FINITE && !r->diverged) { /* the others wait for this step */
        struct dp_step_timer watch = dp_step_timer_start(&r->job.clock, &r->stats.times);
        struct dp_error unheard = {0};
        (void)reduce(r, NULL, false, 0, &watch, &unheard);
    }
    if (st != DP_OK)
        return st;
    r->stats.ended = epoch + 1;
    if (stats->examples && r->reducer->rank == 0)
        dp_log(DP_LOG_INFO, "epoch %" PRIu32 " of %" PRIu32 ", own share: loss %.5g, %.0f examples/s",
               epoch + 1, r->training->epochs, stats->loss_sum / (double)stats->examples,
               (double)stats->examples / stats->seconds);
    return check_copies(r, epoch, err);
}

/* ---- the last weights, and the report of all ranks */

/* Without the padding of the last block. */
static enum dp_status write_rows(const struct dp_parameter *parameter, int p,
                                 const struct dp_replica *replica, struct dp_tensor_file *file,
                                 struct dp_error *err)
{
    uint64_t floats = (uint64_t)parameter->rows * parameter->width, dim = parameter->table.dim;
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < floats; at += dim)
        st = dp_tensor_file_put(file, (size_t)p, at, dp_replica_row(replica, p, at / dim),
                                floats - at < dim ? floats - at : dim, err);
    return st;
}

/* As `downpour export --to FILE.safetensors` writes the parameters of a store: tensors of the model's shapes,
 * by the tables' names. */
static enum dp_status write_weights(const struct rank *r, struct dp_error *err)
{
    const struct dp_graph *graph = r->job.model.graph;
    const struct dp_tensor_text metadata[] = {{"model", r->settled.model}};
    struct dp_tensors tensors = {0};
    struct dp_tensor_file file = {0};
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        struct dp_tensor tensor = {.type = DP_TENSOR_F32, .rows = parameter->rows, .width = parameter->width};
        size_t index;
        (void)snprintf(tensor.name, sizeof tensor.name, "%s", parameter->table.name);
        st = dp_tensors_add(&tensors, &tensor, &index, err);
    }
    if (st == DP_OK)
        st = dp_tensor_file_open(r->options->weights, &tensors, metadata, 1, &file, err);
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++)
        st = write_rows(dp_graph_parameter(graph, p), p, r->replica, &file, err);
    if (st == DP_OK)
        st = dp_tensor_file_commit(&file, err);
    dp_tensor_file_drop(&file);
    dp_tensors_clear(&tensors);
    return st == DP_OK ? st : dp_wrap(err, st, "weights");
}

/* report: without its workers. */
static enum dp_status write_report(const struct dp_report *report, const struct dp_gathered *all,
                                   uint32_t ranks, struct dp_error *err)
{
    const struct dp_cluster_training *training = &report->cluster->training;
    struct dp_speed speed;
    struct dp_worker_stats *workers = calloc(ranks, sizeof *workers);
    struct dp_report full = *report;
    enum dp_status st =
        workers ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", ranks);
    for (uint32_t w = 0; st == DP_OK && w < ranks; w++)
        st = dp_worker_stats_unpack(all[w].bytes, all[w].size, training->epochs, &workers[w], err);
    full.workers = workers;
    if (st == DP_OK)
        st = dp_report_speed(&full, &speed, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", full.epochs,
               speed.seconds, speed.examples_per_s);
    if (st == DP_OK && training->report[0])
        st = dp_report_write(&full, training->report, err);
    for (uint32_t w = 0; workers && w < ranks; w++)
        dp_worker_stats_clear(&workers[w]);
    free(workers);
    return st;
}

static enum dp_status gather_and_report(const struct rank *r, const struct dp_report *report,
                                        struct dp_error *err)
{
    const struct dp_reducer *reducer = r->reducer;
    char *text = NULL;
    struct dp_gathered *all = reducer->rank == 0 ? calloc(reducer->ranks, sizeof *all) : NULL;
    enum dp_status st =
        reducer->rank != 0 || all
            ? dp_worker_stats_pack(&r->stats, &text, err)
            : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", reducer->ranks);
    if (st == DP_OK)
        st = reducer->ops->gather(reducer->self, text, strlen(text), all, err);
    if (st == DP_OK && all)
        st = write_report(report, all, reducer->ranks, err);
    for (uint32_t w = 0; all && w < reducer->ranks; w++)
        free(all[w].bytes);
    free(all);
    free(text);
    return st;
}

/* All ranks hand over what they measured. diverged: why, or NULL. */
static enum dp_status report(struct rank *r, const char *diverged, struct dp_error *err)
{
    const struct dp_cluster_training *given = &r->options->cluster->training;
    const struct dp_report of = {.cluster = &r->settled,
                                 .reduced_by = r->reducer->how,
                                 .epochs_by_size = given->epochs == 0,
                                 .batch_by_size = given->batch == 0,
                                 .examples = r->examples_all,
                                 .digest = dp_dataset_digest(r->sets.train),
                                 .epochs = r->stats.ended,
                                 .minibatches = r->stats.ended * r->share.batches,
                                 .finished = !r->stopped && !diverged,
                                 .ended = r->stopped ? "stopped"
                                          : diverged ? "failed"
                                                     : NULL,
                                 .diverged = diverged ? r->stats.ended + 1 : 0,
                                 .error = diverged};
    enum dp_status st = meet_long(r, err);
    return st == DP_OK ? gather_and_report(r, &of, err) : st;
}

static enum dp_status finish(struct rank *r, struct dp_error *err)
{
    const struct dp_allreduce_options *options = r->options;
    enum dp_status st = DP_OK;
    if (r->sampling)
        dp_sampling_end(r->sampling);
    if (r->reducer->rank == 0 && options->weights)
        st = write_weights(r, err);
    if (st == DP_OK)
        st = report(r, NULL, err);
    return st == DP_OK && r->stopped ? dp_fail(err, DP_STOPPING,
                                               "stopped by a signal after %" PRIu32 " of %" PRIu32
                                               " epochs; there is no way to go on from there",
                                               r->stats.ended, r->training->epochs)
                                     : st;
}

/* None ends before the report is there: that ends the others. */
static void report_diverged(struct rank *r, const struct dp_error *why)
{
    struct dp_error err = {0};
    enum dp_status st = report(r, why->text, &err);
    if (st == DP_OK)
        st = meet_long(r, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "there is no report of the training that diverged: %s", err.text);
}

static enum dp_status train(struct rank *r, struct dp_error *err)
{
    enum dp_status st = agree(r, err);
    if (st == DP_OK)
        tell(r);
    for (uint32_t e = 0; st == DP_OK && e < r->training->epochs; e++)
        st = train_epoch(r, e, err);
    if (st == DP_NOT_FINITE)
        report_diverged(r, err);
    return st == DP_OK || r->stopped ? finish(r, err) : st;
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
