/* Opens and closes the parts of a loop: its places in the epoch, its buffers, its reader. */
#include "worker/loop/step_inner.h"

#include "common/base/log.h"
#include "worker/telemetry/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

static uint32_t at_most(uint32_t value, uint64_t max)
{
    return max < 1 ? 1 : value < max ? value : (uint32_t)max;
}

static void tell_threads(const struct dp_loop *loop)
{
    const struct dp_optimizer_spec *optimizer = &loop->training->optimizer;
    dp_log(DP_LOG_INFO,
           "%" PRIu32 " threads share the weights of %" PRIu32
           " minibatches, which are pulled and pushed together",
           loop->training->threads, loop->fetch_every);
    if (optimizer->kind != DP_OPT_SGD)
        dp_log(DP_LOG_WARN,
               "%s takes one step for a push, of %" PRIu32
               " minibatches: it may want a higher --rate or a lower --fetch-every than with one thread",
               dp_cluster_optimizer_name(optimizer), loop->push_every);
}

static void tell_delays(const struct dp_cluster_training *training)
{
    char injected[DP_INJECTION_TEXT_BYTES];
    if (dp_injection_text(training, injected)[0])
        dp_log(DP_LOG_INFO, "delays are injected: %s", injected);
}

static enum dp_status buffers_open(struct dp_loop *loop, struct dp_error *err)
{
    struct dp_job *job = loop->job;
    struct dp_weights_options weights = {.graph = job->model.graph,
                                         .tables = job->table,
                                         .shards = job->shards,
                                         .worst = &job->worst,
                                         .batches_max = loop->fetch_every,
                                         .backend = &job->backend,
                                         .source = loop->exchange ? &loop->exchange->rows : NULL};
    struct dp_gradients_options gradients = {.graph = job->model.graph,
                                             .tables = job->table,
                                             .shards = job->shards,
                                             .worst = &job->worst,
                                             .batches_max = loop->push_every,
                                             .backend = &job->backend};
    const struct dp_hogwild_options threads = {.job = job,
                                               .threads = loop->training->threads,
                                               .batches_max = loop->fetch_every,
                                               .delays = &loop->delays};
    bool shared = threads.threads > 1 && loop->fetch_every > 1; /* else there is one minibatch at most */
    enum dp_status st = shared ? dp_hogwild_open(&threads, &loop->hogwild, err) : DP_OK;
    if (loop->hogwild)
        tell_threads(loop);
    for (int i = 0; st == DP_OK && !shared && i < (loop->flies ? 2 : 1); i++)
        st = dp_gradients_new(&gradients, &loop->gradients[i], err);
    for (int i = 0; st == DP_OK && i < 2; i++) {
        st = dp_weights_new(&weights, &loop->fetch[i].weights, err);
        loop->fetch[i].batch = calloc(loop->fetch_every, sizeof *loop->fetch[i].batch);
        if (st == DP_OK && !loop->fetch[i].batch)
            st = dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " minibatches", loop->fetch_every);
    }
    return st;
}

static void take_data(struct dp_loop *loop, const struct dp_dataset *data)
{
    loop->examples_all = dp_dataset_examples(data);
    loop->scale = dp_advice_scale(&loop->job->cluster->data, dp_dataset_format(data));
}

enum dp_status dp_loop_open(const struct dp_loop_options *options, struct dp_loop **out, struct dp_error *err)
{
    struct dp_job *job = options->job;
    const struct dp_position *position = options->position;
    const struct dp_cluster_training *training = &job->cluster->training;
    *out = NULL;
    struct dp_loop *loop = calloc(1, sizeof *loop);
    if (!loop)
        return dp_fail(err, DP_NOMEM, "no memory for the training loop");
    loop->job = job;
    loop->progress = options->progress;
    loop->stats = options->stats;
    loop->exchange = options->exchange;
    loop->position = position;
    loop->history = options->history;
    loop->training = training;
    loop->share = (struct dp_share){
        .batches = dp_dataset_batches(options->data), .worker = job->worker, .workers = training->workers};
    loop->rounds = dp_rounds_of(training, loop->share);
    loop->loss_unit = pow(dp_label_scale_unit(&dp_dataset_schema(options->data)->label_scale), 2);
    loop->pushes = (struct dp_in_flight){.job = job,
                                         .progress = options->progress,
                                         .stats = options->stats,
                                         .member = loop->rounds.members > 0,
                                         .flying = &loop->flying};
    bool leased = training->work == DP_CLUSTER_LEASED; /* the first share has the longest groups */
    loop->positions = dp_share_positions(leased ? dp_share_with(loop->share, 0) : loop->share);
    loop->owner = job->worker;
    take_data(loop, options->data);
    loop->rate = dp_rate_of(training, loop->share.batches * training->epochs);
    /* Groups never cross epochs, so a group has at most the minibatches of one epoch. */
    loop->accumulates = training->accumulate > 1;
    uint32_t fetched = dp_cluster_fetched_together(training), pushed = dp_cluster_pushed_together(training);
    loop->fetch_every = at_most(fetched, leased && fetched != pushed ? loop->share.batches : loop->positions);
    loop->push_every = at_most(pushed, loop->positions);

    /* Within a group a step depends on the one before: on its local weights, or on its place in the
         * sum. */
    loop->is_device = dp_program_depth(job->program) > 1;
    loop->overlap = training->overlap && !loop->exchange; /* whose rows do not wait for a step */
    loop->flies =
        loop->is_device && loop->overlap && !leased && loop->fetch_every == 1 && loop->push_every == 1;

    loop->late = (struct dp_late){.job = job, .skipped = &loop->skipped};
    loop->delays = dp_delays_of(job);
    loop->delays.ends = dp_late_look;
    loop->delays.ends_of = &loop->late;
    tell_delays(training);

    enum dp_status st = buffers_open(loop, err);
    if (st == DP_OK && leased)
        st = dp_work_leases_open(job, loop->share, pushed, &loop->leases, err);
    loop->pushes.leases = loop->leases;
    if (st == DP_OK && loop->positions > 0) {
        const struct dp_reader_plan plan = {.first_epoch = position->epoch,
                                            .epochs = training->epochs - position->epoch,
                                            .before = training->first_epoch,
                                            .offset = job->worker,
                                            .stride = training->workers,
                                            .skip = dp_loop_needs_no_reading,
                                            .of = loop,
                                            .asked = leased};
        st = dp_reader_start(options->data, &plan, 2 * loop->fetch_every + 2, 2 * loop->fetch_every,
                             &loop->reader, err);
    }
    if (st != DP_OK)
        dp_loop_close(&loop);
    *out = loop;
    return st;
}

void dp_loop_close(struct dp_loop **loop)
{
    struct dp_loop *l = *loop;
    *loop = NULL;
    if (!l)
        return;
    dp_program_drain(l->job->program); /* it may still access the buffers freed below */
    for (int i = 0; i < 2; i++)
        dp_loop_fetch_release(l, &l->fetch[i]);
    dp_reader_stop(&l->reader);
    dp_work_leases_close(&l->leases);
    for (int i = 0; i < 2; i++) {
        dp_weights_free(&l->fetch[i].weights);
        free(l->fetch[i].batch);
    }
    dp_hogwild_close(&l->hogwild);
    dp_gradients_free(&l->gradients[0]);
    dp_gradients_free(&l->gradients[1]);
    free(l);
}
