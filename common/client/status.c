#include "common/client/ask.h"

#include <inttypes.h>
#include <stdlib.h>

enum dp_status dp_client_status(struct dp_client *client, uint32_t shard, uint32_t timeout_ms,
                                struct dp_status_report **out, struct dp_error *err)
{
    struct dp_call *call;
    *out = NULL;
    if (shard >= client->shards)
        return dp_fail(err, DP_ARGUMENT, "status of shard %" PRIu32 ": there are %" PRIu32, shard,
                       client->shards);
    struct dp_shard_request *get =
        dp_client_draft_one(client, DP_REQUEST_STATUS, DP_REPLY_STATUS, NULL, timeout_ms);
    if (get)
        get->call->take = dp_call_keep;
    enum dp_status st = dp_client_ask(client, shard, &get, "status", timeout_ms, &call, err);
    if (st != DP_OK)
        return st;
    *out = malloc(sizeof **out);
    if (*out) {
        **out = call->kept.report;
        call->kept.report = (struct dp_status_report){0};
    }
    dp_client_end(client, call);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "status: no memory");
}

void dp_client_status_free(struct dp_status_report **report)
{
    if (*report) {
        free((*report)->table);
        free((*report)->counter);
        free((*report)->histogram);
    }
    free(*report);
    *report = NULL;
}
