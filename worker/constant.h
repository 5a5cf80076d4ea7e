/* Constant: what a model that says the same of every example reaches, the best such by the training labels, on the set that
 * is evaluated. A training whose loss is above it has learned nothing that its bias could not say.
 *     binary       the share of 1s:   loss = logloss, accuracy of the more frequent class, auc 0.5
 *     class        the shares of the classes: cross-entropy, accuracy of the most frequent one
 *     regression   the mean of the labels: mean squared error, rmse
 *     comparisons  any: ln 2 (BPR's loss of equal scores)
 * Shares are (count + 1/2) / (examples + classes / 2), so that a class that only the evaluated set has costs a finite loss. Where labels are
 * drawn as minibatches are filled (negatives, windows of a text), they are those of up to 512 minibatches of the first epoch.
 * Thread    Any, with data sets that nobody closes.
 * Failure   DP_NOMEM. */
#ifndef DP_WORKER_CONSTANT_H
#define DP_WORKER_CONSTANT_H

#include "worker/compute/metrics.h"
#include "worker/compute/model.h"
#include "worker/read/dataset.h"

/* evaluated: may be the training set. */
DP_MUST_USE
enum dp_status dp_constant_figures(const struct dp_model *model, const struct dp_dataset *train,
                                   const struct dp_dataset *evaluated, struct dp_figures *out,
                                   struct dp_error *err);

#endif
