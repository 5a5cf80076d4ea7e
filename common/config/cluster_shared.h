/* Cluster shared: those settings of a cluster file in which the files of all hosts must agree, as text: one
 * line "servers[1].port = 5710" a key. The first server keeps its text in the register, and the others
 * compare theirs with it. Left out are settings that hosts may choose for themselves (store, cache_bytes,
 * journal_bytes, relative_to), and those of a run (model, data, training), in which workers agree by their
 * plan (worker/coordinate/training_plan.h).
 * Thread    Any. Memory: the caller's.
 * Failure   DP_ARGUMENT: naming the first key that differs, and both values. DP_NOMEM. */
#ifndef DP_CONFIG_CLUSTER_SHARED_H
#define DP_CONFIG_CLUSTER_SHARED_H

#include "common/base/status.h"

#include <stddef.h>

struct dp_cluster;

#define DP_CLUSTER_SHARED_BYTES 60000u /* at most; a longer text is replaced by a line with its hash */

/* *out: heap. */
enum dp_status dp_cluster_shared_text(const struct dp_cluster *cluster, char **out, struct dp_error *err);
/* first: the first server's text, not terminated. whose: "this server's". */
enum dp_status dp_cluster_shared_compare(const struct dp_cluster *cluster, const char *first, size_t size,
                                         const char *whose, struct dp_error *err);

#endif
