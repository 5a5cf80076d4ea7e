/* Cluster paths: the paths of a cluster whose file says relative_to "file".
 *     file -> resolve -> paths in memory -> shorten -> file
 * Promise   A path that was shortened against a file's directory resolves to the same path against it. */
#ifndef DP_CONFIG_CLUSTER_PATHS_H
#define DP_CONFIG_CLUSTER_PATHS_H

#include "common/base/status.h"

struct dp_cluster;

/* Puts the directory of `file` in front of every path that does not start with /. */
enum dp_status dp_cluster_paths_resolve(struct dp_cluster *cluster, const char *file, struct dp_error *err);
/* A copy whose paths below the directory of `file` are relative to it. DP_ARGUMENT: a path is neither absolute nor below. */
enum dp_status dp_cluster_paths_shorten(const struct dp_cluster *cluster, const char *file,
                                        struct dp_cluster **out, struct dp_error *err);

#endif
