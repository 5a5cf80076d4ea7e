#include "common/client/ask_all.h"

struct dp_call *dp_client_draft_all(struct dp_client *client, enum dp_request_kind kind,
                                    enum dp_reply_kind answer, uint32_t timeout_ms)
{
    struct dp_call *call = dp_call_new(client, 0, timeout_ms);
    for (uint32_t i = 0; i < client->shards && call; i++) {
        client->draft[i] = dp_shard_request_new(kind, answer);
        if (client->draft[i])
            client->draft[i]->loose = true;
        else
            dp_call_free(&call);
    }
    if (!call)
        dp_client_drop_draft(client);
    return call;
}

enum dp_status dp_client_ask_all(struct dp_client *client, struct dp_call **call, const char *what,
                                 uint32_t timeout_ms, struct dp_error *err)
{
    struct dp_ticket ticket = {0};
    if (!*call)
        return dp_fail(err, DP_NOMEM, "%s: no memory", what);
    dp_client_issue(client, call, &ticket);
    return dp_client_finish(client, &ticket, what, timeout_ms, err);
}
