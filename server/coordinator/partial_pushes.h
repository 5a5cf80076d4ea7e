/* Partial pushes: pushes that some shards have at a cut and others lack. A push under way arrives within moments. A dead worker's push is
 * completed by recomputing it: the checkpoint waits for that, then fails. Another client's push that does not arrive is given up; one that
 * has arrived since the cut is kept.
 *     over -> given up before the wait;  of a client -> given up after it;  else -> fail
 * Thread    Any. */
#ifndef DP_COORDINATOR_PARTIAL_PUSHES_H
#define DP_COORDINATOR_PARTIAL_PUSHES_H

#include "common/config/cluster.h"
#include "server/checkpoint/copier.h"

struct dp_partial_known {
    struct dp_copy_pushes before; /* of the last checkpoint in the directory, if it is of this history */
    uint32_t last_run;            /* that pushed; 0: none */
};

/* Whether no worker will complete the push: it is of an earlier run, or was partial in the checkpoint before. known: struct dp_partial_known. */
bool dp_partial_is_over(const void *known, const struct dp_copy_push *push);
/* Whether it is of a client that does not train. */
bool dp_partial_is_of_client(const void *unused, const struct dp_copy_push *push);
struct dp_partial_wait {
    const struct dp_cluster_training *training;
    bool has_sync;
    uint32_t shard, wait_ms;
    const struct dp_copy_push *lacking; /* NULL: the shard lacks no push */
};
/* How long shards may take to begin their copies when no push is waited for any longer: for a step's close, or a slow disk. */
uint32_t dp_partial_grace_ms(bool has_sync);
/* DP_TIMEOUT: names the worker whose push did not come, or what else the shard waits for, and what to do. */
enum dp_status dp_partial_fail(const struct dp_partial_wait *wait, struct dp_error *err);

#endif
