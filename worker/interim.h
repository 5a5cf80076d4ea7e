/* Interim: the report while the training goes on, which worker 0 writes after each epoch, and where the training ends before
 * its end.
 *     init -> (an epoch ends -> write)* -> clear
 * Promise   An epoch is in it when every worker's note (remember.h) says that it has ended it. Never stops a training: what cannot be
 *           heard is as it was heard last; a report that cannot be written is logged once, and the next one tried. Takes 5% of the
 *           time at most: an epoch that ends sooner is in the report of a later one. A worker 0 that was started again leaves the
 *           report of its earlier process until it has heard everybody: it would have fewer epochs.
 * Thread    The client's. */
#ifndef DP_WORKER_INTERIM_H
#define DP_WORKER_INTERIM_H

#include "worker/job.h"
#include "worker/report.h"

struct dp_interim {
    struct dp_worker_figures *heard; /* [count], of the others, as last heard; heap */
    bool *known;                     /* [count]: something was heard */
    struct dp_worker_figures *all;   /* [count]: those and worker 0's own, borrowed */
    uint32_t count;
    uint64_t next_ns; /* not before */
    bool failed;      /* the last one could not be written */
};

DP_MUST_USE
enum dp_status dp_interim_init(struct dp_interim *interim, const struct dp_job *job, struct dp_error *err);
void dp_interim_clear(struct dp_interim *interim); /* accepts {0} */
/* own: worker 0's; begun: by an earlier process. report: all but its workers, its epochs and minibatches, which are filled in. batches: minibatches in an epoch. Where
 * report->ended says something it is the last one, written in any case; after a failure of what was heard before it. */
void dp_interim_write(struct dp_interim *interim, struct dp_job *job, const struct dp_worker_figures *own,
                      bool begun, struct dp_report *report, uint64_t batches);

#endif
