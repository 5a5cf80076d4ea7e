/* Evaluate: the metrics of a set, computed by all workers together while none of them trains
 * (epoch_barrier.h). Each takes the minibatches n % workers == worker and hands over its part (peers.h).
 * One worker merges the parts.
 * Thread    The client's. */
#ifndef DP_SCORE_EVALUATE_H
#define DP_SCORE_EVALUATE_H

#include "worker/compute/metrics.h"
#include "worker/telemetry/progress.h"

/* DP_FULL, with the remedy, when notes cannot hold the parts of this set. */
enum dp_status dp_evaluate_fits(const struct dp_job *job, const struct dp_dataset *data,
                                struct dp_error *err);
/* The same for a largest part, and all parts together, of so many bytes. */
enum dp_status dp_evaluate_notes_fit(uint32_t workers, uint64_t part_bytes_max, uint64_t all_bytes,
                                     struct dp_error *err);
/* Computes a worker's part, malloc'd: this one's, or that of one that has left. epoch: counted from 1. */
enum dp_status dp_evaluate_part(struct dp_job *job, struct dp_progress *progress, uint32_t worker,
                                const struct dp_dataset *data, uint32_t epoch, void **bytes, size_t *size,
                                struct dp_error *err);
/* Merges parts[workers] into metrics. DP_DATA when one is not a part. */
enum dp_status dp_evaluate_merge(const struct dp_job *job, const struct dp_dataset *data, uint32_t epoch,
                                 const struct dp_shared_note *parts, struct dp_figures *out,
                                 struct dp_error *err);

#endif
