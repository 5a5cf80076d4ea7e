/* Run best: restores a run's stores from the checkpoint of its best epoch. Workers made that checkpoint in
 * `best` in the run's directory (worker/coordinate/best_epoch.h).
 *     (a run's workers and servers have ended) -> restore: the run's stores have its weights
 * Thread    One. */
#ifndef DP_RUN_RUN_BEST_H
#define DP_RUN_RUN_BEST_H

#include "deploy/run/run_state.h"
#include "deploy/supervise/local.h"

/* The epoch of which there is a checkpoint of this run, counted from 1 in the run; 0: there is none. */
uint32_t dp_run_best_find(const struct dp_folder *folder, const struct dp_cluster *cluster);
/* Gives all stores the weights of the epoch that the report says is kept, if that is not the last one: all or none
 * (restored.h). The servers are then started once, and stopped: so the first server knows the stores, and they are closed cleanly.
 * `best` stays, and is shown as DIR/best, if it has that epoch, else it is removed. Until the caller writes run.json, a command that
 * is killed leaves an unfinished run, which --resume finishes. If the checkpoint is missing, or of another epoch, the
 * stores keep the last weights, and stderr says so. */
enum dp_status dp_run_best_restore(const struct dp_folder *folder, const struct dp_cluster *cluster,
                                   struct dp_local *local, struct dp_error *err);

#endif
