#include "common/client/register_watch.h"

#include "common/client/ask.h"

void dp_register_watch_ask(struct dp_client *client, struct dp_register_watch *watch, const char *name,
                           uint64_t above, uint32_t wait_ms)
{
    struct dp_shard_request *get =
        dp_client_draft_one(client, DP_REQUEST_REGISTER_GET, DP_REPLY_REGISTER, name, wait_ms);
    if (get) {
        get->request.version = above;
        get->wait_until_ns = dp_awake_ns(&client->session.clock) + wait_ms * UINT64_C(1000000);
        get->call->take = dp_call_keep;
    }
    watch->asked = dp_client_post(client, client->shards, &get);
}

const struct dp_call *dp_register_watch_answered(const struct dp_register_watch *watch)
{
    return watch->asked && dp_call_done(watch->asked) ? watch->asked : NULL;
}

void dp_register_watch_end(struct dp_client *client, struct dp_register_watch *watch)
{
    struct dp_call *call = watch->asked;
    watch->asked = NULL;
    dp_client_end(client, call);
}
