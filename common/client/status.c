#include "common/client/ask_one.h"

#include <inttypes.h>
#include <stdlib.h>

static enum dp_status keep_report(struct dp_call *call, uint32_t server,
                                  const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                  struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)to_shard;
    (void)message;
    (void)err;
    call->kept = *reply;
    /* The arrays are the call's now: what the caller clears must not hold them too. */
    reply->report = (struct dp_status_report){0};
    reply->note = NULL;
    return DP_OK;
}

enum dp_status dp_client_status(struct dp_client *client, uint32_t shard, uint32_t timeout_ms,
                                struct dp_status_report **out, struct dp_error *err)
{
    struct dp_shard_request *to_shard = NULL;
    struct dp_call *call = NULL;
    struct dp_status_report *report = NULL;
    enum dp_status st;
    *out = NULL;
    if (shard >= client->shards)
        return dp_fail(err, DP_ARGUMENT, "status of shard %" PRIu32 ": there are %" PRIu32, shard,
                       client->shards);
    report = malloc(sizeof *report);
    to_shard = dp_shard_request_new(DP_REQUEST_STATUS, DP_REPLY_STATUS);
    call = dp_call_new(client, 0, timeout_ms);
    if (!report || !to_shard || !call) {
        dp_call_free(&call);
        st = dp_fail(err, DP_NOMEM, "status: no memory");
        goto done;
    }
    call->take = keep_report;
    to_shard->call = call;
    st = dp_client_ask(client, &client->link[shard], &to_shard, "status", timeout_ms, &call, err);
    if (st != DP_OK)
        goto done;
    *report = call->kept.report;
    call->kept.report = (struct dp_status_report){0};
    dp_client_end(client, call);
    *out = report;
    report = NULL;
done:
    dp_shard_request_free(&to_shard);
    free(report);
    return st;
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
