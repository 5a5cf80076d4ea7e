/* Cluster place: which process of a cluster a rank is.
 *     ranks 0 .. servers - 1: the servers, in the order of the file; the next: the workers
 * Thread    Any: plain functions.
 * Failure   DP_ARGUMENT with the numbers of the cluster file. */
#ifndef DP_CONFIG_CLUSTER_PLACE_H
#define DP_CONFIG_CLUSTER_PLACE_H

#include "common/config/cluster.h"

struct dp_cluster_place {
    bool is_worker; /* else a server */
    uint32_t number;
};

/* what: how messages name the rank ("--rank", "SLURM_PROCID"). */
enum dp_status dp_cluster_place_of(const struct dp_cluster *cluster, uint64_t rank, const char *what,
                                   struct dp_cluster_place *out, struct dp_error *err);
/* A number of a given kind. */
enum dp_status dp_cluster_place_check(const struct dp_cluster *cluster, bool is_worker, uint64_t number,
                                      const char *what, struct dp_cluster_place *out, struct dp_error *err);
/* How many processes a cluster has. */
uint32_t dp_cluster_places(const struct dp_cluster *cluster);
/* "server 1", "worker 3". */
const char *dp_cluster_place_text(const struct dp_cluster_place *place, char out[32]);

#endif
