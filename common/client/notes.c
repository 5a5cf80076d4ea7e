#include "common/client/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_MAX 1024u /* more than a server has */

static enum dp_status check(const struct dp_client *client, const char *name, size_t size,
                            struct dp_error *err)
{
    if (!client->has_control)
        return dp_fail(err, DP_ARGUMENT, "notes: this client was opened without a control endpoint");
    if (strlen(name) > DP_NOTE_NAME_MAX)
        return dp_fail(err, DP_ARGUMENT, "note '%.40s...': its name is over %u bytes", name,
                       DP_NOTE_NAME_MAX);
    if (size > DP_NOTE_BYTES_MAX)
        return dp_fail(err, DP_ARGUMENT, "note '%s': %zu bytes, at most %u", name, size, DP_NOTE_BYTES_MAX);
    return DP_OK;
}

enum dp_status dp_client_note_put(struct dp_client *client, const char *name, const void *bytes, size_t size,
                                  uint32_t timeout_ms, struct dp_error *err)
{
    enum dp_status st = check(client, name, size, err);
    if (st != DP_OK)
        return st;
    if (!name[0])
        return dp_fail(err, DP_ARGUMENT, "a note needs a name");
    struct dp_call *call;
    struct dp_shard_request *put =
        dp_client_draft_one(client, DP_REQUEST_NOTE_PUT, DP_REPLY_NONE, name, timeout_ms);
    void *to = dp_client_draft_add(&put, size);
    if (to && size > 0)
        memcpy(to, bytes, size);
    st = dp_client_ask(client, client->shards, &put, "note", timeout_ms, &call, err);
    if (st == DP_OK)
        dp_client_end(client, call);
    return st;
}

static enum dp_status keep_notes(struct dp_call *call, uint32_t server,
                                 const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                 struct dp_message **message, struct dp_error *err)
{
    if ((*message)->frames != 1 + reply->notes)
        return dp_fail(err, DP_INVALID, "sent a reply with %u names of notes and %u frames", reply->notes,
                       (*message)->frames - 1);
    return dp_call_keep(call, server, to_shard, reply, message, err);
}

/* Visits in name order, whatever order the server has. */
static void visit_all(const struct dp_call *call, const char *prefix,
                      void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                      void *context, char last[DP_NOTE_NAME_MAX + 1])
{
    uint32_t order[DP_NOTES_MAX], n = 0;
    for (uint32_t i = 0; i < call->kept.notes && i < DP_NOTES_MAX; i++) {
        if (strncmp(call->kept.note[i], prefix, strlen(prefix)) != 0)
            continue;
        uint32_t j = n++;
        for (; j > 0 && strcmp(call->kept.note[order[j - 1]], call->kept.note[i]) > 0; j--)
            order[j] = order[j - 1];
        order[j] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct dp_frame *frame = &call->message->frame[1 + order[i]];
        visit(context, call->kept.note[order[i]], frame->data, frame->size);
    }
    if (n > 0)
        (void)snprintf(last, DP_NOTE_NAME_MAX + 1, "%s", call->kept.note[order[n - 1]]);
}

enum dp_status dp_client_notes(struct dp_client *client, const char *prefix,
                               void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                               void *context, uint32_t timeout_ms, struct dp_error *err)
{
    enum dp_status st = check(client, prefix, 0, err);
    if (st != DP_OK)
        return st;
    char last[DP_NOTE_NAME_MAX + 1] = "";
    uint32_t n = DP_NOTES_MAX - 1;
    /* A reply that is full may not have all. */
    for (uint32_t page = 0; st == DP_OK && n >= DP_NOTES_MAX - 1 && page < PAGES_MAX; page++) {
        struct dp_call *call;
        struct dp_shard_request *get =
            dp_client_draft_one(client, DP_REQUEST_NOTES_GET, DP_REPLY_NOTES, prefix, timeout_ms);
        if (get) {
            get->call->take = keep_notes;
            memcpy(get->request.after, last, sizeof last);
        }
        st = dp_client_ask(client, client->shards, &get, "notes", timeout_ms, &call, err);
        if (st != DP_OK)
            return st;
        n = call->kept.notes;
        visit_all(call, prefix, visit, context, last);
        dp_client_end(client, call);
    }
    return st;
}
