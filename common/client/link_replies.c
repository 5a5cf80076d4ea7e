/* Link, what comes in: welcomes, answers, and what a server says instead of an answer. */
#include "common/client/link_inner.h"
#include "common/client/welcome.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- parcels that end ---- */

/* Ends a parcel that is out of its list already. why NULL: answered by the reply. */
static void finish(struct dp_link *link, struct dp_parcel *parcel, struct dp_reply *reply,
                   struct dp_message **message, const struct dp_error *why)
{
    struct dp_call *call = parcel->call;
    char name[256];
    if (call) {
        struct dp_error err = {0};
        enum dp_status st = DP_OK;
        if (why) {
            err = *why;
            st = why->status;
        } else if (reply->kind != parcel->answer) {
            st = dp_fail(&err, DP_INVALID,
                         "answer of kind %d instead of %d: is it a Downpour server of this version?",
                         (int)reply->kind, (int)parcel->answer);
        } else if (call->take) {
            st = call->take(call, link->server, parcel, reply, message, &err);
        }
        call->waiting--;
        if (st != DP_OK && call->err.status == DP_OK) {
            dp_link_name(link, name, sizeof name);
            (void)dp_wrap(&err, st, "%s", name);
            call->err = err;
        }
    }
    dp_parcel_free(&parcel);
}

static void take_out(struct dp_link *link, struct dp_parcel *before, struct dp_parcel *parcel)
{
    if (link->cursor == parcel)
        link->cursor = parcel->next;
    if (link->last == parcel)
        link->last = before;
    if (before)
        before->next = parcel->next;
    else
        link->first = parcel->next;
    parcel->next = NULL;
    link->under_way--;
    link->held -= parcel->held;
}

static void refuse_all(struct dp_link *link, const struct dp_error *why)
{
    link->state = DP_LINK_REFUSED;
    link->refused = *why;
    while (link->first) {
        struct dp_parcel *parcel = link->first;
        take_out(link, NULL, parcel);
        finish(link, parcel, NULL, NULL, why);
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
    /* The parcels' calls get the name from finish. */
    refuse_all(link, why);
    (void)dp_wrap(&link->refused, why->status, "%s", name);
}

void dp_link_put_view(struct dp_link *link)
{
    struct dp_client_session *session = link->session;
    for (const struct dp_parcel *p = link->loose; p; p = p->next) {
        if (p->request.kind == DP_REQUEST_VIEW_PUT && p->piece[0].block == session->view)
            return;
    }
    struct dp_parcel *parcel = session->view ? dp_parcel_new(DP_REQUEST_VIEW_PUT, DP_REPLY_VIEW) : NULL;
    if (!parcel)
        return;
    parcel->loose = true;
    dp_parcel_add(parcel, session->view, 0, session->view_bytes);
    dp_link_put(link, &parcel);
}

/* Whether the server refused because the request could not name its generation, and that is known now: to be sent
 * again. */
static bool tells_generation(struct dp_link *link, const struct dp_reply *reply, bool asked)
{
    struct dp_error err = {0};
    return asked && reply->status == DP_GENERATION && reply->cluster == link->session->cluster &&
           reply->generation != 0 && dp_link_learn_generation(link, reply, &err) == DP_OK;
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
    if (tells_generation(link, reply,
                         link->hello_asks)) { /* one of an earlier version takes no greeting without it */
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
        link->restarts++;
        /* It may have lost the newest that it had, and what is sent again names an older one. */
        dp_link_put_view(link);
    }
    link->boot = reply->boot;
    link->state = DP_LINK_OPEN;
    link->hello_id = 0;
    dp_link_forget_reason(link);
    link->hold_ns = now_ns;
}

/* Everything from this parcel on is to be sent again, not before hold. Returns whether that was news. */
static bool rewind_to(struct dp_link *link, struct dp_parcel *parcel, uint64_t hold_ns)
{
    if (link->cursor && link->cursor->request.sequence <= parcel->request.sequence)
        return false;
    link->cursor = parcel;
    link->hold_ns = dp_link_later(link->hold_ns, hold_ns);
    link->rewound_ns = hold_ns;
    link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
    return true;
}

static void take_order(struct dp_link *link, const struct dp_parcel *parcel, uint64_t expected,
                       uint64_t now_ns)
{
    struct dp_parcel *from = link->first;
    while (from && from->request.sequence < expected)
        from = from->next;
    if (!from || from->request.sequence != expected || expected > parcel->request.sequence) {
        dp_link_greet(link, now_ns); /* the shard and we do not mean the same numbers: agree anew */
        return;
    }
    /* One loss is reported by each request behind it: those that come after the first rewinding wait for the
     * pause, in which the answers to what was sent again arrive. */
    (void)rewind_to(link, from,
                    dp_link_later(now_ns, link->rewound_ns ? link->rewound_ns + link->pause_ns : 0));
}

static void take_status(struct dp_link *link, struct dp_parcel *parcel, const struct dp_reply *reply,
                        uint64_t now_ns)
{
    remember(link, reply);
    if (reply->wait.reason == DP_WAIT_VIEW)
        dp_link_put_view(link);
    if (parcel->loose) {
        parcel->due_ns = now_ns + dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
        return;
    }
    if (link->state != DP_LINK_OPEN)
        return;
    if (reply->status == DP_SESSION)
        dp_link_greet(link, now_ns);
    else if (reply->status == DP_ORDER)
        take_order(link, parcel, reply->sequence, now_ns);
    else
        (void)rewind_to(link, parcel, now_ns + dp_client_session_jitter(link->session, link->pause_ns));
}

/* It has used up its number, and stays at the shard until others have come as far: a sign of life, no answer. */
static void take_held(struct dp_link *link, struct dp_parcel *parcel, const struct dp_reply *reply,
                      uint64_t now_ns)
{
    link->held += !parcel->held;
    parcel->held = true;
    parcel->held_ns = now_ns;
    link->hold.heard_ns = now_ns;
    link->hold.wait = reply->wait;
    (void)snprintf(link->hold.reason, sizeof link->hold.reason, "%.300s",
                   reply->reason[0] ? reply->reason : dp_status_text((int)reply->status));
}

static struct dp_parcel *find(struct dp_link *link, uint64_t id, struct dp_parcel **before)
{
    *before = NULL;
    for (struct dp_parcel *p = link->first; p; *before = p, p = p->next) {
        if (p->request.id == id)
            return p;
    }
    *before = NULL;
    for (struct dp_parcel *p = link->loose; p; *before = p, p = p->next) {
        if (p->request.id == id)
            return p;
    }
    return NULL;
}

/* An answer to what was sent after the oldest: so the oldest has arrived, and is being worked on, or it or its
 * answer is lost. */
static void note_overtaking(struct dp_link *link, const struct dp_parcel *answered, uint64_t now_ns)
{
    struct dp_parcel *oldest = dp_link_oldest(link);
    if (oldest && answered != oldest && oldest->sends > 0 && oldest->overtaken_ns == 0 &&
        answered->sent_ns >= oldest->sent_ns)
        oldest->overtaken_ns = now_ns;
}

/* The own stream: the next push takes another. */
static void take_too_old(struct dp_client_session *session, const struct dp_parcel *parcel,
                         const struct dp_reply *reply)
{
    session->too_old = reply->too_old;
    if (parcel->request.kind == DP_REQUEST_PUSH && parcel->request.stream == session->stream)
        dp_client_session_refuse_streams(session, dp_link_later(reply->too_old, session->stream));
}

void dp_link_take(struct dp_link *link, struct dp_reply *reply, struct dp_message **message, uint64_t now_ns)
{
    struct dp_parcel *before;
    if (reply->session != link->session->id) {
        link->ignored++;
        return;
    }
    /* A shard that holds one request says so all the time: that tells nothing of the others. */
    if (reply->status != DP_HELD) {
        link->heard_ns = now_ns;
        link->silences = 0;
    }
    if (link->state == DP_LINK_GREETING && link->hello_id != 0 && reply->id == link->hello_id) {
        take_welcome(link, reply, now_ns);
        return;
    }
    struct dp_parcel *parcel = find(link, reply->id, &before);
    if (!parcel || parcel->sends == 0) {
        link->ignored++;
        return;
    }
    if (reply->status == DP_HELD && !parcel->loose) {
        take_held(link, parcel, reply, now_ns);
        return;
    }
    if (parcel->loose && tells_generation(link, reply, true)) {
        /* Else it refuses an earlier copy, sent before the generation was known. */
        if (parcel->request.generation == 0)
            parcel->due_ns = now_ns;
        return;
    }
    note_overtaking(link, parcel, now_ns);
    if (waits_and_tries_again(reply->status) ||
        (!parcel->loose && (reply->status == DP_SESSION || reply->status == DP_ORDER))) {
        take_status(link, parcel, reply, now_ns);
        return;
    }
    if (!parcel->loose || parcel->call) { /* a view that nobody waits for tells nothing of what does wait */
        dp_link_forget_reason(link);
        link->pause_ns = dp_link_first_pause(link);
        link->breaks = 0;
    }
    if (parcel->loose) {
        *(before ? &before->next : &link->loose) = parcel->next;
        parcel->next = NULL;
    } else {
        take_out(link, before, parcel);
    }
    struct dp_error why = {0};
    if (reply->status == DP_TOO_OLD)
        take_too_old(link->session, parcel, reply);
    if (reply->status != DP_OK)
        (void)dp_fail(&why, reply->status, "%s",
                      reply->reason[0] ? reply->reason : dp_status_text((int)reply->status));
    if (reply->status == DP_REPLACED) {
        why.wait = reply->wait;
        dp_client_session_replace(link->session, &why);
    }
    finish(link, parcel, reply, message, reply->status != DP_OK ? &why : NULL);
}
