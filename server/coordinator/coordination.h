/* Coordination: one checkpoint of the cluster: the orders to its shards, one after the other, and the checkpoint's directory
 * (server/checkpoint).
 *     lock, directory -> begin -> prepared -> register, cut, register -> union -> finish -> copied -> manifest -> end
 * Promise   Training goes on. Nothing counts before the manifest is in place. After a failure the shards let go of what
 *           they hold, and the directory is removed. If this process is killed, shards let go by themselves after 60 s.
 * Thread    One.
 * Failure   Names the shard, the cause and the remedy. DP_IN_USE: another process makes or removes checkpoints there.
 *           DP_EXISTS: with if_new, the last checkpoint has all. DP_STOPPING: `stopped` said so. DP_FULL: a disk is
 *           full, the directory's or a server's. */
#ifndef DP_COORDINATOR_COORDINATION_H
#define DP_COORDINATOR_COORDINATION_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "common/wire/checkpoint.h"

struct dp_coordination_options {
    struct dp_client *client;              /* of all the cluster's shards */
    const struct dp_cluster *cluster;      /* with the settings of the run */
    const char *file;                      /* its file */
    const struct dp_checkpoint_ask *asked; /* of the first server */
    bool if_new; /* only where a shard has journaled something since the last checkpoint in its directory */
    bool (*stopped)(void *context);
    bool (*is_watched)(void *context); /* by its client; else wait_ms is over */
    /* Several times a second: the stage, its words in `why`, and the bytes of all shards. */
    void (*show)(void *context, const struct dp_checkpoint_state *state);
    void *context;
    bool *leaves; /* set at a failure after which shards or files may be left for a later sweep */
};

enum dp_status dp_coordination_run(const struct dp_coordination_options *options,
                                   struct dp_checkpoint_made *out, struct dp_error *err);

#endif
