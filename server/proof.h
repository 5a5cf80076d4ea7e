/* Proof: the file DIRECTORY/begun-<cluster's id> says that this cluster was begun. DIRECTORY is the cluster
 * file's checkpoint.to, which all hosts share and which outlives the servers' disks.
 *     one line: mark (random, drawn once for a cluster; the register has it, too), generation, history, name
 * Why       Where all stores are lost, empty directories look like a cluster that was never started.
 * Promise   write is durable when it returns. Files of other clusters in DIRECTORY are neither read nor
 *           changed.
 * Thread    Any.
 * Failure   DP_NOT_FOUND: there is none. DP_CORRUPT: it has another form. DP_IO, DP_FULL. Each names the
 *           file. */
#ifndef DP_SERVER_PROOF_H
#define DP_SERVER_PROOF_H

#include "common/config/cluster.h"
#include "server/checkpoint/paths.h"

struct dp_proof {
    struct dp_checkpoint_path path;
    uint64_t mark; /* 0: none */
    uint64_t generation, history;
};

/* path is filled in, also where there is none. */
enum dp_status dp_proof_read(const struct dp_cluster *cluster, struct dp_proof *out, struct dp_error *err);
/* DIRECTORY is made if it is missing. */
enum dp_status dp_proof_write(const struct dp_cluster *cluster, const struct dp_proof *proof,
                              struct dp_error *err);

#endif
