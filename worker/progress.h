/* Progress: what a worker is doing, told to the first server as the note run/<run>/progress/<worker>, at most
 * twice a second, for whoever watches:
 *     {"state":"training","first_epoch":0,"epoch":2,"epochs":10,"examples":..,"examples_total":..,"loss":..,"loss_examples":..,
 *      "examples_per_s":..,"staleness_mean":..,"beat":17,"process":..}
 * epoch and epochs are of this run, first_epoch are those of earlier ones on the same store; examples are this worker's; loss is the mean over its loss_examples in the
 * epoch so far, as the report has it at the end; the rate is the mean since the note before; beat counts the notes, so that
 * one who waits for this worker sees that it lives; process is a number that an earlier process of the worker had not.
 * Promise   Telling never stops the training: a note that fails is logged, and the next is tried later.
 * Thread    The client's.                                                                                */
#ifndef DP_WORKER_PROGRESS_H
#define DP_WORKER_PROGRESS_H

#include "worker/job.h"

struct dp_progress {
    struct dp_job *job;
    const char *state;
    uint32_t epoch, epochs; /* counted from 1 */
    uint64_t examples, examples_total;
    double staleness_mean;
    double loss_sum; /* in the epoch so far, over: */
    uint64_t loss_examples;
    uint64_t fresh; /* examples since the last note */
    uint64_t told_ns, next_ns, beat;
};

void dp_progress_init(struct dp_progress *progress, struct dp_job *job, uint64_t examples_total);
/* state: a literal. Tells at once. */
void dp_progress_enter(struct dp_progress *progress, const char *state);
/* An epoch, counted from 1, is trained on now; in it a loss over so many examples is there of an earlier process. */
void dp_progress_epoch(struct dp_progress *progress, uint32_t epoch, double loss_sum, uint64_t examples);
void dp_progress_add(struct dp_progress *progress, double loss, uint32_t examples);
/* Tells when it is time. */
void dp_progress_tick(struct dp_progress *progress);

/* The worker ends without having finished: says so to those who may wait for it (state "stopped" or
 * "failed"), where `why` leaves hope that the servers hear it, and closes the client, so that the buffers of
 * a pull that was not answered may be freed. Without a progress (NULL) it only closes. */
void dp_progress_end(struct dp_progress *progress, struct dp_job *job, enum dp_status why);

/* JSON text of what stands in the struct, malloc'd, or NULL. */
char *dp_progress_text(const struct dp_progress *progress, double seconds);

#endif
