/* Restore: builds one server's stores from a checkpoint, for the cluster file's number of shards, whatever the checkpoint's was.
 *     checkpoint read and checked -> STORE.restoring: shards, register (first server), layout -> it takes the place of STORE
 * Same number of shards: each shard's files are linked or copied, and its next opening replays the tail, as after a crash.
 * Another number: the old shards are recovered here, and their rows written into new stores by range (restore_split.h).
 * All servers of one restore get one history (server/store/store_id.h): who was of another, a worker or a store, is refused.
 * Promise   The servers that start then have the checkpoint's rows, push ids, steps and register. Until the last step the old store is
 *           as it was; whatever ends the process, the old one or the whole new one is there, and the restore can be run again.
 *           The checkpoint is only read. Each server of the cluster must be restored.
 * Thread    One, which waits, and a few that read checksums. Signals end the process, as a kill does.
 * Failure   DP_NOT_FOUND: no checkpoint there. DP_CORRUPT: damaged, with the file's name. DP_EXISTS: a store is there, without
 *           `overwrite`. DP_IN_USE, DP_FULL, DP_IO, DP_UNSUPPORTED, DP_ARGUMENT. */
#ifndef DP_RESTORE_RESTORE_H
#define DP_RESTORE_RESTORE_H

#include "common/config/cluster.h"

struct dp_restore_options {
    const char *checkpoint; /* DIR/checkpoint-N, or DIR: its last one */
    const struct dp_cluster *cluster;
    uint32_t server;
    bool overwrite; /* a store that is there is replaced */
    /* A word, from which and the checkpoint the history of all servers of this restore is derived. NULL: one is drawn, which only a
     * cluster of one server allows. The generation is the checkpoint's + 1. */
    const char *history;
};

DP_MUST_USE
enum dp_status dp_restore(const struct dp_restore_options *options, struct dp_error *err);

#endif
