/* Copy snapshots: the snapshots in a link (server/store/rocks_link.h) as part of a shard's copy.
 *     find (what there is, for the progress) -> the link's own files are put -> put
 * Promise   A file that is the same in the link, or in an earlier snapshot of it, by its inode, is read once. What find found is in the
 *           shard's part of the manifest.
 * Thread    One.
 * Failure   As the pool's. */
#ifndef DP_CHECKPOINT_COPY_SNAPSHOTS_H
#define DP_CHECKPOINT_COPY_SNAPSHOTS_H

#include "server/checkpoint/pool.h"

/* Adds the snapshots of the directory `link` to the shard, ascending, without their files. *bytes: of the files that the link itself
 * does not have. */
DP_MUST_USE
enum dp_status dp_copy_snapshots_find(const char *link, struct dp_manifest_shard *shard, uint64_t *bytes,
                                      struct dp_error *err);
/* Brings their files into the pool, and adds them to the snapshots. shard->files: those of the link, which are there. */
DP_MUST_USE
enum dp_status dp_copy_snapshots_put(struct dp_pool *pool, const char *link, struct dp_manifest_shard *shard,
                                     struct dp_error *err);

#endif
