/* All-reduce: trains a dense model without servers, to compare with. Every rank is a worker that keeps a copy of all parameters.
 *     check -> open all -> meet -> (compute -> meet -> sum -> apply)* -> report, weights
 * Order     Step s of an epoch is minibatch s * ranks + r of each rank r: a round of sync on servers (worker/schedule/shares.h), with its
 *           rate, its weights by examples and its optimizer. So the weights after a step differ from those of sync by the
 *           rounding of the sum alone, whose order the reducer chooses.
 * Promise   All ranks have the same bits after each step: checked at the end of every epoch. A signal to one rank stops all after
 *           the same step, and that step is not applied by any.
 * Thread    One; a reader's inside.
 * Failure   DP_UNSUPPORTED, DP_ARGUMENT: the setting that this training does not have, and the remedy. DP_TIMEOUT names who did not
 *           come. DP_NOT_FINITE: diverged, on all ranks. DP_STOPPING: stopped. The report is written in both cases. There is no checkpoint and no restart: after a
 *           failure the caller ends the job. */
#ifndef DP_ALLREDUCE_ALLREDUCE_H
#define DP_ALLREDUCE_ALLREDUCE_H

#include "common/config/cluster.h"
#include "worker/allreduce/reducer.h"
#include "worker/allreduce/sampling.h"

#include <stdatomic.h>

struct dp_allreduce_options {
    const struct dp_cluster *cluster;
    const struct dp_reducer *reducer;
    const atomic_int *stop;            /* number of the signal that asks to stop, or 0 */
    const char *weights;               /* rank 0: file for the last weights (safetensors); NULL: none */
    struct dp_sampling_options sample; /* rank 0 */
};

/* DP_ARGUMENT or DP_UNSUPPORTED unless an all-reduce training has these settings. */
enum dp_status dp_allreduce_check(const struct dp_cluster *cluster, uint32_t ranks, struct dp_error *err);
/* Checks and trains. Rank 0 writes training.report. */
enum dp_status dp_allreduce(const struct dp_allreduce_options *options, struct dp_error *err);

#endif
