#include "common/config/cluster_place.h"

#include <inttypes.h>

uint32_t dp_cluster_places(const struct dp_cluster *cluster)
{
    return cluster->server_count + cluster->training.workers;
}

enum dp_status dp_cluster_place_check(const struct dp_cluster *cluster, bool is_worker, uint64_t number,
                                      const char *what, struct dp_cluster_place *out, struct dp_error *err)
{
    uint32_t count = is_worker ? cluster->training.workers : cluster->server_count;
    const char *kind = is_worker ? "worker" : "server";
    if (number >= count)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu64 ", and the cluster file has %" PRIu32 " %s%s: %ss are counted from 0",
                       what, number, count, kind, count == 1 ? "" : "s", kind);
    *out = (struct dp_cluster_place){.is_worker = is_worker, .number = (uint32_t)number};
    return DP_OK;
}

enum dp_status dp_cluster_place_of(const struct dp_cluster *cluster, uint64_t rank, const char *what,
                                   struct dp_cluster_place *out, struct dp_error *err)
{
    uint32_t servers = cluster->server_count, all = dp_cluster_places(cluster);
    if (rank >= all)
        return dp_fail(err, DP_ARGUMENT,
                       "%s is %" PRIu64 ", and the cluster file has %" PRIu32 " servers and %" PRIu32
                       " workers: start %" PRIu32 " processes, of ranks 0 to %" PRIu32,
                       what, rank, servers, cluster->training.workers, all, all - 1);
    bool is_worker = rank >= servers;
    *out = (struct dp_cluster_place){.is_worker = is_worker,
                                     .number = (uint32_t)rank - (is_worker ? servers : 0)};
    return DP_OK;
}

const char *dp_cluster_place_text(const struct dp_cluster_place *place, char out[32])
{
    (void)snprintf(out, 32, "%s %" PRIu32, place->is_worker ? "worker" : "server", place->number);
    return out;
}
