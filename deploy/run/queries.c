#include "deploy/run/queries.h"

#include "common/base/deadline.h"
#include "common/net/net.h"
#include "common/wire/request.h"

#include <stdlib.h>
#include <string.h>

#define SESSION 1u /* of no meaning: status and notes have no order */

struct asking {
    const struct dp_cluster *cluster;
    const char *prefix;
    struct dp_queries *asks;
    struct dp_net *net;
    struct dp_connection **connection; /* [shards + 1]; the last: control of the first server */
    bool *heard;
    uint32_t left;
};

static enum dp_status send_one(struct asking *a, uint32_t i, uint32_t timeout_ms, struct dp_error *err)
{
    char endpoint[DP_HOST_MAX + 32];
    struct dp_message *message = NULL;
    bool control = i == a->asks->shards;
    struct dp_request *request = calloc(1, sizeof *request);
    if (!request)
        return dp_fail(err, DP_NOMEM, "no memory to ask the servers");
    request->kind = control ? DP_REQUEST_NOTES_GET : DP_REQUEST_STATUS;
    request->id = i + 1;
    request->session = SESSION;
    request->cluster = a->cluster->id;
    request->timeout_ms = timeout_ms;
    (void)snprintf(request->name, sizeof request->name, "%s", control ? a->prefix : "");
    if (control)
        dp_cluster_control_endpoint(a->cluster, 0, endpoint, sizeof endpoint);
    else
        dp_cluster_shard_endpoint(a->cluster, i, endpoint, sizeof endpoint);
    enum dp_status st = dp_request_encode(request, NULL, 0, &message, err);
    if (st == DP_OK)
        st = dp_connection_open(a->net, endpoint, &a->connection[i], err);
    if (st == DP_OK)
        st = dp_connection_send(a->connection[i], &message, err);
    dp_message_free(&message);
    free(request);
    return st;
}

static void take_notes(struct dp_queries *asks, const struct dp_message *message,
                       const struct dp_reply *reply)
{
    asks->note = calloc(reply->notes + 1u, sizeof *asks->note);
    if (!asks->note)
        return;
    asks->notes_known = true;
    for (uint32_t n = 0; n < reply->notes && n + 1 < message->frames; n++) {
        struct dp_queries_note *note = &asks->note[asks->notes];
        note->bytes = message->frame[n + 1].size;
        note->text = malloc(note->bytes + 1);
        if (!note->text)
            return;
        memcpy(note->text, message->frame[n + 1].data, note->bytes);
        note->text[note->bytes] = '\0';
        (void)snprintf(note->name, sizeof note->name, "%s", reply->note[n]);
        asks->notes++;
    }
}

static void take(struct asking *a, uint32_t i, const struct dp_message *message)
{
    struct dp_error err = {0};
    struct dp_queries *asks = a->asks;
    struct dp_reply *reply = calloc(1, sizeof *reply);
    if (!reply || dp_reply_decode(message, reply, &err) != DP_OK || reply->id != i + 1) {
        if (reply)
            dp_reply_clear(reply);
        free(reply); /* a peer that is none of ours: as silent as none */
        return;
    }
    a->heard[i] = true;
    a->left--;
    if (i == asks->shards) {
        if (reply->kind == DP_REPLY_NOTES)
            take_notes(asks, message, reply);
    } else if (reply->kind == DP_REPLY_STATUS && reply->status == DP_OK) {
        asks->shard[i].state = DP_ASK_ANSWERED;
        asks->shard[i].report = reply->report;
        reply->report = (struct dp_status_report){0};
    } else {
        asks->shard[i].state = DP_ASK_REFUSED;
        asks->shard[i].status = reply->status;
        memcpy(asks->shard[i].reason, reply->reason, sizeof reply->reason);
    }
    dp_reply_clear(reply);
    free(reply);
}

static void receive_all(struct asking *a, uint32_t timeout_ms)
{
    uint64_t begun = dp_now_ms(), now = begun;
    uint32_t n = a->asks->shards + 1;
    while (a->left > 0 && now - begun < timeout_ms) {
        dp_connections_wait(a->connection, n, timeout_ms - (uint32_t)(now - begun));
        for (uint32_t i = 0; i < n; i++) {
            struct dp_message *message = NULL;
            if (!dp_connection_receive(a->connection[i], &message))
                continue;
            if (!a->heard[i])
                take(a, i, message);
            dp_message_free(&message);
        }
        now = dp_now_ms();
    }
    a->asks->tried_ms = (uint32_t)(now - begun);
}

enum dp_status dp_queries_send(const struct dp_cluster *cluster, const char *prefix, uint32_t timeout_ms,
                               struct dp_queries *out, struct dp_error *err)
{
    uint32_t n = dp_cluster_shards(cluster) + 1;
    struct asking a = {.cluster = cluster, .prefix = prefix, .asks = out, .left = n};
    *out = (struct dp_queries){.shards = n - 1, .shard = calloc(n, sizeof *out->shard)};
    a.connection = calloc(n, sizeof(void *));
    a.heard = calloc(n, sizeof *a.heard);
    enum dp_status st = out->shard && a.connection && a.heard ? dp_net_open(1, &a.net, err)
                                                              : dp_fail(err, DP_NOMEM, "no memory to ask");
    for (uint32_t i = 0; st == DP_OK && i < n; i++)
        st = send_one(&a, i, timeout_ms, err);
    if (st == DP_OK)
        receive_all(&a, timeout_ms);
    for (uint32_t i = 0; a.connection && i < n; i++)
        dp_connection_close(&a.connection[i]);
    dp_net_close(&a.net);
    free(a.connection);
    free(a.heard);
    return st;
}

void dp_queries_clear(struct dp_queries *asks)
{
    for (uint32_t i = 0; asks->shard && i < asks->shards; i++) {
        free(asks->shard[i].report.table);
        free(asks->shard[i].report.counter);
        free(asks->shard[i].report.histogram);
    }
    for (uint32_t i = 0; i < asks->notes; i++)
        free(asks->note[i].text);
    free(asks->shard);
    free(asks->note);
    *asks = (struct dp_queries){0};
}
