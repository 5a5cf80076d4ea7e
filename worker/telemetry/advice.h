/* Advice: the faults of a finished training according to its metrics, in words, and settings that usually
 * help.
 *     it has diverged (divergence.h); of stale gradients nothing was learned; or the loss rose by 10% or more and not for noise
 *                                         asynchrony at this rate, where gradients were stale, else the rate. The next three are not
 *                                         given then: more epochs would not help
 *     the loss is above the best constant's                 nothing or little was learned, or noise
 *     the evaluated loss rose by 5% or more from its best, or by 1% where AUC fell by 0.01,
 *     while the training loss falls                         the model fits noise
 *     the loss was falling by 2% an epoch or more at the end      more epochs may help
 *     --threads made fewer than 100 pushes in all           fewer minibatches in a push, or a higher rate
 *     no example was trained                                nothing was left to train, and nothing else is said
 * It judges the loss of the validation set, or else of the test set, or else of the training set.
 * Thread    Any: a plain function. */
#ifndef DP_TELEMETRY_ADVICE_H
#define DP_TELEMETRY_ADVICE_H

#include "worker/telemetry/report.h"

#define DP_ADVICE_MAX   4
#define DP_ADVICE_BYTES 400

/* Staleness above this may make a training unstable; a worker that pulls ahead has as much of its own. */
#define DP_ADVICE_STALE 1.0

/* A remedy for a loss that is not finite or far too high, for errors and advice: a flag that brings the
 * numbers
 * of this format (dp_dataset_format; or NULL) to like size, ", numbers of like size (--standardize yes)". "":
 * none, or it is given already. */
const char *dp_advice_scale(const struct dp_cluster_data *data, const char *format);

/* report: of a finished training. Returns the number of texts. */
uint32_t dp_advice_of(const struct dp_report *report, char text[DP_ADVICE_MAX][DP_ADVICE_BYTES]);
/* report: as above. Whether the first of these texts is a warning, not a hint. */
bool dp_advice_warns(const struct dp_report *report);
/* report: as above. The rate that these texts name for a training that was unstable; 0: it was not. */
double dp_advice_rate(const struct dp_report *report);

#endif
