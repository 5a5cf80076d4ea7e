/* Worker series: what the workers' notes say, as series downpour_worker_... with the labels run and worker.
 * Thread    Any: plain functions. */
#ifndef DP_METRICS_WORKER_SERIES_H
#define DP_METRICS_WORKER_SERIES_H

#include "server/metrics/worker_notes.h"

#include <stdio.h>

void dp_exporter_workers(FILE *to, const struct dp_exporter_notes *notes);

#endif
