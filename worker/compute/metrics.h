/* Metrics: what a model's outputs are worth on labelled data, mergeable over parts of a data set.
 *     binary: logloss, accuracy (logit > 0), exact AUC (area under ROC; ties count half)
 *     class:  cross-entropy, accuracy (argmax)        regression: mean squared error, RMSE
 * A part can be put into bytes, so that several workers can each evaluate a share and one of them merges.
 * Exact AUC needs every score: 5 bytes an example in a binary part.
 * Thread    One thread uses one dp_metrics.
 * Failure   add and merge take all of a part or nothing: DP_NOT_FINITE for a NaN or infinite output, DP_DATA
 *           for a label that does not fit or bytes that are no part. Without examples all figures are NaN. */
#ifndef DP_COMPUTE_METRICS_H
#define DP_COMPUTE_METRICS_H

#include "worker/read/dataset.h"

struct dp_metrics;

struct dp_figures {
    uint64_t examples;
    double loss;
    double accuracy; /* NaN where it does not fit */
    double auc;      /* NaN where it does not fit or one class is missing */
    double rmse;     /* NaN where it does not fit */
};

DP_MUST_USE
enum dp_status dp_metrics_new(enum dp_labels labels, uint32_t classes, struct dp_metrics **out,
                              struct dp_error *err);
void dp_metrics_free(struct dp_metrics **metrics);
/* output: [examples, width] logits or values (width: classes, else 1), labels [examples]. */
DP_MUST_USE
enum dp_status dp_metrics_add(struct dp_metrics *metrics, const float *output, const float *labels,
                              uint32_t examples, struct dp_error *err);
/* Bytes of a part: malloc'd, the caller's. Explicit little endian, with magic and length. */
DP_MUST_USE
enum dp_status dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                               struct dp_error *err);
/* How many bytes that is for a part of so many examples. */
uint64_t dp_metrics_pack_bytes(enum dp_labels labels, uint64_t examples);
/* Adds a packed part; DP_DATA when the bytes are not one, or of another kind. */
DP_MUST_USE
enum dp_status dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                struct dp_error *err);
DP_MUST_USE
enum dp_status dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                  struct dp_error *err);

#endif
