#include "worker/evaluate.h"

#include "common/base/bytes.h"
#include "worker/group.h"
#include "worker/peers.h"
#include "worker/ranking.h"
#include "worker/scan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_evaluate_fits(const struct dp_job *job, const struct dp_dataset *data, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    /* Worker 0 has the largest share; each worker finds the same, so that all fail or none. */
    const struct dp_share largest = {.batches = dp_dataset_batches(data), .workers = training->workers};
    uint64_t examples = dp_dataset_ranked(data) ? 0 : dp_dataset_examples(data), /* sums alone */
        part = dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data),
                                     dp_share_examples(largest, examples, training->batch)),
             all = dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data), examples) +
                   (training->workers - 1) *
                       dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data), 0);
    return dp_eval_note_fits(training->workers, part, all, err);
}

/* The epoch, and behind it the part. keep: this worker's own, put again when the first server loses it. */
static enum dp_status put(struct dp_job *job, enum dp_eval_kind kind, uint32_t epoch, uint32_t worker,
                          const void *part, size_t size, bool keep, struct dp_error *err)
{
    const char *what = dp_eval_note_name(kind);
    unsigned char *bytes = malloc(DP_EVAL_EPOCH_BYTES + size);
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "no memory for a part of %zu bytes", size);
    dp_store_u32le(bytes, epoch);
    if (size)
        memcpy(bytes + DP_EVAL_EPOCH_BYTES, part, size);
    enum dp_status st = keep ? dp_peers_keep(job, what, bytes, DP_EVAL_EPOCH_BYTES + size, err)
                             : dp_peers_put(job, what, worker, bytes, DP_EVAL_EPOCH_BYTES + size, err);
    free(bytes);
    return st;
}

/* This worker's part of the epoch before, which nobody wants when all have ended this one. Else worker 0 would fetch it each
 * time that it looks for the next. */
static enum dp_status take_back(struct dp_job *job, enum dp_eval_kind kind, uint32_t epoch,
                                struct dp_error *err)
{
    return put(job, kind, epoch, job->worker, NULL, 0, true, err);
}

struct share {
    const struct dp_dataset *data;
    uint32_t batch; /* examples in a whole minibatch */
    struct dp_metrics *metrics;
    uint32_t *list_of; /* [batch], where lists are ranked */
};

static enum dp_status share_open(struct share *share, const struct dp_job *job, const struct dp_dataset *data,
                                 struct dp_error *err)
{
    uint32_t lists = dp_dataset_lists(data);
    *share = (struct share){.data = data, .batch = job->cluster->training.batch};
    enum dp_status st = dp_metrics_new(job->model.labels, job->model.classes, lists, &share->metrics, err);
    if (st == DP_OK && lists && !(share->list_of = calloc(share->batch, sizeof *share->list_of)))
        st = dp_fail(err, DP_NOMEM, "no memory for the lists of a minibatch");
    return st;
}

static void share_close(struct share *share)
{
    free(share->list_of);
    dp_metrics_free(&share->metrics);
}

static enum dp_status add(void *context, const struct dp_batch *batch, const float *output, uint32_t width,
                          struct dp_error *err)
{
    struct share *share = context;
    (void)width;
    for (uint32_t i = 0; share->list_of && i < batch->examples; i++)
        share->list_of[i] = dp_dataset_list_of(share->data, batch->number * share->batch + i);
    enum dp_status st =
        dp_metrics_add(share->metrics, output, batch->labels, share->list_of, batch->examples, err);
    if (st == DP_NOT_FINITE)
        st = dp_wrap(err, st, "the training has diverged, a lower rate may help");
    return st;
}

enum dp_status dp_evaluate_share(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *data, enum dp_eval_kind kind, uint32_t epoch,
                                 struct dp_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    struct share share;
    dp_progress_enter(progress, "evaluating");
    enum dp_status st = share_open(&share, job, data, err);
    if (st == DP_OK && epoch > 1)
        st = take_back(job, kind, epoch - 1, err);
    if (st != DP_OK)
        goto done;
    const struct dp_scan scan = {.job = job,
                                 .data = data,
                                 .offset = job->worker,
                                 .stride = job->cluster->training.workers,
                                 .progress = progress,
                                 .visit = add,
                                 .context = &share};
    const struct dp_rank_set *ranked = dp_dataset_ranked(data);
    struct dp_rank_sums sums;
    st = ranked ? dp_ranking(job, progress, ranked, &sums, err) : dp_scan(&scan, err);
    if (st == DP_OK && ranked)
        dp_metrics_add_ranks(share.metrics, &sums);
    if (st == DP_OK)
        st = dp_metrics_pack(share.metrics, &bytes, &size, err);
    if (st == DP_OK)
        st = put(job, kind, epoch, job->worker, bytes, size, true, err);
done:
    free(bytes);
    share_close(&share);
    return st == DP_OK ? st : dp_wrap(err, st, "evaluation after epoch %" PRIu32, epoch);
}

static enum dp_status merge_part(struct dp_metrics *metrics, const struct dp_note *note, uint32_t epoch,
                                 struct dp_error *err)
{
    enum dp_eval_note found = DP_EVAL_NOT_YET;
    const unsigned char *bytes = note->bytes;
    enum dp_status st = dp_eval_note_read(bytes, note->size, epoch, &found, err);
    if (st == DP_OK && found != DP_EVAL_PART)
        st = dp_fail(err, DP_DATA, "it is no longer on the first server");
    return st == DP_OK
               ? dp_metrics_merge(metrics, bytes + DP_EVAL_EPOCH_BYTES, note->size - DP_EVAL_EPOCH_BYTES, err)
               : st;
}

static enum dp_status merge(struct dp_job *job, const struct dp_dataset *data, const struct dp_note *notes,
                            uint32_t epoch, struct dp_figures *out, struct dp_error *err)
{
    struct dp_metrics *metrics = NULL;
    enum dp_status st =
        dp_metrics_new(job->model.labels, job->model.classes, dp_dataset_lists(data), &metrics, err);
    for (uint32_t w = 0; st == DP_OK && w < job->cluster->training.workers; w++) {
        st = merge_part(metrics, &notes[w], epoch, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "the part of worker %" PRIu32, w);
    }
    if (st == DP_OK)
        st = dp_metrics_figures(metrics, out, err);
    dp_metrics_free(&metrics);
    return st;
}

/* What is none has come, so that reading it says so. */
static bool has_come(void *epoch, const struct dp_note *note)
{
    enum dp_eval_note found = DP_EVAL_NOT_YET;
    return dp_eval_note_read(note->bytes, note->size, *(const uint32_t *)epoch, &found, NULL) != DP_OK ||
           found != DP_EVAL_NOT_YET;
}

enum dp_status dp_evaluate_drop(struct dp_job *job, enum dp_eval_kind kind, uint32_t epoch,
                                struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < job->cluster->training.workers; w++)
        st = put(job, kind, epoch, w, NULL, 0, false, err);
    return st;
}

enum dp_status dp_evaluate_merge(struct dp_job *job, struct dp_progress *progress,
                                 const struct dp_dataset *data, enum dp_eval_kind kind, uint32_t epoch,
                                 struct dp_figures *out, struct dp_error *err)
{
    uint32_t workers = job->cluster->training.workers;
    struct dp_note *notes = calloc(workers, sizeof *notes);
    if (!notes)
        return dp_fail(err, DP_NOMEM, "no memory for the parts of %" PRIu32 " workers", workers);
    const struct dp_wish wish = {
        .what = dp_eval_note_name(kind), .count = workers, .ready = has_come, .context = &epoch};
    enum dp_status st = dp_peers_wait_for(job, progress, &wish, notes, err);
    if (st == DP_OK)
        st = merge(job, data, notes, epoch, out, err);
    dp_peers_clear(notes, workers);
    free(notes);
    return st == DP_OK ? st : dp_wrap(err, st, "figures of epoch %" PRIu32, epoch);
}
