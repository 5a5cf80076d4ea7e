#include "common/client/addresses.h"

#include "common/client/register_watch.h"
#include "common/wire/address.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WAIT_MS  10000u
#define PAUSE_NS (UINT64_C(1) * 1000000000u) /* after an answer that was of no use */

static struct dp_link *first_link(struct dp_client *client, uint32_t server)
{
    return &client->link[server * (client->shards / client->addresses.servers)];
}

static bool is_needed(struct dp_client *client, uint32_t server)
{
    const struct dp_link *link = first_link(client, server);
    for (uint32_t i = 0; i < client->shards / client->addresses.servers; i++)
        if (dp_link_is_lost(&link[i]))
            return true;
    return false;
}

/* What cannot be asked now for lack of memory is asked later. */
static void ask(struct dp_client *client, uint32_t server, uint64_t now_ns)
{
    struct dp_client_address *address = &client->addresses.of[server];
    char name[DP_ADDRESS_NAME_BYTES];
    dp_address_name(first_link(client, server)->server, name);
    address->due_ns = now_ns + PAUSE_NS;
    dp_register_watch_ask(client, &address->question, name, address->version, WAIT_MS);
}

static enum dp_status read_answer(const struct dp_client *client, const struct dp_call *call,
                                  struct dp_address *out, struct dp_error *err)
{
    uint32_t ports = client->shards / client->addresses.servers + 1;
    if (call->err.status != DP_OK)
        return dp_fail(err, call->err.status, "%s", call->err.text);
    const struct dp_frame *frame = &call->message->frame[1];
    enum dp_status st = dp_address_decode(frame->data, frame->size, out, err);
    if (st == DP_OK && out->ports != ports)
        st =
            dp_fail(err, DP_INVALID, "an address of %" PRIu32 " ports, expected %" PRIu32, out->ports, ports);
    return st;
}

/* The first server is another cluster's, or of another protocol: that stays so. */
static void refuse(struct dp_client *client, uint32_t server, const struct dp_error *why)
{
    struct dp_link *link = first_link(client, server);
    for (uint32_t i = 0; i < client->shards / client->addresses.servers; i++) {
        if (link[i].boot != 0) /* it was welcomed */
            continue;
        link[i].state = DP_LINK_REFUSED;
        link[i].refused = *why;
    }
}

static void take(struct dp_client *client, uint32_t server, const struct dp_call *call, uint64_t now_ns)
{
    struct dp_client_address *address = &client->addresses.of[server];
    struct dp_link *link = first_link(client, server);
    struct dp_address read = {0};
    struct dp_error err = {0};
    char endpoint[DP_ADDRESS_HOST_MAX + 32];
    bool is_set = call->err.status != DP_OK || call->kept.version != 0, moved = true;
    address->due_ns = now_ns + PAUSE_NS;
    if (call->err.status == DP_GENERATION || call->err.status == DP_VERSION)
        refuse(client, server, &call->err);
    if (is_set && read_answer(client, call, &read, &err) != DP_OK) {
        (void)snprintf(address->trouble, sizeof address->trouble,
                       "; its register's value '" DP_ADDRESS_PREFIX "%" PRIu32 "' cannot be read: %.200s",
                       link->server, err.text);
    } else if (is_set && call->kept.version != address->version) {
        address->trouble[0] = '\0';
        address->due_ns = now_ns + client->session.retry_ns; /* to answer there */
        for (uint32_t i = 1; i < read.ports; i++) {
            dp_address_endpoint(&read, i, endpoint, sizeof endpoint);
            moved &= dp_link_move(&link[i - 1], endpoint, now_ns);
        }
    }
    if (call->err.status == DP_OK && moved) /* else the same one is asked for again */
        address->version = call->kept.version;
    dp_register_watch_end(client, &address->question);
}

static void look(struct dp_client *client, uint64_t now_ns)
{
    for (uint32_t i = 0; i < client->addresses.servers; i++) {
        struct dp_client_address *address = &client->addresses.of[i];
        const struct dp_call *answered = dp_register_watch_answered(&address->question);
        if (answered)
            take(client, i, answered, now_ns);
        if (!address->question.asked && now_ns >= address->due_ns && is_needed(client, i))
            ask(client, i, now_ns);
    }
}

enum dp_status dp_client_addresses_begin(struct dp_client *client, uint32_t servers, struct dp_error *err)
{
    client->addresses.of = calloc(servers, sizeof *client->addresses.of);
    if (!client->addresses.of)
        return dp_fail(err, DP_NOMEM, "no memory for the addresses of %" PRIu32 " servers", servers);
    client->addresses.servers = servers;
    client->addresses.look = look;
    client->session.addressed = true;
    return DP_OK;
}
