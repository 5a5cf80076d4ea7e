#include "common/config/cluster_client.h"

#include "common/wire/address.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ENDPOINT_MAX = DP_HOST_MAX + 32 };

enum dp_status dp_cluster_client(const struct dp_cluster *cluster, const struct dp_client_options *options,
                                 struct dp_client **out, struct dp_error *err)
{
    uint32_t shards = dp_cluster_shards(cluster);
    char control[ENDPOINT_MAX];
    char(*endpoint)[ENDPOINT_MAX] = calloc(shards, sizeof *endpoint);
    const char **endpoints = calloc(shards, sizeof *endpoints);
    struct dp_client_options all = *options;
    *out = NULL;
    enum dp_status st = dp_cluster_has_first(cluster, err);
    if (st != DP_OK)
        goto done;
    if (!endpoint || !endpoints) {
        st = dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " endpoints", shards);
        goto done;
    }
    for (uint32_t i = 0; i < shards; i++) {
        dp_cluster_shard_endpoint(cluster, i, endpoint[i], sizeof endpoint[i]);
        endpoints[i] = endpoint[i];
    }
    dp_cluster_control_endpoint(cluster, 0, control, sizeof control);
    all.cluster = cluster->id;
    all.shards = cluster->counted.count > 0 ? NULL : endpoints;
    all.servers = cluster->counted.count;
    all.shard_count = shards;
    all.control = control;
    all.control_from = cluster->first.from;
    st = dp_client_open(&all, out, err);
    if (st == DP_GENERATION) /* the servers name ids */
        st = dp_wrap(err, st, "cluster '%.60s' (id %016" PRIx64 ")", cluster->name, cluster->id);
done:
    free(endpoints);
    free(endpoint);
    return st;
}

static void take_address(struct dp_cluster *cluster, uint32_t at, const struct dp_register_value *value)
{
    struct dp_cluster_server *server = &cluster->server[at];
    struct dp_address address;
    if (dp_address_decode(value->bytes, value->size, &address, NULL) != DP_OK ||
        address.ports != server->shards + 1)
        return;
    if (at > 0) { /* the first one is where it was found */
        memcpy(server->host, address.host, sizeof server->host);
        server->port = address.port[0];
    }
    for (uint32_t i = 0; i < server->shards; i++)
        server->shard_port[i] = address.port[i + 1];
}

enum dp_status dp_cluster_find(struct dp_cluster *cluster, uint32_t timeout_ms, struct dp_error *err)
{
    struct dp_client *client = NULL;
    char control[ENDPOINT_MAX];
    uint32_t shard = 0;
    enum dp_status st = dp_cluster_has_first(cluster, err);
    if (st != DP_OK || cluster->counted.count == 0)
        return st;
    dp_cluster_control_endpoint(cluster, 0, control, sizeof control);
    const struct dp_client_options options = {
        .name = "address", .cluster = cluster->id, .control = control, .control_from = cluster->first.from};
    st = dp_client_open(&options, &client, err);
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++) {
        struct dp_register_value value = {0};
        char name[DP_ADDRESS_NAME_BYTES];
        dp_address_name(shard, name);
        st = dp_client_register_get(client, name, 0, 0, timeout_ms, &value, err);
        if (st == DP_OK && value.version > 0)
            take_address(cluster, i, &value);
        dp_register_value_clear(&value);
        shard += cluster->server[i].shards;
    }
    dp_client_close(&client);
    return st;
}
