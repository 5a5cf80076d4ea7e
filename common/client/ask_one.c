#include "common/client/ask_one.h"

enum dp_status dp_client_ask(struct dp_client *client, struct dp_link *link,
                             struct dp_shard_request **to_shard, const char *what, uint32_t timeout_ms,
                             struct dp_call **out, struct dp_error *err)
{
    struct dp_call *call = (*to_shard)->call;
    (*to_shard)->loose = true;
    dp_client_adopt(client, call);
    dp_link_put(link, to_shard);
    enum dp_status st = dp_client_await(client, call, what, timeout_ms, err);
    if (st != DP_OK)
        dp_client_end(client, call);
    else
        *out = call;
    return st;
}
