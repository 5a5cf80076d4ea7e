/* Making: the directory of a checkpoint in progress, and its publication.
 *     begin -> (the servers copy into it) -> put ... -> publish | abandon
 * Promise   publish writes the manifest into making-<order>, durable, and then renames that directory to checkpoint-N, where N
 *           is one above all that were there. The rename makes the checkpoint count. A process that is
 *           killed before it leaves a directory that sweep removes.
 * Lock      The caller holds dp_checkpoint_lock.
 * Thread    One.
 * Failure   DP_FULL, DP_IO, DP_ARGUMENT, DP_CORRUPT (a file reads back differently; an inconsistent
 *           manifest). */
#ifndef DP_CHECKPOINT_MAKING_H
#define DP_CHECKPOINT_MAKING_H

#include "server/checkpoint/manifest_data.h"
#include "server/checkpoint/paths.h"

enum dp_status dp_checkpoint_begin(const char *directory, uint64_t order, struct dp_error *err);
/* A file of the checkpoint itself ("ids", "steps", "register", "cluster.conf"): written, synced, read back. Fills *out, whose
 * name is on the heap. linked: not NULL for a file that is mostly as before: where the directory's last checkpoint has it with
 * these bytes, it is linked, if the file system can, and its bytes are added to *linked. */
enum dp_status dp_checkpoint_put(const char *directory, uint64_t order, const char *name, const void *bytes,
                                 size_t size, struct dp_manifest_file *out, uint64_t *linked,
                                 struct dp_error *err);
/* A worker's step log, as a file of the checkpoint and in the manifest's list. */
enum dp_status dp_checkpoint_put_step_log(const char *directory, uint64_t order, uint32_t worker,
                                          const void *bytes, size_t size, struct dp_manifest *manifest,
                                          struct dp_error *err);
/* The manifest's order is that of the directory. manifest->number: the checkpoint's; 0: it was not renamed, abandon may follow. */
enum dp_status dp_checkpoint_publish(const char *directory, struct dp_manifest *manifest,
                                     struct dp_error *err);
/* Its directory goes, and all files of the pool that no manifest names: on a full disk the next one finds room. */
enum dp_status dp_checkpoint_abandon(const char *directory, uint64_t order, struct dp_error *err);
/* Removes the directories of all other orders: the process that holds the lock makes the only checkpoint there. A shared
 * file system that keeps flock for one machine only breaks that: the other's checkpoint then fails. */
enum dp_status dp_checkpoint_sweep(const char *directory, uint64_t but_order, struct dp_error *err);

#endif
