/* Cluster client: the client of a cluster file's servers. Where the file only counts them, the first server's
 * register has their addresses. */
#ifndef DP_CONFIG_CLUSTER_CLIENT_H
#define DP_CONFIG_CLUSTER_CLIENT_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"

/* As dp_client_open; cluster, shards and control in the options are set here. DP_ARGUMENT: nothing names the
 * first server. */
enum dp_status dp_cluster_client(const struct dp_cluster *cluster, const struct dp_client_options *options,
                                 struct dp_client **out, struct dp_error *err);
/* Fills in where each server is, as far as the register knows it: for messages, and for what asks each server
 * itself. Nothing where the file lists them. */
enum dp_status dp_cluster_find(struct dp_cluster *cluster, uint32_t timeout_ms, struct dp_error *err);

#endif
