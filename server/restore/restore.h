/* Restore: builds one server's stores from a checkpoint, for the cluster file's number of shards, whatever the checkpoint's was.
 *     checkpoint read and checked -> STORE.restoring: shards, register (first server), layout -> built
 *     all servers have built -> all exchange (restore_exchange.h); a cluster of one server does so at once
 * Same number of shards: each shard's files are linked or copied, and its next opening replays the tail, as after a crash.
 * Another number, or tables that are left out: the old shards are recovered here, and their rows written into
 * new stores by range (restore_split.h).
 * All servers of one restore get one history (server/store/store_id.h): a worker or a store of another one is refused.
 * Promise   The servers that start after the exchange have the checkpoint's rows, push ids, steps and register. Until then the old
 *           store is as it was, and the restore can be run again. The checkpoint is only read. Each server of the cluster must build.
 * Thread    One, which waits, and a few that read checksums. Signals end the process, as a kill does.
 * Failure   DP_NOT_FOUND: no checkpoint there. DP_CORRUPT: damaged, with the file's name. DP_EXISTS: a store is there, without
 *           `overwrite`. DP_IN_USE, DP_FULL, DP_IO, DP_UNSUPPORTED, DP_ARGUMENT. Nothing of it is left in STORE.restoring. */
#ifndef DP_RESTORE_RESTORE_H
#define DP_RESTORE_RESTORE_H

#include "common/config/cluster.h"
#include "server/checkpoint/manifest.h"

struct dp_restore_options {
    const char *checkpoint; /* DIR/checkpoint-N, or DIR: its last one */
    const struct dp_cluster *cluster;
    uint32_t server;
    bool overwrite; /* a store that is there is replaced */
    /* What was built by such a call before takes the store's place; nothing is built. Of server 0 alone, with `history`. */
    bool exchanges;
    /* A word, from which and the checkpoint the history of all servers of this restore is derived. NULL: one is drawn, which only a
     * cluster of one server allows. The generation is the checkpoint's + 1. */
    const char *history;
    const char *without; /* TABLE[,TABLE...]: left out, with their rows (left_out.h); NULL: none */
};

enum dp_status dp_restore(const struct dp_restore_options *options, struct dp_error *err);

/* The history of that word's restore of this checkpoint, without the tables that are left out. */
uint64_t dp_restore_history(const struct dp_manifest *manifest, const char *word);

#endif
