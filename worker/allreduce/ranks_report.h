/* Ranks' report: what all ranks measured, gathered on rank 0 and written as the report of a training (worker/telemetry/report.h).
 * Thread    One.
 * Failure   As dp_report_write's, on rank 0; and the reducer's. */
#ifndef DP_ALLREDUCE_RANKS_REPORT_H
#define DP_ALLREDUCE_RANKS_REPORT_H

#include "worker/allreduce/reducer.h"
#include "worker/read/dataset.h"
#include "worker/telemetry/worker_stats.h"

#include "common/config/cluster.h"

struct dp_ranks_report {
    const struct dp_cluster *cluster, *given; /* given: as it was read, without the defaults by size */
    const struct dp_dataset *train;
    const struct dp_worker_stats *own;
    bool stopped;      /* before the last epoch's end */
    uint32_t diverged; /* in which epoch, counted from 1; 0: it has not */
    const char *error; /* then */
};

/* After a meet. By all ranks; rank 0 writes training.report, if there is one, and logs the speed. */
DP_MUST_USE
enum dp_status dp_ranks_report_write(const struct dp_ranks_report *report, const struct dp_reducer *reducer,
                                     struct dp_error *err);

#endif
