/* Ranks' report: what all ranks measured, gathered on rank 0 and written as the report of a training
 * (worker/telemetry/report.h).
 * Thread    One.
 * Failure   As dp_report_write's, on rank 0; and the reducer's. */
#ifndef DP_ALLREDUCE_RANKS_REPORT_H
#define DP_ALLREDUCE_RANKS_REPORT_H

#include "worker/allreduce/reducer.h"
#include "worker/telemetry/report.h"

/* After a meet. By all ranks; rank 0 writes training.report, if there is one, and logs the speed. report: without
 * its workers. */
DP_MUST_USE
enum dp_status dp_ranks_report_write(const struct dp_report *report, const struct dp_worker_stats *own,
                                     const struct dp_reducer *reducer, struct dp_error *err);

#endif
