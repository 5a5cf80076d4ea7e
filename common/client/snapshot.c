/* Snapshot: an order to all shards about what they keep beside their rows. */
#include "common/client/ask_all.h"

static enum dp_status take_state(struct dp_call *call, uint32_t server, const struct dp_parcel *parcel,
                                 struct dp_reply *reply, struct dp_message **message, struct dp_error *err)
{
    (void)parcel;
    (void)message;
    (void)err;
    call->snapshots[server] =
        (struct dp_snapshot_state){.held = reply->held, .run = reply->run, .epoch = reply->epoch};
    return DP_OK;
}

enum dp_status dp_client_snapshot(struct dp_client *client, const struct dp_snapshot_order *order,
                                  struct dp_snapshot_state *states, uint32_t timeout_ms, struct dp_error *err)
{
    struct dp_call *call = dp_client_draft_all(client, DP_REQUEST_SNAPSHOT, DP_REPLY_SNAPSHOT, timeout_ms);
    for (uint32_t i = 0; i < client->shards && call; i++) {
        if (order->spares && order->spares[i]) {
            dp_parcel_free(&client->draft[i]);
            continue;
        }
        struct dp_request *request = &client->draft[i]->request;
        request->action = order->action;
        request->run = order->run;
        request->epoch = order->epoch;
        request->keeps = order->keeps;
    }
    if (call) {
        call->take = take_state;
        call->snapshots = states;
    }
    return dp_client_ask_all(client, &call, "snapshot", timeout_ms, err);
}

uint32_t dp_snapshot_newest(const struct dp_snapshot_state *states, uint32_t shards)
{
    uint32_t newest = 0;
    for (uint32_t i = 1; i < shards; i++)
        newest = states[i].run > states[newest].run ? i : newest;
    return newest;
}

uint32_t dp_snapshot_behind(const struct dp_snapshot_state *states, uint32_t shards,
                            struct dp_snapshot_state to)
{
    uint32_t behind = 0;
    while (behind < shards && (states[behind].run == to.run || !states[behind].held))
        behind++;
    return behind;
}
