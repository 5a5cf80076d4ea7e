/* Saved names: what a run keeps beside its stores of its training file (data.names, data.columns), into a checkpoint, so that its weights
 * can be exported with their names. They do not change in a run, and are there before its first push.
 * Promise   A file that is not there is left out: its worker runs on another machine, or the data has none. One that cannot be read, or of
 *           more than DP_SAVED_NAMES_MAX bytes, is, too, with a warning.
 * Thread    Any. */
#ifndef DP_CHECKPOINT_SAVED_NAMES_H
#define DP_CHECKPOINT_SAVED_NAMES_H

#include "common/config/cluster.h"
#include "server/checkpoint/manifest_data.h"

#define DP_SAVED_NAMES_MAX (256u << 20)

/* Into the checkpoint that is being made by `order`; linked where the last one has the same, unless all is to be written (full). */
DP_MUST_USE
enum dp_status dp_saved_names_put(const struct dp_cluster *cluster, const char *directory, uint64_t order,
                                  bool full, struct dp_manifest *manifest, struct dp_error *err);

#endif
