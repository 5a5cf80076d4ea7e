/* Efficiency: the least time in which a run can train with its injected delays, and how near it came.
 *     least_seconds   the run's time if only the delays (common/config/injection.h) take time. Each minibatch takes what was
 *                     drawn for it, and each mode waits as its rule says:
 *                       async, fixed work   each worker for itself; the slowest one ends the run
 *                       ssp:S               step t of a worker begins when all have finished step t - S - 1
 *                       sync, all-reduce    a step ends with its slowest worker
 *                       sync:B              a step ends when all but B workers have finished it. A worker that is late gives its minibatch up
 *                                           with prefetch, unless it is its last of the epoch, and else finishes it
 *                       leased work         a free worker takes the next portion of the list; when there is none, the one that would be
 *                                           done last, if it is done sooner so; an epoch begins when the one before is done
 *                       threads             a free thread takes the next minibatch of the push
 *     efficiency      least_seconds / seconds of training. With leased work and with threads the order of work is not that of the run, so
 *                     it may be slightly above 1.
 * Promise   A run without injected delays has neither, nor has one whose report lacks a setting that they
 *           follow from.
 * Thread    Any: plain functions. */
#ifndef DP_COMPARE_COMPARE_EFFICIENCY_H
#define DP_COMPARE_COMPARE_EFFICIENCY_H

#include <jansson.h>

/* report: of one run. NaN: see Promise. */
double dp_efficiency_least_s(const json_t *report);
/* Sets least_seconds and efficiency of a run of a comparison, where it has them. */
void dp_efficiency_add(json_t *run);

#endif
