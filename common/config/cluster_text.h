/* Cluster text: a cluster file, prepared for libconfig.
 *     whole file -> comments and strings passed over -> includes refused, integers given their width
 * Why   libconfig 1.5 ends the process when a read of its own fails (a directory given for a file). It
 *       follows @include to files that no message could name. It silently cuts an integer without an L to
 *       32 bits: batch = 4294967297 would be 1.
 * Failure   DP_IO, DP_ARGUMENT naming file and line. *out is the caller's to free. */
#ifndef DP_CONFIG_CLUSTER_TEXT_H
#define DP_CONFIG_CLUSTER_TEXT_H

#include "common/base/status.h"

enum dp_status dp_cluster_text(const char *path, char **out, struct dp_error *err);

#endif
