/* Scan: computes the model's outputs over a share of a data set, in the file's order, for evaluation and
 * prediction.
 *     pull dense parameters once;  for each minibatch: pull (overlapped with the previous one) -> forward ->
 *                                  visit
 * Thread    The client's, and a reader's inside.
 * Failure   The client is closed (progress.h), because pulls may be unanswered. */
#ifndef DP_SCORE_SCAN_H
#define DP_SCORE_SCAN_H

#include "worker/telemetry/progress.h"

struct dp_scan {
    struct dp_job *job;
    const struct dp_dataset *data; /* within the limits that the job's program was made for */
    uint32_t offset, stride;       /* minibatches n with n % stride == offset */
    bool no_labels;                /* replaces the labels by 0, which fits any model */
    struct dp_progress *progress;  /* or NULL */
    /* output: [examples, width], lent for the call. */
    enum dp_status (*visit)(void *context, const struct dp_batch *batch, const float *output, uint32_t width,
                            struct dp_error *err);
    void *context;
};

enum dp_status dp_scan(const struct dp_scan *scan, struct dp_error *err);

#endif
