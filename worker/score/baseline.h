/* Constant: the metrics of the best constant prediction, chosen by the training labels, on the evaluated set.
 * A training whose loss is higher has learned less than a bias alone would give.
 *     binary       the share of 1s:   loss = logloss, accuracy of the more frequent class, auc 0.5
 *     class        the shares of the classes: cross-entropy, accuracy of the most frequent one
 *     regression   the mean of the labels: mean squared error, rmse
 *     comparisons  any constant: ln 2 (BPR's loss of equal scores)
 * Shares are (count + 1/2) / (examples + classes / 2), so that a class that only the evaluated set has costs
 * a finite loss. If labels are drawn as minibatches are filled (negatives, windows of a text), they are taken
 * from up to 512 minibatches of the first epoch.
 * Thread    Any, while the data sets are open.
 * Failure   DP_NOMEM. */
#ifndef DP_SCORE_BASELINE_H
#define DP_SCORE_BASELINE_H

#include "worker/compute/metrics.h"
#include "worker/compute/models/model.h"
#include "worker/read/dataset.h"

/* evaluated: may be the training set. */
enum dp_status dp_baseline_figures(const struct dp_model *model, const struct dp_dataset *train,
                                   const struct dp_dataset *evaluated, struct dp_figures *out,
                                   struct dp_error *err);

/* Whether all labels of a training set are the same; text: that label, for people, or "". False when labels
 * are drawn. */
bool dp_baseline_one_label(const struct dp_dataset *train, enum dp_labels kind, char *text, size_t size);

#endif
