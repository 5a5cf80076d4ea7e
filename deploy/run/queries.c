#include "deploy/run/queries.h"

#include "common/base/deadline.h"
#include "common/net/transport.h"
#include "common/wire/request.h"

#include <stdlib.h>
#include <string.h>

#define SESSION 1u /* of no meaning: status and notes have no order */

struct asking {
    uint32_t timeout_ms;
    const struct dp_cluster *cluster;
    const char *prefix;
    struct dp_queries *asks;
    struct dp_transport transport; /* [shards + 1]; the last: control of the first server */
    struct dp_message **message;   /* not sent yet */
    bool *heard;
    uint32_t left;
};

static void endpoint_of(const struct asking *a, uint32_t i, char out[DP_HOST_MAX + 32])
{
    if (i == a->asks->shards)
        dp_cluster_control_endpoint(a->cluster, 0, out, DP_HOST_MAX + 32);
    else
        dp_cluster_shard_endpoint(a->cluster, i, out, DP_HOST_MAX + 32);
}

static enum dp_status open_all(struct asking *a, uint32_t n, struct dp_error *err)
{
    char(*endpoint)[DP_HOST_MAX + 32] = calloc(n, sizeof *endpoint);
    const char **all = calloc(n, sizeof *all);
    for (uint32_t i = 0; endpoint && all && i < n; i++) {
        endpoint_of(a, i, endpoint[i]);
        all[i] = endpoint[i];
    }
    enum dp_status st = endpoint && all ? dp_transport_open(all, n, &a->transport, err)
                                        : dp_fail(err, DP_NOMEM, "no memory to ask the servers");
    free(endpoint);
    free(all);
    return st;
}

static enum dp_status prepare(struct asking *a, uint32_t i, uint32_t timeout_ms, struct dp_error *err)
{
    bool control = i == a->asks->shards;
    struct dp_request *request = calloc(1, sizeof *request);
    if (!request)
        return dp_fail(err, DP_NOMEM, "no memory to ask the servers");
    request->kind = control ? DP_REQUEST_NOTES_GET : DP_REQUEST_STATUS;
    request->id = i + 1;
    request->session = SESSION;
    request->cluster = a->cluster->id;
    request->shard = a->cluster->counted.count > 0 && !control ? i + 1 : 0;
    request->timeout_ms = timeout_ms;
    (void)snprintf(request->name, sizeof request->name, "%s", control ? a->prefix : "");
    if (control && a->asks->notes > 0) /* those after them */
        (void)snprintf(request->after, sizeof request->after, "%s", a->asks->note[a->asks->notes - 1].name);
    enum dp_status st = dp_request_encode(request, NULL, 0, &a->message[i], err);
    free(request);
    return st;
}

static void take_notes(struct dp_queries *asks, const struct dp_message *message,
                       const struct dp_reply *reply)
{
    struct dp_queries_note *all = realloc(asks->note, (asks->notes + reply->notes + 1u) * sizeof *asks->note);
    if (!all)
        return;
    asks->note = all;
    asks->notes_known = true;
    for (uint32_t n = 0; n < reply->notes && n + 1 < message->frames; n++) {
        struct dp_queries_note *note = &asks->note[asks->notes];
        note->bytes = message->frame[n + 1].size;
        note->text = malloc(note->bytes + 1);
        if (!note->text)
            return;
        memcpy(note->text, message->frame[n + 1].data, note->bytes);
        note->text[note->bytes] = '\0';
        note->age_ms = reply->age_ms ? reply->age_ms[n] : 0;
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
        if (reply->kind == DP_REPLY_NOTES && reply->notes >= DP_NOTES_MAX - 1 &&
            prepare(a, i, a->timeout_ms, &err) == DP_OK) {
            a->heard[i] = false;
            a->left++;
        }
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

static void exchange(struct asking *a, uint32_t n, uint32_t timeout_ms)
{
    struct dp_transport *t = &a->transport;
    uint64_t begun = dp_now_ms(), now = begun;
    while (a->left > 0 && now - begun < timeout_ms) {
        struct dp_message *message = NULL;
        uint32_t i;
        for (i = 0; i < n; i++)
            if (a->message[i]) /* kept while the host's name is looked up */
                (void)!t->send(t->self, i, &a->message[i], NULL);
        t->wait(t->self, timeout_ms - (uint32_t)(now - begun));
        while (t->receive(t->self, &i, &message)) {
            if (!a->heard[i])
                take(a, i, message);
            dp_message_free(&message);
        }
        now = dp_now_ms();
    }
    a->asks->tried_ms = (uint32_t)(now - begun);
}

static void name_causes(struct asking *a)
{
    for (uint32_t i = 0; i < a->asks->shards; i++) {
        const char *cause = a->transport.trouble(a->transport.self, i);
        if (cause && !a->heard[i])
            (void)snprintf(a->asks->shard[i].reason, sizeof a->asks->shard[i].reason, "%s", cause);
    }
}

enum dp_status dp_queries_send(const struct dp_cluster *cluster, const char *prefix, uint32_t timeout_ms,
                               struct dp_queries *out, struct dp_error *err)
{
    uint32_t n = dp_cluster_shards(cluster) + 1;
    struct asking a = {
        .timeout_ms = timeout_ms, .cluster = cluster, .prefix = prefix, .asks = out, .left = n};
    *out = (struct dp_queries){.shards = n - 1, .shard = calloc(n, sizeof *out->shard)};
    a.message = calloc(n, sizeof(void *));
    a.heard = calloc(n, sizeof *a.heard);
    enum dp_status st = out->shard && a.message && a.heard ? open_all(&a, n, err)
                                                           : dp_fail(err, DP_NOMEM, "no memory to ask");
    for (uint32_t i = 0; st == DP_OK && i < n; i++)
        st = prepare(&a, i, timeout_ms, err);
    if (st == DP_OK) {
        exchange(&a, n, timeout_ms);
        name_causes(&a);
    }
    for (uint32_t i = 0; a.message && i < n; i++)
        dp_message_free(&a.message[i]);
    if (a.transport.self)
        a.transport.close(a.transport.self);
    free(a.message);
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
