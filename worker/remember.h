/* Remember: the figures of a training so far, kept as notes on the first server, so that a worker that was killed and
 * started again reports what it had seen before.
 *     run/<run>/figures/<worker>   each worker's own (figures.h), after an epoch
 *     run/<run>/tested/0           worker 0: figures of the test set by epoch, a JSON array
 * Promise   Never stops a training: what cannot be put or read is logged, and the figures are missing in the report.
 *           put takes 5% of the time at most: epochs that are over sooner than that are put with a later one.
 * Thread    The client's. */
#ifndef DP_WORKER_REMEMBER_H
#define DP_WORKER_REMEMBER_H

#include "worker/job.h"
#include "worker/report.h"

struct dp_remember {
    uint64_t next_ns; /* not before */
};

/* tested: [epochs] of worker 0, NULL of others. */
void dp_remember_put(struct dp_remember *remember, struct dp_job *job,
                     const struct dp_worker_figures *figures, const struct dp_tested *tested);
/* The figures of the sets alone, whatever time it takes; put again where the first server loses them. */
void dp_remember_tested(struct dp_job *job, const struct dp_tested *tested, uint32_t epochs);
/* Into what has nothing yet; leaves it so where there is no note. */
void dp_remember_get(struct dp_job *job, struct dp_worker_figures *figures, struct dp_tested *tested);

/* JSON text, malloc'd, or NULL; and back, false: it is none of these. */
char *dp_remember_tested_pack(const struct dp_tested *tested, uint32_t epochs);
bool dp_remember_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested);

#endif
