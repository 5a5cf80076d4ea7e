#include "common/client/ask_one.h"
#include "common/client/register_store.h"

#include "common/model/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum dp_status check(const struct dp_client *client, const char *name, size_t size,
                            struct dp_error *err)
{
    if (!client->has_control)
        return dp_fail(err, DP_ARGUMENT, "register: this client was opened without a control endpoint");
    if (!name[0] || strlen(name) > DP_NOTE_NAME_MAX)
        return dp_fail(err, DP_ARGUMENT, "register value '%.40s': its name needs 1 to %u bytes", name,
                       DP_NOTE_NAME_MAX);
    if (size > DP_REGISTER_VALUE_BYTES_MAX)
        return dp_fail(err, DP_ARGUMENT, "register value '%s': %zu bytes, at most %u", name, size,
                       DP_REGISTER_VALUE_BYTES_MAX);
    return DP_OK;
}

enum dp_status dp_call_keep_value(struct dp_call *call, uint32_t server,
                                  const struct dp_shard_request *to_shard, struct dp_reply *reply,
                                  struct dp_message **message, struct dp_error *err)
{
    (void)server;
    (void)to_shard;
    (void)err;
    call->kept = *reply;
    call->message = *message;
    *message = NULL;
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

static enum dp_status ask(struct dp_client *client, struct dp_shard_request **to_shard, struct dp_call **call,
                          uint32_t timeout_ms, bool *won, struct dp_register_value *out, struct dp_error *err)
{
    char what[DP_NOTE_NAME_MAX + 32];
    struct dp_call *done = *call;
    *call = NULL;
    (void)snprintf(what, sizeof what, "register value '%s'", (*to_shard)->request.name);
    done->take = dp_call_keep_value;
    (*to_shard)->call = done;
    enum dp_status st =
        dp_client_ask(client, &client->link[client->shards], to_shard, what, timeout_ms, &done, err);
    if (st != DP_OK)
        return st;
    if (won)
        *won = done->kept.won;
    if (out)
        st = dp_call_copy_value(done, out, err);
    dp_client_end(client, done);
    return st;
}

enum dp_status dp_client_register_get(struct dp_client *client, const char *name, uint64_t above,
                                      uint32_t wait_ms, uint32_t timeout_ms, struct dp_register_value *out,
                                      struct dp_error *err)
{
    *out = (struct dp_register_value){0};
    enum dp_status st = check(client, name, 0, err);
    if (st != DP_OK)
        return st;
    uint32_t all_ms = timeout_ms < UINT32_MAX - wait_ms ? wait_ms + timeout_ms : UINT32_MAX;
    struct dp_shard_request *to_shard = dp_shard_request_new(DP_REQUEST_REGISTER_GET, DP_REPLY_REGISTER);
    struct dp_call *call = dp_call_new(client, 0, all_ms);
    if (!to_shard || !call) {
        dp_call_free(&call);
        st = dp_fail(err, DP_NOMEM, "register value '%s': no memory", name);
        goto done;
    }
    memcpy(to_shard->request.name, name, strlen(name) + 1);
    to_shard->request.version = above;
    to_shard->wait_until_ns = dp_awake_ns(&client->session.clock) + wait_ms * UINT64_C(1000000);
    st = ask(client, &to_shard, &call, all_ms, NULL, out, err);
done:
    dp_shard_request_free(&to_shard);
    return st;
}

/* As random as the session's number is: of this one call of this one client. */
static uint64_t nonce_of(const struct dp_client *client, const struct dp_call *call)
{
    uint64_t nonce = dp_mix(client->session.id + dp_mix(call->id));
    return nonce ? nonce : 1;
}

/* server_shard: dp_request's. */
static enum dp_status set(struct dp_client *client, uint32_t server_shard, const char *name,
                          uint64_t expected, const void *bytes, size_t size, uint32_t timeout_ms, bool *won,
                          struct dp_register_value *now, struct dp_error *err)
{
    *won = false;
    if (now)
        *now = (struct dp_register_value){0};
    enum dp_status st = check(client, name, size, err);
    if (st != DP_OK)
        return st;
    struct dp_shard_request *to_shard = dp_shard_request_new(DP_REQUEST_REGISTER_SET, DP_REPLY_REGISTER);
    struct dp_block *block = dp_block_new(size);
    struct dp_call *call = dp_call_new(client, 0, timeout_ms);
    if (!to_shard || !block || !call) {
        dp_call_free(&call);
        st = dp_fail(err, DP_NOMEM, "register value '%s': no memory", name);
        goto done;
    }
    if (size > 0)
        memcpy(dp_block_bytes(block), bytes, size);
    memcpy(to_shard->request.name, name, strlen(name) + 1);
    to_shard->request.version = expected;
    to_shard->request.nonce = nonce_of(client, call);
    to_shard->request.server_shard = server_shard;
    dp_shard_request_add(to_shard, block, 0, size);
    st = ask(client, &to_shard, &call, timeout_ms, won, now, err);
done:
    dp_block_drop(&block);
    dp_shard_request_free(&to_shard);
    return st;
}

enum dp_status dp_client_register_set(struct dp_client *client, const char *name, uint64_t expected,
                                      const void *bytes, size_t size, uint32_t timeout_ms, bool *won,
                                      struct dp_register_value *now, struct dp_error *err)
{
    return set(client, 0, name, expected, bytes, size, timeout_ms, won, now, err);
}

enum dp_status dp_client_register_store(struct dp_client *client, uint32_t shard, const char *name,
                                        uint64_t expected, const void *bytes, size_t size,
                                        uint32_t timeout_ms, bool *won, struct dp_register_value *now,
                                        struct dp_error *err)
{
    return set(client, shard + 1, name, expected, bytes, size, timeout_ms, won, now, err);
}

void dp_register_value_clear(struct dp_register_value *value)
{
    free(value->bytes);
    *value = (struct dp_register_value){0};
}
