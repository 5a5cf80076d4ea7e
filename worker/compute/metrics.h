/* Metrics: what a model's outputs are worth on labelled data, mergeable over parts of a data set.
 *     binary: logloss, accuracy (logit > 0), exact AUC (area under ROC; ties count half)
 *     class:  cross-entropy, accuracy (argmax)        regression: mean squared error, RMSE
 *     ranked: HR@10 and NDCG@10 of lists that have one example labelled 1, as in He et al. 2017 (Neural Collaborative
 *             Filtering): its rank is the number of others in the list with an equal or a higher score, so ties count
 *             against it. HR@10: share of lists where that is below 10; NDCG@10: mean of log 2 / log(rank + 2) there, 0
 *             elsewhere. Without other labels the loss is BPR's: mean over the other examples of log(1 + e^(other - it)).
 * A part can be put into bytes, so that several workers can each evaluate a share and one of them merges: a list may be
 * cut anywhere, its figures are those of the whole. Exact AUC needs every score: 5 bytes an example in a binary part,
 * 9 where lists are ranked.
 * Thread    One thread uses one dp_metrics.
 * Failure   add and merge take all of a part or nothing: DP_NOT_FINITE for a NaN or infinite output, DP_DATA
 *           for a label that does not fit or bytes that are no part. Without examples all figures are NaN. */
#ifndef DP_COMPUTE_METRICS_H
#define DP_COMPUTE_METRICS_H

#include "worker/compute/rank_sums.h"
#include "worker/read/dataset.h"

struct dp_metrics;

struct dp_figures {
    uint64_t examples;
    double loss;
    double accuracy;     /* NaN where it does not fit */
    double auc;          /* NaN where it does not fit or one class is missing */
    double rmse;         /* NaN where it does not fit */
    double hr10, ndcg10; /* NaN where nothing is ranked */
    /* Of items ranked among all (rank_sums.h): recall and NDCG at top[0] and top[1]. ranked_users 0: none are. */
    uint64_t ranked_users, ranked_items;
    uint32_t top[2];
    double recall[2], ndcg[2];
};

/* lists: how many are ranked; 0: none. Labels of ranked examples are 0 and 1, whatever `labels` is (not CLASS). */
DP_MUST_USE
enum dp_status dp_metrics_new(enum dp_labels labels, uint32_t classes, uint32_t lists,
                              struct dp_metrics **out, struct dp_error *err);
void dp_metrics_free(struct dp_metrics **metrics);
/* output: [examples, width] logits or values (width: classes, else 1), labels [examples]; list_of: [examples] below
 * lists, NULL where nothing is ranked. */
DP_MUST_USE
enum dp_status dp_metrics_add(struct dp_metrics *metrics, const float *output, const float *labels,
                              const uint32_t *list_of, uint32_t examples, struct dp_error *err);
/* Of a set whose items are ranked by themselves (rank_set.h): adds to what the part's figures then are. */
void dp_metrics_add_ranks(struct dp_metrics *metrics, const struct dp_rank_sums *sums);
/* Bytes of a part: malloc'd, the caller's. Explicit little endian, with magic and length. */
DP_MUST_USE
enum dp_status dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                               struct dp_error *err);
/* How many bytes that is for a part of so many examples. */
uint64_t dp_metrics_pack_bytes(enum dp_labels labels, uint32_t lists, uint64_t examples);
/* Adds a packed part; DP_DATA when the bytes are not one, or of another kind. */
DP_MUST_USE
enum dp_status dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                struct dp_error *err);
/* DP_DATA: a list that has not exactly one example labelled 1. */
DP_MUST_USE
enum dp_status dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                  struct dp_error *err);

#endif
