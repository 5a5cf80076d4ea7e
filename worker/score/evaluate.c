#include "worker/score/evaluate.h"

#include "common/wire/limits.h"
#include "worker/schedule/shares.h"
#include "worker/score/ranking.h"
#include "worker/score/scan.h"

#include <inttypes.h>
#include <stdlib.h>

/* Almost half of the first server's space for notes (64 MiB): the parts of the test set are put while those
 * of the last validation are still there. Other notes are small. */
#define BYTES_MAX (UINT64_C(28) << 20)
#define HEAD      4u /* bytes before the part in its note (peers.h) */

enum dp_status dp_evaluate_notes_fit(uint32_t workers, uint64_t part_bytes_max, uint64_t all_bytes,
                                     struct dp_error *err)
{
    uint64_t epoch_bytes = all_bytes + (uint64_t)workers * HEAD;
    if (part_bytes_max + HEAD > DP_NOTE_BYTES_MAX)
        return dp_fail(
            err, DP_FULL,
            "a worker's part of an evaluation takes %" PRIu64
            " bytes, a note has space for %u: evaluate a smaller set, or use more workers than %" PRIu32,
            part_bytes_max, DP_NOTE_BYTES_MAX - HEAD, workers);
    if (epoch_bytes > BYTES_MAX)
        return dp_fail(err, DP_FULL,
                       "the parts of an evaluation take %" PRIu64
                       " bytes, the first server has space for %" PRIu64 ": evaluate a smaller set",
                       epoch_bytes, BYTES_MAX);
    return DP_OK;
}

enum dp_status dp_evaluate_fits(const struct dp_job *job, const struct dp_dataset *data, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    /* Worker 0 has the largest share. Every worker computes the same, so that all fail or none. */
    const struct dp_share largest = {.batches = dp_dataset_batches(data), .workers = training->workers};
    bool sums_alone = dp_dataset_ranked(data) != NULL;
    uint64_t examples = sums_alone ? 0 : dp_dataset_examples(data),
             own = sums_alone ? 0 : dp_share_examples(largest, examples, training->batch),
             part = dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data), own),
             all = dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data), examples) +
                   (training->workers - 1) *
                       dp_metrics_pack_bytes(job->model.labels, dp_dataset_lists(data), 0);
    return dp_evaluate_notes_fit(training->workers, part, all, err);
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
    if (st == DP_OK)
        dp_metrics_set_unit(share->metrics, dp_label_scale_unit(&dp_dataset_schema(data)->label_scale));
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
        st = dp_wrap(err, st, "the training has diverged; try a lower rate");
    return st;
}

enum dp_status dp_evaluate_part(struct dp_job *job, struct dp_progress *progress, uint32_t worker,
                                const struct dp_dataset *data, uint32_t epoch, void **bytes, size_t *size,
                                struct dp_error *err)
{
    struct share share;
    dp_progress_pass(progress, "evaluating");
    enum dp_status st = share_open(&share, job, data, err);
    if (st != DP_OK)
        goto done;
    const struct dp_scan scan = {.job = job,
                                 .data = data,
                                 .offset = worker,
                                 .stride = job->cluster->training.workers,
                                 .progress = progress,
                                 .visit = add,
                                 .context = &share};
    const struct dp_rank_set *ranked = dp_dataset_ranked(data);
    struct dp_rank_sums sums;
    st = ranked ? dp_ranking(job, progress, worker, ranked, &sums, err) : dp_scan(&scan, err);
    if (st == DP_OK && ranked)
        dp_metrics_add_ranks(share.metrics, &sums);
    if (st == DP_OK)
        st = dp_metrics_pack(share.metrics, bytes, size, err);
done:
    share_close(&share);
    return st == DP_OK ? st : dp_wrap(err, st, "evaluation after epoch %" PRIu32, epoch);
}

enum dp_status dp_evaluate_merge(const struct dp_job *job, const struct dp_dataset *data, uint32_t epoch,
                                 const struct dp_shared_note *parts, struct dp_figures *out,
                                 struct dp_error *err)
{
    struct dp_metrics *metrics = NULL;
    enum dp_status st =
        dp_metrics_new(job->model.labels, job->model.classes, dp_dataset_lists(data), &metrics, err);
    for (uint32_t w = 0; st == DP_OK && w < job->cluster->training.workers; w++) {
        st = dp_metrics_merge(metrics, parts[w].bytes, parts[w].size, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "the part of worker %" PRIu32, w);
    }
    if (st == DP_OK)
        st = dp_metrics_figures(metrics, out, err);
    dp_metrics_free(&metrics);
    return st == DP_OK ? st : dp_wrap(err, st, "metrics of epoch %" PRIu32, epoch);
}
