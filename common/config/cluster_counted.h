/* Cluster counted: where servers are that the file only counts: the first one, and a server's own patterns.
 * Private to the room. */
#ifndef DP_CONFIG_CLUSTER_COUNTED_H
#define DP_CONFIG_CLUSTER_COUNTED_H

#include "common/base/status.h"

#include <stdbool.h>

struct dp_cluster;

/* Whether it can be the name or address of a machine. */
bool dp_cluster_is_host(const char *text);
/* The checks of `counted` and `first_text`, but for the ranges of fields.h. */
enum dp_status dp_cluster_check_counted(const struct dp_cluster *cluster, struct dp_error *err);
/* After the paths are resolved: gives each counted server its pattern of a store, and names the first
 * server, by the file or the environment. */
enum dp_status dp_cluster_count_out(struct dp_cluster *cluster, struct dp_error *err);

#endif
