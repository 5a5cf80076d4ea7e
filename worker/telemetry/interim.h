/* Interim: the report of an unfinished training, which worker 0 writes after each epoch, and when the
 * training is stopped or fails.
 *     init -> (an epoch ends -> write)* -> clear
 * Promise   The report includes an epoch when every worker's note (stats_history.h) says that it has ended
 *           it. It never stops a training. If a worker's note cannot be read, the last one counts. A failed
 *           write is logged once, and the next write is tried. It takes 5% of the time at most, so short
 *           epochs may appear only in a later report. A restarted worker 0 leaves the report of its earlier
 *           process until it has read every worker's note, since it would have fewer epochs.
 * Thread    The client's. */
#ifndef DP_TELEMETRY_INTERIM_H
#define DP_TELEMETRY_INTERIM_H

#include "worker/context/job.h"
#include "worker/telemetry/report.h"

struct dp_interim {
    struct dp_worker_stats *heard; /* [count], of the others, as last read; heap */
    bool *known;                   /* [count]: something was read */
    struct dp_worker_stats *all;   /* [count]: those and worker 0's own, borrowed */
    uint32_t count;
    uint64_t next_ns; /* no report before this time */
    bool failed;      /* the last report could not be written */
};

enum dp_status dp_interim_init(struct dp_interim *interim, const struct dp_job *job, struct dp_error *err);
void dp_interim_clear(struct dp_interim *interim); /* accepts {0} */
/* own: worker 0's stats. begun: an earlier process began the training. report: complete except for its
 * workers, epochs and minibatches, which are filled in. batches: minibatches in an epoch. If report->ended is
 * set the report is the last one and is always written; after a failure other than a divergence it uses the stats that
 * were read before. */
void dp_interim_write(struct dp_interim *interim, struct dp_job *job, const struct dp_worker_stats *own,
                      bool begun, struct dp_report *report, uint64_t batches);

#endif
