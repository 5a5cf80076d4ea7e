/* Metrics: the quality of a model's outputs on labelled data, mergeable over parts of a data set.
 *     none: the mean of the outputs, which are losses
 *     binary: logloss, accuracy (logit > 0), exact AUC (area under ROC; ties count half)
 *     class:  cross-entropy, accuracy (argmax)        regression: mean squared error, RMSE
 *     none:   the mean of the losses
 *     ranked: HR@10 and NDCG@10 of lists that have one example labelled 1, as in He et al. 2017 (Neural
 *     Collaborative
 *             Filtering): its rank is the number of others in the list with an equal or a higher score, so
 *             ties count
 *             against it. HR@10: share of lists where that is below 10; NDCG@10: mean of log 2 / log(rank +
 *             2) there, 0
 *             elsewhere. Without other labels the loss is BPR's: mean over the other examples of log(1 +
 *             e^(other - it)).
 * A part can be packed into bytes, so several workers each evaluate a share and one of them merges. A list
 * may be cut anywhere; its metrics are those of the complete list. Exact AUC needs every score: 5 bytes an
 * example in a binary part, 9 if lists are ranked.
 * Thread    One thread uses one dp_metrics.
 * Failure   add and merge take all of a part or nothing: DP_NOT_FINITE for a NaN or infinite output, DP_DATA
 *           for a label that does not fit, or bytes that are not a part. Without examples all metrics are
 *           NaN. */
#ifndef DP_COMPUTE_METRICS_H
#define DP_COMPUTE_METRICS_H

#include "worker/compute/rank_sums.h"
#include "worker/read/dataset.h"

#include <math.h>

struct dp_metrics;

struct dp_figures {
    uint64_t examples;
    double loss;
    double accuracy;     /* NaN if it does not apply */
    double auc;          /* NaN if it does not apply, or one class is missing */
    double rmse;         /* NaN if it does not apply */
    double hr10, ndcg10; /* NaN if nothing is ranked */
    /* Ranking among all items (rank_sums.h): recall and NDCG at top[0] and top[1]. ranked_users 0: none. */
    uint64_t ranked_users, ranked_items;
    uint32_t top[2];
    double recall[2], ndcg[2];
};
/* The metrics that each are one number, by their names in reports: loss, accuracy, auc, rmse, hr10,
 * ndcg10. */
#define DP_FIGURES_REALS 6
extern const struct dp_figures_real {
    const char *name;
    size_t at; /* offset of the double */
} dp_figures_reals[DP_FIGURES_REALS];
static inline double *dp_figures_real(const struct dp_figures *figures, int i)
{
    return (double *)((uintptr_t)figures + dp_figures_reals[i].at);
}
static inline struct dp_figures dp_figures_none(uint64_t examples) /* NaN: none is known */
{
    const double none = (double)NAN;
    return (struct dp_figures){examples, none, none, none, none, none, none, .ranked_users = 0};
}

/* lists: the number of ranked lists, or 0. Labels of ranked examples are 0 and 1, whatever `labels` is (not
 * CLASS). */
enum dp_status dp_metrics_new(enum dp_labels labels, uint32_t classes, uint32_t lists,
                              struct dp_metrics **out, struct dp_error *err);
/* ANY: what one unit of output and labels is in the unit of the metrics (1 at first). Call before add. */
void dp_metrics_set_unit(struct dp_metrics *metrics, double unit);
void dp_metrics_free(struct dp_metrics **metrics);
/* output: [examples, width] logits or values (width: classes, else 1); labels: [examples]; list_of:
 * [examples] below lists, NULL if nothing is ranked. */
enum dp_status dp_metrics_add(struct dp_metrics *metrics, const float *output, const float *labels,
                              const uint32_t *list_of, uint32_t examples, struct dp_error *err);
/* Adds the sums of a rank set (rank_set.h), which become metrics of the part. */
void dp_metrics_add_ranks(struct dp_metrics *metrics, const struct dp_rank_sums *sums);
/* Packs a part into malloc'd bytes: little endian, with magic number and length. The caller frees them. */
enum dp_status dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                               struct dp_error *err);
/* The packed size of a part of so many examples. */
uint64_t dp_metrics_pack_bytes(enum dp_labels labels, uint32_t lists, uint64_t examples);
/* Adds a packed part. DP_DATA when the bytes are not a part, or one of another kind. */
enum dp_status dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                struct dp_error *err);
/* DP_DATA when a list does not have exactly one example labelled 1. */
enum dp_status dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                  struct dp_error *err);

#endif
