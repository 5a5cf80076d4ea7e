#include "common/client/heartbeats.h"

#include "common/base/bytes.h"
#include "common/client/ask.h"

#define MS_NS       UINT64_C(1000000)
#define IN_TIMEOUT  8u /* heartbeats within the timeout, so that some may be lost */
#define EVERY_MS    1000u
#define PLACE_BYTES 8u

static struct dp_shard_request *draft(struct dp_client *client, uint32_t timeout_ms)
{
    const struct dp_client_place *place = &client->place;
    struct dp_shard_request *heartbeat =
        dp_client_draft_one(client, DP_REQUEST_HEARTBEAT, DP_REPLY_SILENCES, NULL, timeout_ms);
    if (heartbeat)
        heartbeat->request.heartbeat =
            (struct dp_heartbeat){.run = place->run, .rank = place->rank, .members = place->members};
    return heartbeat;
}

/* Begins when the register has it in its place, though a shard may keep it waiting before it has joined.
 * Without memory it is sent later. */
static void look(struct dp_client *client, uint64_t now_ns)
{
    struct dp_client_heartbeats *heartbeats = &client->heartbeats;
    if (!client->place.seated || now_ns < heartbeats->due_ns || client->session.replaced.status != DP_OK)
        return;
    struct dp_shard_request *heartbeat = draft(client, 0);
    heartbeats->due_ns = now_ns + heartbeats->every_ns;
    if (heartbeats->sent)
        dp_client_end(client, heartbeats->sent);
    heartbeats->sent = dp_client_post(client, client->shards, &heartbeat);
}

void dp_client_heartbeats(struct dp_client *client, uint32_t timeout_ms)
{
    uint32_t every_ms = timeout_ms / IN_TIMEOUT < EVERY_MS ? timeout_ms / IN_TIMEOUT + 1 : EVERY_MS;
    client->heartbeats.every_ns = timeout_ms > 0 ? every_ms * MS_NS : 0;
    client->heartbeats.look = timeout_ms > 0 ? look : NULL;
}

static enum dp_status take_silences(struct dp_call *call, uint32_t server,
                                    const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                    struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)reply;
    uint32_t members = to_shard->request.heartbeat.members;
    const struct dp_frame *frame = &(*message)->frame[1];
    if (frame->size != (size_t)members * PLACE_BYTES)
        return dp_fail(err, DP_INVALID, "has the silences of %u members in %zu bytes", members, frame->size);
    for (uint32_t rank = 0; call->bits && rank < members; rank++)
        call->bits[rank] = dp_load_u64le((const char *)frame->data + (size_t)rank * PLACE_BYTES);
    return DP_OK;
}

static enum dp_status ask(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                          struct dp_error *err)
{
    struct dp_call *call;
    struct dp_shard_request *heartbeat = draft(client, timeout_ms);
    if (heartbeat) {
        heartbeat->call->take = take_silences;
        heartbeat->call->bits = silent_ms;
    }
    enum dp_status st = dp_client_ask(client, client->shards, &heartbeat, "silences", timeout_ms, &call, err);
    if (st == DP_OK)
        dp_client_end(client, call);
    return st;
}

enum dp_status dp_client_heartbeats_begin(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err)
{
    if (client->heartbeats.every_ns == 0)
        return DP_OK;
    enum dp_status st = ask(client, NULL, timeout_ms, err);
    client->heartbeats.due_ns = dp_awake_ns(&client->session.clock) + client->heartbeats.every_ns;
    return st;
}

enum dp_status dp_client_silences(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                                  struct dp_error *err)
{
    if (!client->place.joined || client->heartbeats.every_ns == 0)
        return dp_fail(err, DP_ARGUMENT, "silences: this client %s",
                       client->place.joined ? "does not heartbeat: call dp_client_heartbeats before it joins"
                                            : "is no member of a run: call dp_client_join first");
    return ask(client, silent_ms, timeout_ms, err);
}
