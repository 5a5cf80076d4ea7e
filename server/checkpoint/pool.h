/* Pool: the files of stores' copies that the checkpoints of a directory share: DIR/files/<store id>/<name>-<checksum>.
 *     open -> put ... -> sync -> close
 * Promise   A file under its name in the pool is complete and durable (after sync), and its checksum is the
 *           one in its name. It is written under another name, synced, read back, and renamed last. With
 *           `link` it is a hard link to the store's file, if both are on one file system: synced and read
 *           once, and no second copy on that disk.
 * Known     An earlier checkpoint may have a file of the same store, name and size. Then the new file is
 *           read, and the earlier one is used only if the checksums are equal. (RocksDB does not use the
 *           number of a file again within a store.)
 * Temp      tmp-<order>-<name>. Only one order at a time copies a store, so the temp files of others are of orders that ended:
 *           open removes them.
 * Thread    One.
 * Failure   DP_FULL, DP_IO, DP_CORRUPT (it reads back differently), DP_STOPPING (pace). Only a crash in put
 *           leaves a temp file. */
#ifndef DP_CHECKPOINT_POOL_H
#define DP_CHECKPOINT_POOL_H

#include "server/checkpoint/manifest_data.h"
#include "server/checkpoint/pace.h"
#include "server/checkpoint/paths.h"

struct dp_pool {
    const char *directory; /* DIR; the caller's */
    uint64_t store, order;
    bool full; /* nothing is taken as known */
    bool link;
    struct dp_pace *pace;
    struct dp_manifest_files known; /* of this store, in manifests of the directory */
    uint64_t bytes_new;             /* written since open */
};

/* directory, store, order, full, link and pace are set. Makes the store's directory in the pool. */
enum dp_status dp_pool_open(struct dp_pool *pool, struct dp_error *err);
void dp_pool_close(struct dp_pool *pool);
/* Brings a file into the pool and adds it to `files` under `name`. */
enum dp_status dp_pool_put(struct dp_pool *pool, const char *from, const char *name,
                           struct dp_manifest_files *files, struct dp_error *err);
/* What was put is durable. */
enum dp_status dp_pool_sync(const struct dp_pool *pool, struct dp_error *err);

#endif
