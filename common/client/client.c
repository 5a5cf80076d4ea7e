#include "common/client/client_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS_NS       UINT64_C(1000000)
#define RECEIVE_MAX 1024u /* messages taken in before what is due is sent */

/* ---- calls ---- */

uint64_t dp_client_deadline(struct dp_client *client, uint32_t timeout_ms)
{
    return dp_awake_ns(&client->session.clock) + timeout_ms * MS_NS;
}

struct dp_call *dp_call_new(struct dp_client *client, uint32_t parts, uint32_t timeout_ms)
{
    struct dp_call *call = calloc(1, sizeof *call + parts * sizeof call->part[0]);
    if (!call)
        return NULL;
    call->id = ++client->last_call;
    call->deadline_ns = dp_client_deadline(client, timeout_ms);
    call->parts = parts;
    return call;
}

void dp_call_free(struct dp_call **call)
{
    if (*call) {
        dp_reply_clear(&(*call)->kept);
        dp_message_free(&(*call)->message);
    }
    free(*call);
    *call = NULL;
}

void dp_client_adopt(struct dp_client *client, struct dp_call *call)
{
    call->next = client->calls;
    client->calls = call;
}

static void forget_call(struct dp_client *client, const struct dp_call *call)
{
    for (uint32_t i = 0; i <= client->shards; i++)
        dp_link_forget(&client->link[i], call);
}

void dp_client_end(struct dp_client *client, struct dp_call *call)
{
    struct dp_call **at = &client->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    if (call->waiting > 0)
        forget_call(client, call);
    dp_call_free(&call);
}

/* ---- time and messages ---- */

static void take_messages(struct dp_client *client, uint64_t now_ns)
{
    struct dp_transport *t = &client->session.transport;
    for (uint32_t i = 0; i < RECEIVE_MAX; i++) {
        uint32_t server = 0;
        struct dp_message *message = NULL;
        struct dp_reply reply;
        struct dp_error err = {0};
        if (!t->receive(t->self, &server, &message))
            return;
        if (server > client->shards || (server == client->shards && !client->has_control)) {
            dp_message_free(&message);
            continue;
        }
        if (dp_reply_decode(message, &reply, &err) != DP_OK)
            dp_link_garbled(&client->link[server], &reply, &err);
        dp_link_take(&client->link[server], &reply, &message, now_ns);
        dp_reply_clear(&reply);
        dp_message_free(&message);
    }
}

static void take_in(struct dp_client *client, uint64_t now_ns)
{
    struct dp_transport *t = &client->session.transport;
    uint32_t server = 0;
    take_messages(client, now_ns);
    while (t->broke && t->broke(t->self, &server))
        if (server < client->shards || (server == client->shards && client->has_control))
            dp_link_broke(&client->link[server], now_ns);
}

static void pump(struct dp_client *client, uint64_t now_ns)
{
    for (uint32_t i = 0; i <= client->shards; i++)
        dp_link_pump(&client->link[i], now_ns);
}

void dp_client_progress(struct dp_client *client)
{
    uint64_t now_ns = dp_awake_ns(&client->session.clock);
    take_in(client, now_ns);
    if (client->watch.look)
        client->watch.look(client, now_ns);
    if (client->addresses.look)
        client->addresses.look(client, now_ns);
    if (client->heartbeats.look)
        client->heartbeats.look(client, now_ns);
    pump(client, now_ns);
}

bool dp_client_idle(struct dp_client *client, uint64_t until_ns)
{
    uint64_t now_ns = dp_awake_ns(&client->session.clock);
    if (now_ns >= until_ns || (client->gives_up && client->gives_up(client->gives_up_context)))
        return false;
    uint64_t due = until_ns - now_ns > DP_CLIENT_LOOK_NS ? now_ns + DP_CLIENT_LOOK_NS : until_ns;
    for (uint32_t i = 0; i <= client->shards; i++) {
        uint64_t link_due = dp_link_due_ns(&client->link[i]);
        due = link_due < due ? link_due : due;
    }
    uint64_t ms = due > now_ns ? (due - now_ns + MS_NS - 1) / MS_NS : 0;
    if (ms > 0)
        client->session.transport.wait(client->session.transport.self, (uint32_t)ms);
    return true;
}

/* ---- issuing and waiting ---- */

static struct dp_link *link_without_room(const struct dp_client *client)
{
    for (uint32_t i = 0; i < client->shards; i++) {
        if (client->draft[i] && !dp_link_has_room(&client->link[i], client->draft[i]->request.kind))
            return &client->link[i];
    }
    return NULL;
}

enum dp_status dp_client_await_room(struct dp_client *client, const char *what, uint32_t timeout_ms,
                                    struct dp_error *err)
{
    uint64_t until_ns = dp_client_deadline(client, timeout_ms);
    const struct dp_link *full;
    char text[96];
    if (client->shards == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: this client was opened without shards", what);
    dp_client_progress(client);
    while ((full = link_without_room(client))) {
        if (!dp_client_idle(client, until_ns)) {
            (void)snprintf(text, sizeof text, "%s: window of %" PRIu32 " requests is full", what,
                           full->window);
            return dp_link_silence(full, NULL, DP_TIMEOUT, text, timeout_ms, err);
        }
        dp_client_progress(client);
    }
    return DP_OK;
}

const struct dp_link *dp_client_pushing(const struct dp_client *client)
{
    for (uint32_t i = 0; i < client->shards; i++) {
        for (const struct dp_shard_request *p = client->link[i].first; p; p = p->next) {
            if (p->request.kind == DP_REQUEST_PUSH)
                return &client->link[i];
        }
    }
    return NULL;
}

enum dp_status dp_client_await_pushes(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err)
{
    uint64_t until_ns = dp_client_deadline(client, timeout_ms);
    const struct dp_link *pushing;
    dp_client_progress(client);
    while ((pushing = dp_client_pushing(client))) {
        if (!dp_client_idle(client, until_ns))
            return dp_link_silence(pushing, NULL, DP_TIMEOUT, "push: the one of the step before", timeout_ms,
                                   err);
        dp_client_progress(client);
    }
    return DP_OK;
}

void dp_client_issue(struct dp_client *client, struct dp_call **call, struct dp_ticket *out)
{
    struct dp_call *c = *call;
    *call = NULL;
    out->id = c->id;
    dp_client_adopt(client, c);
    for (uint32_t i = 0; i < client->shards; i++) {
        if (!client->draft[i])
            continue;
        client->draft[i]->call = c;
        dp_link_put(&client->link[i], &client->draft[i]);
    }
    pump(client, dp_awake_ns(&client->session.clock));
}

void dp_client_drop_draft(struct dp_client *client)
{
    for (uint32_t i = 0; i < client->shards; i++)
        dp_shard_request_free(&client->draft[i]);
}

enum dp_status dp_client_silence(const struct dp_client *client, const struct dp_link *link,
                                 const struct dp_call *call, enum dp_status why, const char *what,
                                 uint32_t timeout_ms, struct dp_error *err)
{
    const struct dp_link *control = &client->link[client->shards];
    if (!link->control && link->endpoint)
        return dp_link_silence(link, call, why, what, timeout_ms, err);
    if (!link->control && control->heard_ns != 0 && control->breaks == 0)
        return dp_fail(
            err, why,
            "%s: the server of shard %" PRIu32
            " has not given its address to the first one, at %s, in %" PRIu32 " ms: is it running?%s",
            what, link->server, control->endpoint, timeout_ms,
            client->addresses.of[link->server / (client->shards / client->addresses.servers)].trouble);
    enum dp_status st = dp_link_silence(control, NULL, why, what, timeout_ms, err);
    return client->control_from ? dp_wrap(err, st, "the first server, of %s", client->control_from) : st;
}

static enum dp_status time_is_over(const struct dp_client *client, const struct dp_call *call,
                                   const char *what, uint32_t timeout_ms, struct dp_error *err)
{
    const struct dp_link *named = NULL;
    for (uint32_t i = 0; i <= client->shards; i++) {
        const struct dp_link *link = &client->link[i];
        /* One that holds it obeys a rule: one that does not answer comes first. */
        if (dp_link_carries(link, call) &&
            (!named || (dp_link_holds(named, call) && !dp_link_holds(link, call))))
            named = link;
    }
    if (!named)
        return dp_fail(err, DP_INTERNAL, "%s: waits for no server", what);
    return dp_client_silence(client, named, call, DP_TIMEOUT, what, timeout_ms, err);
}

enum dp_status dp_client_await(struct dp_client *client, struct dp_call *call, const char *what,
                               uint32_t timeout_ms, struct dp_error *err)
{
    uint64_t until_ns = dp_client_deadline(client, timeout_ms);
    if (call->deadline_ns < until_ns)
        call->deadline_ns = until_ns;
    dp_client_progress(client);
    while (!dp_call_done(call)) {
        if (call->member && client->session.replaced.status != DP_OK)
            return dp_client_session_check_place(&client->session, what, err);
        if (!dp_client_idle(client, until_ns))
            return time_is_over(client, call, what, timeout_ms, err);
        dp_client_progress(client);
    }
    if (call->err.status == DP_OK)
        return DP_OK;
    return dp_fail(err, call->err.status, "%s: %s", what, call->err.text);
}

static struct dp_call *find_call(struct dp_client *client, const struct dp_ticket *ticket)
{
    struct dp_call *call = client->calls;
    while (call && call->id != ticket->id)
        call = call->next;
    return call;
}

enum dp_status dp_client_finish(struct dp_client *client, struct dp_ticket *ticket, const char *what,
                                uint32_t timeout_ms, struct dp_error *err)
{
    struct dp_call *call = find_call(client, ticket);
    DP_ASSERT(call);
    enum dp_status st = dp_client_await(client, call, what, timeout_ms, err);
    dp_client_end(client, call);
    ticket->id = 0;
    return st;
}

enum dp_status dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                              struct dp_outcome *outcome, struct dp_error *err)
{
    struct dp_call *call = find_call(client, ticket);
    if (!call)
        return dp_fail(err, DP_ARGUMENT,
                       "no request is under way for this ticket: it was used up by an earlier wait");
    enum dp_status st = dp_client_await(client, call, "wait", timeout_ms, err);
    if (st == DP_TIMEOUT && !dp_call_done(call))
        return st;
    if (outcome)
        *outcome = call->outcome;
    dp_client_end(client, call);
    ticket->id = 0;
    return st;
}

enum dp_status dp_client_await_stream(struct dp_client *client, const char *what, uint32_t timeout_ms,
                                      struct dp_error *err)
{
    uint64_t until_ns = dp_client_deadline(client, timeout_ms);
    struct dp_link *link = &client->link[0];
    /* An earlier greeting was refused: what refused it may have passed. */
    if (dp_client_session_lacks_stream(&client->session) && link->state == DP_LINK_REFUSED)
        dp_link_greet(link, dp_awake_ns(&client->session.clock));
    while (dp_client_session_lacks_stream(&client->session)) {
        if (link->state == DP_LINK_REFUSED)
            return dp_fail(err, link->refused.status, "%s: %s", what, link->refused.text);
        if (link->state == DP_LINK_OPEN)
            dp_link_greet(link, dp_awake_ns(&client->session.clock));
        if (!dp_client_idle(client, until_ns))
            return dp_link_silence(link, NULL, DP_TIMEOUT, what, timeout_ms, err);
        dp_client_progress(client);
    }
    return DP_OK;
}

/* ---- close ---- */

void dp_client_close(struct dp_client **client)
{
    struct dp_client *c = *client;
    *client = NULL;
    if (!c)
        return;
    for (uint32_t i = 0; c->link && i <= c->shards; i++)
        dp_link_close(&c->link[i]);
    /* After the links: their shard requests point at calls and blocks; the transport lets go of its frames last. */
    c->session.transport.close(c->session.transport.self);
    while (c->calls) {
        struct dp_call *call = c->calls;
        c->calls = call->next;
        dp_call_free(&call);
    }
    while (c->tables) {
        struct dp_client_table *table = c->tables;
        c->tables = table->next;
        free(table);
    }
    dp_keys_free(&c->keys);
    dp_block_drop(&c->session.view);
    free(c->addresses.of);
    free(c->draft);
    free(c->link);
    free(c);
}

uint64_t dp_client_too_old(const struct dp_client *client)
{
    return client->session.too_old;
}

uint32_t dp_client_last_run(const struct dp_client *client)
{
    return client->session.last_run;
}

void dp_client_generation(const struct dp_client *client, uint64_t *generation, uint64_t *history)
{
    *generation = client->session.generation;
    *history = client->session.history;
}

double dp_client_clock(const struct dp_client *client)
{
    const struct dp_client_session *s = client ? &client->session : NULL;
    const struct dp_clock wall = dp_clock_wall();
    if (!s || s->clock_ms == 0)
        return (double)dp_clock_ns(&wall) / 1e9;
    return (double)s->clock_ms / 1e3 + (double)(dp_clock_ns(&s->clock.clock) - s->clock_ns) / 1e9;
}

uint32_t dp_client_shards(const struct dp_client *client)
{
    return client->shards;
}
