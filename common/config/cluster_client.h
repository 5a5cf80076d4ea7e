/* Cluster client: a client of all shards of a cluster file, and of the first server's control endpoint.
 * Failure   As dp_client_open. */
#ifndef DP_CONFIG_CLUSTER_CLIENT_H
#define DP_CONFIG_CLUSTER_CLIENT_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"

/* options: without cluster, shards and control, which are the file's. */
enum dp_status dp_cluster_client(const struct dp_cluster *cluster, const struct dp_client_options *options,
                                 struct dp_client **out, struct dp_error *err);

#endif
