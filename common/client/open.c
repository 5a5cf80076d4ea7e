/* Open: the client's links and their handshakes, over sockets or a test's transport. */
#include "common/client/client_over.h"

#include "common/client/addresses.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define DEFAULT_WINDOW          16u
#define DEFAULT_RETRY_MS        1000u
#define DEFAULT_OPEN_TIMEOUT_MS 10000u
#define WINDOW_MAX              65536u
#define SHARDS_MAX              65536u

static enum dp_status check_options(const struct dp_client_options *options, struct dp_error *err)
{
    bool known = options->shards ||
                 (options->control && options->servers > 0 && options->shard_count % options->servers == 0);
    uint32_t least = options->control ? 0 : 1, shards = known ? options->shard_count : 0;
    if (shards != options->shard_count || shards < least || shards > SHARDS_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "a client needs the endpoints of all shards: 1 to %u of them, not %" PRIu32,
                       SHARDS_MAX, shards);
    for (uint32_t i = 0; options->shards && i < options->shard_count; i++) {
        if (!options->shards[i] || !options->shards[i][0])
            return dp_fail(err, DP_ARGUMENT, "endpoint of shard %" PRIu32 " is empty", i);
    }
    if (options->window > WINDOW_MAX)
        return dp_fail(err, DP_ARGUMENT, "window of %" PRIu32 " requests: at most %u are allowed",
                       options->window, WINDOW_MAX);
    return DP_OK;
}

static enum dp_status draw_session(uint64_t *session, struct dp_error *err)
{
    while (*session == 0) {
        if (getrandom(session, sizeof *session, 0) != (ssize_t)sizeof *session)
            return dp_fail(err, DP_IO, "cannot create a session number: getrandom failed");
    }
    return DP_OK;
}

static enum dp_status fill(struct dp_client *client, const struct dp_client_options *options,
                           uint64_t session, struct dp_error *err)
{
    struct dp_client_session *s = &client->session;
    uint32_t retry_ms = options->retry_ms ? options->retry_ms : DEFAULT_RETRY_MS;
    enum dp_status st = draw_session(&session, err);
    if (st != DP_OK)
        return st;
    s->id = session;
    s->random = session;
    s->cluster = options->cluster;
    s->wants = options->generation;
    s->retry_ns = retry_ms * UINT64_C(1000000);
    s->shards = options->shard_count;
    (void)snprintf(s->name, sizeof s->name, "%s", options->name ? options->name : "client");
    client->has_control = options->control != NULL;
    client->gives_up = options->gives_up;
    client->gives_up_context = options->gives_up_context;
    client->type = options->bf16_values ? DP_BF16 : DP_F32;
    client->link = calloc(options->shard_count + 1, sizeof *client->link);
    client->draft = calloc(options->shard_count + 1, sizeof(struct dp_shard_request *));
    if (!client->link || !client->draft)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " shards", options->shard_count);
    client->shards = options->shard_count;
    for (uint32_t i = 0; i <= client->shards && st == DP_OK; i++) {
        bool control = i == client->shards;
        const char *endpoint = control ? options->control : options->shards ? options->shards[i] : NULL;
        st = dp_link_open(&client->link[i], s, i, control, endpoint,
                          options->window ? options->window : DEFAULT_WINDOW, err);
    }
    if (st == DP_OK && !options->shards && options->shard_count > 0)
        st = dp_client_addresses_begin(client, options->servers, err);
    client->control_from = options->control_from;
    return st == DP_OK ? dp_keys_new(&client->keys, err) : st;
}

/* Until every shard has welcomed us. */
static enum dp_status shake_hands(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err)
{
    uint64_t until_ns = dp_client_deadline(client, timeout_ms);
    for (;;) {
        const struct dp_link *missing = NULL;
        dp_client_progress(client);
        for (uint32_t i = 0; i < client->shards; i++) {
            const struct dp_link *link = &client->link[i];
            if (link->state == DP_LINK_REFUSED)
                return dp_fail(err, link->refused.status, "%s", link->refused.text);
            if (link->state != DP_LINK_OPEN && !missing)
                missing = link;
        }
        if (!missing && (client->shards == 0 || !dp_client_session_lacks_stream(&client->session)))
            return DP_OK;
        if (!missing) { /* a shard refuses the one that was given */
            missing = &client->link[0];
            dp_link_greet(&client->link[0], dp_awake_ns(&client->session.clock));
        }
        if (!dp_client_idle(client, until_ns))
            return dp_client_silence(client, missing, NULL, DP_UNAVAILABLE, "handshake", timeout_ms, err);
    }
}

enum dp_status dp_client_open_over(const struct dp_client_options *options,
                                   const struct dp_transport *transport, const struct dp_clock *clock,
                                   uint64_t session, struct dp_client **out, struct dp_error *err)
{
    uint32_t timeout_ms = options->open_timeout_ms ? options->open_timeout_ms : DEFAULT_OPEN_TIMEOUT_MS;
    struct dp_client *client = calloc(1, sizeof *client);
    *out = NULL;
    if (!client) {
        transport->close(transport->self);
        return dp_fail(err, DP_NOMEM, "no memory for a client");
    }
    client->session.transport = *transport;
    client->session.clock = dp_awake_over(clock, DP_CLIENT_LOOK_NS);
    enum dp_status st = check_options(options, err);
    if (st != DP_OK)
        goto done;
    st = fill(client, options, session, err);
    if (st != DP_OK)
        goto done;
    st = shake_hands(client, timeout_ms, err);
done:
    if (st != DP_OK)
        dp_client_close(&client);
    *out = client;
    return st != DP_OK ? dp_wrap(err, st, "opening the client") : DP_OK;
}

enum dp_status dp_client_open(const struct dp_client_options *options, struct dp_client **out,
                              struct dp_error *err)
{
    *out = NULL;
    enum dp_status st = check_options(options, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "opening the client");
    struct dp_transport transport;
    struct dp_clock clock = dp_clock_real();
    uint32_t n = options->shard_count + (options->control ? 1 : 0);
    const char **endpoints = calloc(n, sizeof *endpoints);
    if (!endpoints)
        return dp_fail(err, DP_NOMEM, "opening the client: no memory for %" PRIu32 " endpoints", n);
    for (uint32_t i = 0; i < options->shard_count; i++)
        endpoints[i] = options->shards ? options->shards[i] : "";
    if (options->control)
        endpoints[n - 1] = options->control;
    st = dp_transport_open(endpoints, n, &transport, err);
    free(endpoints);
    if (st != DP_OK)
        return dp_wrap(err, st, "opening the client");
    return dp_client_open_over(options, &transport, &clock, 0, out, err);
}
