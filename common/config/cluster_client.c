#include "common/config/cluster_client.h"

#include <inttypes.h>
#include <stdlib.h>

enum dp_status dp_cluster_client(const struct dp_cluster *cluster, const struct dp_client_options *options,
                                 struct dp_client **out, struct dp_error *err)
{
    enum { ENDPOINT_MAX = DP_HOST_MAX + 32 };
    uint32_t shards = dp_cluster_shards(cluster);
    char control[ENDPOINT_MAX];
    char(*endpoint)[ENDPOINT_MAX] = calloc(shards, sizeof *endpoint);
    const char **endpoints = calloc(shards, sizeof *endpoints);
    struct dp_client_options all = *options;
    enum dp_status st = DP_NOMEM;
    *out = NULL;
    if (!endpoint || !endpoints) {
        (void)dp_fail(err, st, "no memory for %" PRIu32 " endpoints", shards);
        goto done;
    }
    for (uint32_t i = 0; i < shards; i++) {
        dp_cluster_shard_endpoint(cluster, i, endpoint[i], sizeof endpoint[i]);
        endpoints[i] = endpoint[i];
    }
    dp_cluster_control_endpoint(cluster, 0, control, sizeof control);
    all.cluster = cluster->id;
    all.shards = endpoints;
    all.shard_count = shards;
    all.control = control;
    st = dp_client_open(&all, out, err);
done:
    free(endpoints);
    free(endpoint);
    return st;
}
