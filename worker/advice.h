/* Advice: what the figures of a whole training say that a person may not see in them, in words, with what usually helps.
 *     the loss is above the best constant's, or not finite        nothing was learned, or it is far too sure of what it says
 *     the evaluated loss rose by 5% or more from its best         it fits noise
 *     the loss was falling by 2% an epoch or more at the end      more epochs may help
 * By the loss of the validation set, without one the test set's, without either the training loss.
 * Thread    Any: a plain function. */
#ifndef DP_WORKER_ADVICE_H
#define DP_WORKER_ADVICE_H

#include "worker/report.h"

#define DP_ADVICE_MAX   3
#define DP_ADVICE_BYTES 400

/* Remedies for a loss that is not finite or far too high: these parts of errors and advice say the same. */
#define DP_ADVICE_SCALE "numbers of like size (CSV: --standardize yes; others: --normalize or --scale)"

/* Of a finished training; how many. */
uint32_t dp_advice_of(const struct dp_report *report, char text[DP_ADVICE_MAX][DP_ADVICE_BYTES]);

#endif
