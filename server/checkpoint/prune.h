/* Prune: removes checkpoints, and then files of the pool that none names any more.
 *     for each one, oldest first:  its manifest (durable)  ->  its directory  ...  ->  files that no manifest names
 * Promise   After a kill at any moment, every directory that still has a manifest is complete. The next
 *           prune removes the rest.
 * Unread    While a manifest in the directory cannot be read, its files are unknown. So no file of the pool
 *           is removed; status and text name that manifest.
 * Lock      The caller holds dp_checkpoint_lock, so it removes no file that a checkpoint in progress uses.
 * Thread    One.
 * Failure   DP_IO; DP_CORRUPT, DP_UNSUPPORTED: of a manifest. */
#ifndef DP_CHECKPOINT_PRUNE_H
#define DP_CHECKPOINT_PRUNE_H

#include "server/checkpoint/pace.h"
#include "server/checkpoint/paths.h"

struct dp_prune {
    uint32_t checkpoints;   /* removed */
    uint64_t files, bytes;  /* of the pool, removed */
    uint32_t damaged;       /* kept, and not counted, as they are not complete */
    uint32_t first_damaged; /* its number */
};

/* Keeps the last `keep` complete checkpoints (at least 1) of that cluster and all that are later than these, and all of other clusters; 0:
 * the last `keep` of each cluster. Complete: all files are there, in their sizes, and unless reads is NULL with their
 * checksums: every byte of those that are kept is read at that pace, if others would go. A damaged one is never
 * counted, and goes with those of its age; one of another format stays. Before anything is removed: DP_CORRUPT, too: a
 * directory is named as another number than its manifest; DP_STOPPING: `reads` was cancelled. */
enum dp_status dp_checkpoint_prune(const char *directory, uint64_t cluster, uint32_t keep,
                                   struct dp_pace *reads, struct dp_prune *out, struct dp_error *err);
/* One of them: its manifest (durable), then its directory. Its files of the pool stay. */
enum dp_status dp_checkpoint_remove(const char *directory, uint32_t number, struct dp_error *err);

#endif
