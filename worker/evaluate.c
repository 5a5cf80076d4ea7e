#include "worker/evaluate.h"

#include "worker/peers.h"
#include "worker/scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT_BYTES 32

static void what_of(uint32_t epoch, char *what)
{
    (void)snprintf(what, WHAT_BYTES, "eval/%" PRIu32, epoch);
}

static enum dp_status add(void *context, const struct dp_batch *batch, const float *output, uint32_t width,
                          struct dp_error *err)
{
    (void)width;
    enum dp_status st = dp_metrics_add(context, output, batch->labels, batch->examples, err);
    if (st == DP_NOT_FINITE)
        st = dp_wrap(err, st, "the training has diverged, a lower rate may help");
    return st;
}

enum dp_status dp_evaluate_share(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *test, uint32_t epoch, struct dp_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    struct dp_metrics *metrics = NULL;
    dp_progress_enter(progress, "evaluating");
    enum dp_status st = dp_metrics_new(job->model.labels, job->model.classes, &metrics, err);
    if (st != DP_OK)
        goto done;
    const struct dp_scan scan = {.job = job,
                                 .data = test,
                                 .offset = job->worker,
                                 .stride = job->cluster->training.workers,
                                 .progress = progress,
                                 .visit = add,
                                 .context = metrics};
    st = dp_scan(&scan, err);
    if (st == DP_OK)
        st = dp_metrics_pack(metrics, &bytes, &size, err);
    if (st != DP_OK)
        goto done;
    char what[WHAT_BYTES];
    what_of(epoch, what);
    st = dp_peers_put(job, what, job->worker, bytes, size, err);
done:
    free(bytes);
    dp_metrics_free(&metrics);
    return st == DP_OK ? st : dp_wrap(err, st, "evaluation after epoch %" PRIu32, epoch);
}

static enum dp_status merge(struct dp_job *job, const struct dp_note *notes, struct dp_figures *out,
                            struct dp_error *err)
{
    struct dp_metrics *metrics = NULL;
    enum dp_status st = dp_metrics_new(job->model.labels, job->model.classes, &metrics, err);
    for (uint32_t w = 0; st == DP_OK && w < job->cluster->training.workers; w++) {
        st = dp_metrics_merge(metrics, notes[w].bytes, notes[w].size, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "the part of worker %" PRIu32, w);
    }
    if (st == DP_OK)
        st = dp_metrics_figures(metrics, out, err);
    dp_metrics_free(&metrics);
    return st;
}

enum dp_status dp_evaluate_merge(struct dp_job *job, struct dp_progress *progress, uint32_t epoch, bool wait,
                                 bool *done, struct dp_figures *out, struct dp_error *err)
{
    uint32_t workers = job->cluster->training.workers, missing = 0;
    char what[WHAT_BYTES];
    what_of(epoch, what);
    *done = false;
    struct dp_note *notes = calloc(workers, sizeof *notes);
    if (!notes)
        return dp_fail(err, DP_NOMEM, "no memory for the parts of %" PRIu32 " workers", workers);
    enum dp_status st = wait ? dp_peers_wait(job, progress, what, notes, err)
                             : dp_peers_look(job, what, notes, &missing, err);
    if (st != DP_OK || missing > 0)
        goto done;
    st = merge(job, notes, out, err);
    *done = st == DP_OK;
    /* The server holds notes for as long as it runs: what was merged need not lie there. */
    for (uint32_t w = 0; st == DP_OK && w < workers; w++)
        st = dp_peers_put(job, what, w, "merged", strlen("merged"), err);
done:
    dp_peers_clear(notes, workers);
    free(notes);
    return st == DP_OK ? st : dp_wrap(err, st, "figures of epoch %" PRIu32, epoch);
}
