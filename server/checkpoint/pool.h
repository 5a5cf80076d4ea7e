/* Pool: the files of stores' copies that the checkpoints of a directory share: DIR/files/<store id>/<name>-<checksum>.
 *     open -> put ... -> sync -> close
 * Promise   A file under its name in the pool is whole and durable (after sync), and was read back with the checksum of its
 *           name: it is written under another name, synced, read back, and renamed last. With `link` it is a hard link to
 *           the store's file, if both are on one file system: synced and read once, and no second copy on that disk.
 * Known     A file of which an earlier checkpoint in the directory has one of the same store, name and size is read, and is
 *           taken for that one only if its checksum is the same, too. (RocksDB does not use the number of a file again
 *           within a store.)
 * Temp      tmp-<order>-<name>. Only one order at a time copies a store, so the temp files of others are of orders that ended:
 *           open removes them.
 * Thread    One.
 * Failure   DP_FULL, DP_IO, DP_CORRUPT (it reads back differently), DP_STOPPING (pace). put leaves nothing behind but
 *           after a crash. */
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
