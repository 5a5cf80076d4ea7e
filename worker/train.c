#include "worker/train.h"

#include "common/base/log.h"
#include "worker/evaluate.h"
#include "worker/group.h"
#include "worker/peers.h"
#include "worker/report.h"
#include "worker/step.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct training {
    struct dp_job *job;
    const struct dp_cluster_training *settings;
    struct dp_progress progress;
    struct dp_dataset *train, *test; /* test: NULL without one */
    struct dp_worker_figures figures;
    struct dp_loop *loop;
    struct dp_tested *tested; /* worker 0: [epochs] */
    struct dp_eval_ring ring; /* with a test set */
    bool resumed;             /* this worker was started before in this run, and ended early */
};

/* A second training under the number of a first would push under ids that the servers have counted. Tells
 * whether this worker has been at work in this run before, as one has that was killed. */
static enum dp_status look_back(struct dp_job *job, bool *resumed, struct dp_error *err)
{
    struct dp_note trained = {0}, progress = {0};
    enum dp_status st = dp_peers_one(job, "trained", job->worker, &trained, err);
    if (st == DP_OK)
        st = dp_peers_one(job, "progress", job->worker, &progress, err);
    if (st == DP_OK && trained.bytes)
        st = dp_fail(err, DP_EXISTS,
                     "worker %" PRIu32 " has finished run %" PRIu32
                     " on these servers already: give training.run another number",
                     job->worker, job->cluster->training.run);
    *resumed = progress.bytes != NULL;
    free(trained.bytes);
    free(progress.bytes);
    return st;
}

/* Notes are gone when the first server has been started again; the ids of pushes are not. */
static enum dp_status check_something_new(const struct training *t, struct dp_error *err)
{
    const struct dp_staleness *staleness = &t->figures.staleness;
    if (staleness->repeated == 0)
        return DP_OK;
    if (staleness->pushes == 0 && !t->resumed)
        return dp_fail(err, DP_EXISTS,
                       "nothing was trained: the servers had applied every push of worker %" PRIu32
                       " in run %" PRIu32 " before; a further training wants a higher training.run",
                       t->job->worker, t->settings->run);
    dp_log(DP_LOG_WARN,
           "%" PRIu64 " pushes had been applied before and were counted once: this run was begun on these "
           "servers already",
           staleness->repeated);
    return DP_OK;
}

static enum dp_status data_open(struct training *t, struct dp_error *err)
{
    const struct dp_cluster_data *data = &t->job->cluster->data;
    struct dp_dataset_options options = dp_job_data(t->job, data->train, data->train_labels, true);
    enum dp_status st = dp_dataset_open(&options, &t->train, err);
    if (st == DP_OK && dp_dataset_examples(t->train) == 0)
        st = dp_fail(err, DP_DATA, "%s has no examples to train on", data->train);
    if (st == DP_OK && data->test[0]) {
        options = dp_job_data(t->job, data->test, data->test_labels, false);
        st = dp_dataset_open(&options, &t->test, err);
        if (st == DP_OK)
            st = dp_evaluate_plan(t->job, t->test, &t->ring, err);
    }
    if (st == DP_OK)
        st = dp_job_program(t->job, t->train, t->test, err);
    return st;
}

static enum dp_status training_open(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    dp_progress_init(&t->progress, job, 0);
    enum dp_status st = look_back(job, &t->resumed, err);
    if (st != DP_OK)
        return st;
    dp_progress_enter(&t->progress, "reading");
    st = data_open(t, err);
    if (st != DP_OK)
        return st;
    const struct dp_share share = {
        .batches = dp_dataset_batches(t->train), .worker = job->worker, .workers = t->settings->workers};
    t->progress.examples_total =
        t->settings->epochs * dp_share_examples(share, dp_dataset_examples(t->train), t->settings->batch);
    t->tested = calloc(t->settings->epochs, sizeof *t->tested);
    if (!t->tested)
        return dp_fail(err, DP_NOMEM, "no memory for the figures of %" PRIu32 " epochs", t->settings->epochs);
    st = dp_worker_figures_init(&t->figures, job->worker, t->settings->epochs, err);
    if (st == DP_OK)
        st = dp_loop_open(job, t->train, &t->progress, &t->figures, &t->loop, err);
    return st;
}

static void training_close(struct training *t)
{
    dp_loop_close(&t->loop);
    dp_worker_figures_clear(&t->figures);
    free(t->tested);
    dp_dataset_close(&t->test);
    dp_dataset_close(&t->train);
}

static void log_figures(uint32_t epoch, const struct dp_figures *figures)
{
    char text[160];
    size_t at = (size_t)snprintf(text, sizeof text, "loss %.5g", figures->loss);
    if (isfinite(figures->accuracy))
        at += (size_t)snprintf(text + at, sizeof text - at, ", accuracy %.4f", figures->accuracy);
    if (isfinite(figures->auc))
        at += (size_t)snprintf(text + at, sizeof text - at, ", AUC %.4f", figures->auc);
    if (isfinite(figures->rmse))
        (void)snprintf(text + at, sizeof text - at, ", RMSE %.5g", figures->rmse);
    dp_log(DP_LOG_INFO, "epoch %" PRIu32 ", test: %s", epoch, text);
}

/* Worker 0: epochs 1 .. upto whose figures are not known yet. Those of the last one are waited for: when all
 * have trained, the parts of others are there or will never be. */
static enum dp_status merge_epochs(struct training *t, uint32_t upto, struct dp_error *err)
{
    for (uint32_t e = 1; e <= upto; e++) {
        struct dp_tested *tested = &t->tested[e - 1];
        enum dp_eval_note found;
        if (tested->known || tested->gone)
            continue;
        enum dp_status st = dp_evaluate_merge(t->job, &t->progress, t->ring, e, e == t->settings->epochs,
                                              &found, &tested->figures, err);
        if (st != DP_OK)
            return st;
        tested->known = found == DP_EVAL_PART;
        tested->gone = found == DP_EVAL_GONE;
        if (tested->known)
            log_figures(e, &tested->figures);
        else if (tested->gone)
            dp_log(DP_LOG_WARN,
                   "epoch %" PRIu32
                   " will have no test figures: parts of its evaluation are no longer on the "
                   "first server",
                   e);
    }
    return DP_OK;
}

static enum dp_status train_epochs(struct training *t, struct dp_error *err)
{
    for (uint32_t e = 0; e < t->settings->epochs; e++) {
        enum dp_status st = dp_loop_epoch(t->loop, e, err);
        if (st != DP_OK)
            return st;
        const struct dp_epoch_figures *figures = &t->figures.epoch[e];
        if (figures->examples)
            dp_log(DP_LOG_INFO, "epoch %" PRIu32 " of %" PRIu32 ", own share: loss %.5g, %.0f examples/s",
                   e + 1, t->settings->epochs, figures->loss_sum / (double)figures->examples,
                   (double)figures->examples / figures->seconds);
        bool last = e + 1 == t->settings->epochs;
        if (t->test && !last)
            st = dp_evaluate_share(t->job, &t->progress, t->test, t->ring, e + 1, err);
        if (st == DP_OK && t->test && !last && t->job->worker == 0)
            st = merge_epochs(t, e + 1, err);
        if (st != DP_OK)
            return st;
    }
    return check_something_new(t, err);
}

static enum dp_status write_report(struct training *t, const struct dp_note *trained, struct dp_error *err)
{
    uint32_t workers = t->settings->workers;
    struct dp_worker_figures *figures = calloc(workers, sizeof *figures);
    if (!figures)
        return dp_fail(err, DP_NOMEM, "no memory for the figures of %" PRIu32 " workers", workers);
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < workers; w++)
        st = dp_worker_figures_unpack(trained[w].bytes, trained[w].size, t->settings->epochs, &figures[w],
                                      err);
    if (st == DP_OK) {
        struct dp_speed speed;
        const struct dp_report report = {.cluster = t->job->cluster,
                                         .examples = dp_dataset_examples(t->train),
                                         .digest = dp_dataset_digest(t->train),
                                         .workers = figures,
                                         .tested = t->tested};
        st = dp_report_speed(&report, &speed, err);
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", t->settings->epochs,
                   speed.seconds, speed.examples_per_s);
        if (st == DP_OK && t->settings->report[0])
            st = dp_report_write(&report, t->settings->report, err);
    }
    for (uint32_t w = 0; w < workers; w++)
        dp_worker_figures_clear(&figures[w]);
    free(figures);
    return st;
}

static enum dp_status finish(struct training *t, struct dp_error *err)
{
    struct dp_job *job = t->job;
    char *text = NULL;
    struct dp_note *trained = calloc(t->settings->workers, sizeof *trained);
    enum dp_status st = trained ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the workers' notes");
    if (st == DP_OK)
        st = dp_worker_figures_pack(&t->figures, &text, err);
    if (st == DP_OK)
        st = dp_peers_put(job, "trained", job->worker, text, strlen(text), err);
    if (st != DP_OK || (!t->test && job->worker != 0))
        goto done;
    dp_progress_enter(&t->progress, "waiting");
    st = dp_peers_wait(job, &t->progress, "trained", trained, err);
    if (st == DP_OK && t->test)
        st = dp_evaluate_share(job, &t->progress, t->test, t->ring, t->settings->epochs, err);
    if (st != DP_OK || job->worker != 0)
        goto done;
    dp_progress_enter(&t->progress, "waiting");
    if (t->test)
        st = merge_epochs(t, t->settings->epochs, err);
    if (st == DP_OK)
        st = write_report(t, trained, err);
done:
    dp_peers_clear(trained, t->settings->workers);
    free(trained);
    free(text);
    return st;
}

enum dp_status dp_train(struct dp_job *job, struct dp_error *err)
{
    struct training t = {.job = job, .settings = &job->cluster->training};
    enum dp_status st = training_open(&t, err);
    if (st == DP_OK)
        st = train_epochs(&t, err);
    if (st == DP_OK)
        st = finish(&t, err);
    if (st == DP_OK)
        dp_progress_enter(&t.progress, "done");
    else
        dp_progress_end(&t.progress, job, st); /* before buffers go that a pull may still write into */
    training_close(&t);
    return st;
}
