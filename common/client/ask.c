#include "common/client/ask.h"

#include <stdlib.h>
#include <string.h>

static void drop(struct dp_shard_request **draft)
{
    if (*draft)
        dp_call_free(&(*draft)->call);
    dp_shard_request_free(draft);
}

struct dp_shard_request *dp_client_draft_one(struct dp_client *client, enum dp_request_kind kind,
                                             enum dp_reply_kind answer, const char *name, uint32_t timeout_ms)
{
    struct dp_shard_request *draft = dp_shard_request_new(kind, answer);
    if (!draft)
        return NULL;
    draft->loose = true;
    draft->call = dp_call_new(client, 0, timeout_ms);
    if (name)
        memcpy(draft->request.name, name, strlen(name) + 1);
    if (!draft->call)
        drop(&draft);
    return draft;
}

void *dp_client_draft_add(struct dp_shard_request **draft, size_t size)
{
    struct dp_block *block = *draft ? dp_block_new(size) : NULL;
    if (!block) {
        drop(draft);
        return NULL;
    }
    void *bytes = dp_block_bytes(block);
    dp_shard_request_add(*draft, block, 0, size);
    dp_block_drop(&block);
    return bytes;
}

struct dp_call *dp_client_post(struct dp_client *client, uint32_t server, struct dp_shard_request **draft)
{
    struct dp_call *call = *draft ? (*draft)->call : NULL;
    if (call) {
        dp_client_adopt(client, call);
        dp_link_put(&client->link[server], draft);
    }
    return call;
}

enum dp_status dp_client_ask(struct dp_client *client, uint32_t server, struct dp_shard_request **draft,
                             const char *what, uint32_t timeout_ms, struct dp_call **out,
                             struct dp_error *err)
{
    struct dp_call *call = *out = dp_client_post(client, server, draft);
    if (!call)
        return dp_fail(err, DP_NOMEM, "%s: no memory", what);
    enum dp_status st = dp_client_await(client, call, what, timeout_ms, err);
    if (st != DP_OK) {
        dp_client_end(client, call);
        *out = NULL;
    }
    return st;
}

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

enum dp_status dp_call_keep(struct dp_call *call, uint32_t server, const struct dp_shard_request *to_shard,
                            struct dp_reply *reply, struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)to_shard;
    (void)err;
    call->kept = *reply;
    call->message = *message;
    *message = NULL;
    /* The heap parts are the call's now: the caller, which clears the reply, must not have them too. */
    reply->report = (struct dp_status_report){0};
    reply->note = NULL;
    reply->age_ms = NULL;
    return DP_OK;
}

enum dp_status dp_call_copy_value(const struct dp_call *call, struct dp_register_value *out,
                                  struct dp_error *err)
{
    DP_ASSERT(call->message && call->message->frames == 2 && call->kept.kind == DP_REPLY_REGISTER);
    const struct dp_frame *frame = &call->message->frame[1];
    void *bytes = malloc(frame->size + 1);
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "register: no memory for a value of %zu bytes", frame->size);
    if (frame->size > 0)
        memcpy(bytes, frame->data, frame->size);
    ((char *)bytes)[frame->size] = '\0';
    *out = (struct dp_register_value){.version = call->kept.version,
                                      .register_id = call->kept.register_id,
                                      .bytes = bytes,
                                      .size = frame->size};
    return DP_OK;
}
