/* Consent: all workers of a run mean the same training, and who asks for scores means it too. Each worker puts what it means
 * (agreed.h) as its note run/<run>/plan/<worker>, and looks at those of the others.
 * Promise   Of two workers that mean something else at least the second is refused, before it has pushed anything. A note of one that was
 *           refused, or ended before it had pushed anything, binds nobody.
 *           Notes live as long as the first server's process: where it was started again nothing is there to compare with.
 * Thread    The job's. */
#ifndef DP_WORKER_CONSENT_H
#define DP_WORKER_CONSENT_H

#include "worker/agreed.h"
#include "worker/job.h"

/* Of a worker that trains. begun: some of its pushes are there, and must be of this training: DP_EXISTS; DP_ARGUMENT naming the
 * other worker. */
DP_MUST_USE
enum dp_status dp_consent(struct dp_job *job, const struct dp_agreed_set *train,
                          const struct dp_agreed_set *judged, bool begun, struct dp_error *err);
/* Of one that writes scores: DP_ARGUMENT where the run of its cluster file was trained by other ones. */
DP_MUST_USE
enum dp_status dp_consent_scores(struct dp_job *job, struct dp_error *err);

#endif
