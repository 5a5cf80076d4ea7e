/* Link replies: handles incoming welcomes, answers, and messages that a server sends in place of an answer.
 * */
#include "common/client/link_inner.h"
#include "common/client/welcome.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- shard requests that end ---- */

/* Ends a shard request that is out of its list already. why NULL: answered by the reply. */
static void finish(struct dp_link *link, struct dp_shard_request *to_shard, struct dp_reply *reply,
                   struct dp_message **message, const struct dp_error *why)
{
    struct dp_call *call = to_shard->call;
    char name[256];
    if (call) {
        struct dp_error err = {0};
        enum dp_status st = DP_OK;
        if (why) {
            err = *why;
            st = why->status;
        } else if (reply->kind != to_shard->answer) {
            st = dp_fail(&err, DP_INVALID,
                         "answer of kind %d instead of %d: is it a Downpour server of this version?",
                         (int)reply->kind, (int)to_shard->answer);
        } else if (call->take) {
            st = call->take(call, link->server, to_shard, reply, message, &err);
        }
        call->waiting--;
        if (st != DP_OK && call->err.status == DP_OK) {
            dp_link_name(link, name, sizeof name);
            (void)dp_wrap(&err, st, "%s", name);
            call->err = err;
        }
    }
    dp_shard_request_free(&to_shard);
}

static void take_out(struct dp_link *link, struct dp_shard_request *before, struct dp_shard_request *to_shard)
{
    if (link->cursor == to_shard)
        link->cursor = to_shard->next;
    if (link->last == to_shard)
        link->last = before;
    if (before)
        before->next = to_shard->next;
    else
        link->first = to_shard->next;
    to_shard->next = NULL;
    link->under_way--;
    link->held -= to_shard->held;
}

static void refuse_all(struct dp_link *link, const struct dp_error *why)
{
    link->state = DP_LINK_REFUSED;
    link->refused = *why;
    while (link->first) {
        struct dp_shard_request *to_shard = link->first;
        take_out(link, NULL, to_shard);
        finish(link, to_shard, NULL, NULL, why);
    }
}

/* ---- what a server says ---- */

static void remember(struct dp_link *link, const struct dp_reply *reply)
{
    if (reply->status == DP_ORDER && link->reason[0])
        return; /* it follows from what the shard said of the request before: that is the cause */
    bool is_disk = reply->wait.reason == DP_WAIT_DISK; /* dp_link_silence puts it first, as a sentence */
    (void)snprintf(link->reason, sizeof link->reason, "%s%s%.300s",
                   is_disk ? "" : dp_status_name((int)reply->status), is_disk ? "" : ": ",
                   reply->reason[0] ? reply->reason : dp_status_text((int)reply->status));
    link->wait = reply->wait;
}

void dp_link_garbled(struct dp_link *link, struct dp_reply *reply, const struct dp_error *why)
{
    reply->kind = DP_REPLY_NONE;
    reply->status = why->status;
    dp_link_forget_reason(link);
    (void)snprintf(reply->reason, sizeof reply->reason, "its answer cannot be read: %.400s", why->text);
    (void)snprintf(link->reason, sizeof link->reason, "something that is no reply: %.150s", why->text);
}

static bool waits_and_tries_again(enum dp_status status)
{
    return status == DP_AGAIN || status == DP_STOPPING || status == DP_TIMEOUT || status == DP_UNAVAILABLE;
}

static void refuse_greeting(struct dp_link *link, struct dp_error *why)
{
    char name[256];
    dp_link_name(link, name, sizeof name);
    /* The shard requests' calls get the name from finish. */
    refuse_all(link, why);
    (void)dp_wrap(&link->refused, why->status, "%s", name);
}

void dp_link_put_view(struct dp_link *link)
{
    struct dp_client_session *session = link->session;
    for (const struct dp_shard_request *p = link->loose; p; p = p->next) {
        if (p->request.kind == DP_REQUEST_VIEW_PUT && p->piece[0].block == session->view)
            return;
    }
    struct dp_shard_request *to_shard =
        session->view ? dp_shard_request_new(DP_REQUEST_VIEW_PUT, DP_REPLY_VIEW) : NULL;
    if (!to_shard)
        return;
    to_shard->loose = true;
    dp_shard_request_add(to_shard, session->view, 0, session->view_bytes);
    dp_link_put(link, &to_shard);
}

/* Whether the server refused because the request could not name its generation, and that is known now: to be sent
 * again. */
static bool learns_generation(struct dp_link *link, const struct dp_reply *reply, bool asked)
{
    struct dp_error err = {0};
    return asked && reply->status == DP_GENERATION && reply->cluster == link->session->cluster &&
           reply->generation != 0 && dp_link_learn_generation(link, reply, &err) == DP_OK;
}

/* A greeting that comes while the owner is busy is read late: that which took the least time is best. */
static void take_clock(const struct dp_link *link, const struct dp_reply *reply, uint64_t now_ns)
{
    struct dp_client_session *s = link->session;
    uint64_t took_ns = now_ns - link->hello_since_ns;
    if (reply->clock_ms == 0 || (s->clock_ms > 0 && link->boot == reply->boot && took_ns >= s->clock_took_ns))
        return;
    s->clock_ms = reply->clock_ms;
    s->clock_ns = dp_clock_ns(&s->clock.clock);
    s->clock_took_ns = took_ns;
}

static void take_welcome(struct dp_link *link, const struct dp_reply *reply, uint64_t now_ns)
{
    struct dp_error err = {0};
    if (waits_and_tries_again(reply->status)) {
        remember(link, reply);
        link->hello_due_ns = now_ns + dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
        return;
    }
    /* One of an earlier version takes no greeting without it. */
    if (learns_generation(link, reply, link->hello_asks)) {
        link->hello_id = 0;
        link->hello_due_ns = now_ns;
        return;
    }
    if (dp_link_check_welcome(link, reply, &err) != DP_OK) {
        refuse_greeting(link, &err);
        return;
    }
    if (reply->window > 0 && reply->window < link->window)
        link->window = reply->window;
    if (link->boot != 0 && link->boot != reply->boot) {
        /* It may have lost the newest that it had, and what is sent again names an older one. */
        dp_link_put_view(link);
    }
    take_clock(link, reply, now_ns);
    link->boot = reply->boot;
    link->state = DP_LINK_OPEN;
    link->hello_id = 0;
    dp_link_forget_reason(link);
    link->hold_ns = now_ns;
}

/* Everything from this shard request on is to be sent again, not before hold. Returns whether that was news. */
static bool rewind_to(struct dp_link *link, struct dp_shard_request *to_shard, uint64_t hold_ns)
{
    if (link->cursor && link->cursor->request.sequence <= to_shard->request.sequence)
        return false;
    link->cursor = to_shard;
    link->hold_ns = dp_link_later(link->hold_ns, hold_ns);
    link->rewound_ns = hold_ns;
    link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
    return true;
}

static void take_order(struct dp_link *link, const struct dp_shard_request *to_shard, uint64_t expected,
                       uint64_t now_ns)
{
    struct dp_shard_request *from = link->first;
    while (from && from->request.sequence < expected)
        from = from->next;
    if (!from || from->request.sequence != expected || expected > to_shard->request.sequence) {
        dp_link_greet(link, now_ns); /* shard and client count from different numbers: greet again */
        return;
    }
    /* One loss is reported by each later request: those that come after the first rewinding wait for the
     * pause, in which the answers to what was sent again arrive. */
    (void)rewind_to(link, from,
                    dp_link_later(now_ns, link->rewound_ns ? link->rewound_ns + link->pause_ns : 0));
}

static void take_status(struct dp_link *link, struct dp_shard_request *to_shard, const struct dp_reply *reply,
                        uint64_t now_ns)
{
    remember(link, reply);
    if (reply->wait.reason == DP_WAIT_VIEW)
        dp_link_put_view(link);
    if (to_shard->loose) {
        to_shard->due_ns = now_ns + dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
        return;
    }
    if (link->state != DP_LINK_OPEN)
        return;
    if (reply->status == DP_SESSION)
        dp_link_greet(link, now_ns);
    else if (reply->status == DP_ORDER)
        take_order(link, to_shard, reply->sequence, now_ns);
    else
        (void)rewind_to(link, to_shard, now_ns + dp_client_session_jitter(link->session, link->pause_ns));
}

/* It has used up its number, and stays at the shard until others have come as far: a sign of life, no answer. */
static void take_held(struct dp_link *link, struct dp_shard_request *to_shard, const struct dp_reply *reply,
                      uint64_t now_ns)
{
    link->held += !to_shard->held;
    to_shard->held = true;
    to_shard->held_ns = now_ns;
    link->hold.heard_ns = now_ns;
    link->hold.wait = reply->wait;
    (void)snprintf(link->hold.reason, sizeof link->hold.reason, "%.300s",
                   reply->reason[0] ? reply->reason : dp_status_text((int)reply->status));
}

static struct dp_shard_request *find(struct dp_link *link, uint64_t id, struct dp_shard_request **before)
{
    *before = NULL;
    for (struct dp_shard_request *p = link->first; p; *before = p, p = p->next) {
        if (p->request.id == id)
            return p;
    }
    *before = NULL;
    for (struct dp_shard_request *p = link->loose; p; *before = p, p = p->next) {
        if (p->request.id == id)
            return p;
    }
    return NULL;
}

/* An answer to what was sent after the oldest: so the oldest has arrived, and is being worked on, or it or its
 * answer is lost. */
static void note_overtaking(struct dp_link *link, const struct dp_shard_request *answered, uint64_t now_ns)
{
    struct dp_shard_request *oldest = dp_link_oldest(link);
    if (oldest && answered != oldest && oldest->sends > 0 && oldest->overtaken_ns == 0 &&
        answered->sent_ns >= oldest->sent_ns)
        oldest->overtaken_ns = now_ns;
}

/* The own stream: the next push takes another. */
static void take_too_old(struct dp_client_session *session, const struct dp_shard_request *to_shard,
                         const struct dp_reply *reply)
{
    session->too_old = reply->too_old;
    if (to_shard->request.kind == DP_REQUEST_PUSH && to_shard->request.stream == session->stream)
        dp_client_session_refuse_streams(session, dp_link_later(reply->too_old, session->stream));
}

void dp_link_take(struct dp_link *link, struct dp_reply *reply, struct dp_message **message, uint64_t now_ns)
{
    struct dp_shard_request *before;
    if (reply->session != link->session->id)
        return;
    /* A shard that holds one request says so all the time: that says nothing about the others. */
    if (reply->status != DP_HELD) {
        link->heard_ns = now_ns;
        link->silences = 0;
    }
    if (link->session->addressed && !link->control) {
        bool other = reply->cluster != link->session->cluster;
        link->misplaced = other || reply->wait.reason == DP_WAIT_PLACE;
        if (other)
            return;
    }
    if (link->state == DP_LINK_GREETING && link->hello_id != 0 && reply->id == link->hello_id) {
        take_welcome(link, reply, now_ns);
        return;
    }
    struct dp_shard_request *to_shard = find(link, reply->id, &before);
    if (!to_shard || to_shard->sends == 0)
        return;
    if (reply->status == DP_HELD && !to_shard->loose) {
        take_held(link, to_shard, reply, now_ns);
        return;
    }
    if (to_shard->loose && learns_generation(link, reply, true)) {
        /* Else it refuses an earlier copy, sent before the generation was known. */
        if (to_shard->request.generation == 0)
            to_shard->due_ns = now_ns;
        return;
    }
    note_overtaking(link, to_shard, now_ns);
    if (waits_and_tries_again(reply->status) ||
        (!to_shard->loose && (reply->status == DP_SESSION || reply->status == DP_ORDER))) {
        take_status(link, to_shard, reply, now_ns);
        return;
    }
    if (!to_shard->loose ||
        to_shard->call) { /* the answer to a view without a call says nothing about calls that wait */
        dp_link_forget_reason(link);
        link->pause_ns = dp_link_first_pause(link);
        link->breaks = 0;
    }
    if (to_shard->loose) {
        *(before ? &before->next : &link->loose) = to_shard->next;
        to_shard->next = NULL;
    } else {
        take_out(link, before, to_shard);
    }
    struct dp_error why = {0};
    if (reply->status == DP_TOO_OLD)
        take_too_old(link->session, to_shard, reply);
    if (reply->status != DP_OK)
        (void)dp_fail(&why, reply->status, "%s",
                      reply->reason[0] ? reply->reason : dp_status_text((int)reply->status));
    if (reply->status == DP_REPLACED) {
        why.wait = reply->wait;
        dp_client_session_replace(link->session, &why);
    }
    finish(link, to_shard, reply, message, reply->status != DP_OK ? &why : NULL);
}
