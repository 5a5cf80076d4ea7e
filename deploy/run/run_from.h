/* Run from: a run that goes on from a checkpoint, in a directory that has no run (run --from).
 *     begin (the checkpoint's cluster file) -> flags, places -> settle -> restore (stores, then cluster.conf) -> as a second run in it
 * Promise   What can be refused is refused before anything is restored. cluster.conf is written last.
 *           Without it there is no run: the next command in the directory removes the files of an
 *           interrupted restore.
 * Thread    One.
 * Failure   DP_EXISTS: the directory has a run, or flags would change the training. Else as restored.h and run_second.h. */
#ifndef DP_RUN_RUN_FROM_H
#define DP_RUN_RUN_FROM_H

#include "deploy/run/run_plan.h"

/* From --from: plan->from, plan->earlier and plan->cluster. */
enum dp_status dp_run_from_begin(struct dp_run_plan *plan, struct dp_error *err);
/* The directory is free, or is made so (--fresh), and the flags may be given. */
enum dp_status dp_run_from_settle(struct dp_run_plan *plan, struct dp_error *err);
enum dp_status dp_run_from_restore(struct dp_run_plan *plan, struct dp_error *err);
/* "checkpoint 3 (run 1, epoch 4, made 2026-01-01T00:00:00Z)" */
#define DP_RUN_FROM_BYTES 128
void dp_run_from_text(const struct dp_run_plan *plan, char text[DP_RUN_FROM_BYTES]);

#endif
