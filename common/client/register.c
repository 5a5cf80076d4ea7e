#include "common/client/ask.h"
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

static enum dp_status ask(struct dp_client *client, struct dp_shard_request **draft, uint32_t timeout_ms,
                          bool *won, struct dp_register_value *out, struct dp_error *err)
{
    char what[DP_NOTE_NAME_MAX + 32] = "register value";
    struct dp_call *call;
    if (*draft) {
        (void)snprintf(what, sizeof what, "register value '%s'", (*draft)->request.name);
        (*draft)->call->take = dp_call_keep;
    }
    enum dp_status st = dp_client_ask(client, client->shards, draft, what, timeout_ms, &call, err);
    if (st != DP_OK)
        return st;
    if (won)
        *won = call->kept.won;
    if (out)
        st = dp_call_copy_value(call, out, err);
    dp_client_end(client, call);
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
    struct dp_shard_request *get =
        dp_client_draft_one(client, DP_REQUEST_REGISTER_GET, DP_REPLY_REGISTER, name, all_ms);
    if (get) {
        get->request.version = above;
        get->wait_until_ns = dp_awake_ns(&client->session.clock) + wait_ms * UINT64_C(1000000);
    }
    return ask(client, &get, all_ms, NULL, out, err);
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
    struct dp_shard_request *draft =
        dp_client_draft_one(client, DP_REQUEST_REGISTER_SET, DP_REPLY_REGISTER, name, timeout_ms);
    void *to = dp_client_draft_add(&draft, size);
    if (to && size > 0)
        memcpy(to, bytes, size);
    if (draft) {
        draft->request.version = expected;
        draft->request.nonce = nonce_of(client, draft->call);
        draft->request.server_shard = server_shard;
    }
    return ask(client, &draft, timeout_ms, won, now, err);
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
