/* Divergence: whether a training has diverged, by the losses in its report.
 *     not finite       the training failed of it, or the loss of the weights that stay is not finite
 *     grew             that loss is above the first epoch's, and so is the training loss
 *     no better        the weights that stay are no better than the best constant, after a training loss far above what initial weights
 *                      have, one that has not fallen since the first epoch, or a loss of half as much
 * A model that fits noise has not diverged: its training loss falls. A slow training has not diverged
 * either, for the same reason.
 * Thread    Any: plain functions. */
#ifndef DP_TELEMETRY_DIVERGENCE_H
#define DP_TELEMETRY_DIVERGENCE_H

#include "worker/telemetry/report.h"

enum dp_divergence_why { DP_DIVERGED_NO, DP_DIVERGED_NOT_FINITE, DP_DIVERGED_GREW, DP_DIVERGED_NO_BETTER };

struct dp_divergence {
    enum dp_divergence_why why;
    uint32_t epoch;   /* the first from which on the loss was so, counted from 1 in this run */
    const char *set;  /* whose loss it is; NULL: a loss while the training went on */
    double loss;      /* of the weights that stay; NaN without a set */
    double reference; /* the first epoch's, or the constant's; NaN: not finite */
};

/* Of an unfinished training only what it failed of (report->diverged) counts. */
struct dp_divergence dp_divergence_of(const struct dp_report *report);
/* "not_finite", "grew", "no_better_than_constant"; NULL: it has not diverged. */
const char *dp_divergence_name(enum dp_divergence_why why);

#endif
