#include "common/client/link.h"

#include "common/client/welcome.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS            UINT64_C(1000000)
#define SILENCES_MAX     3u /* the wait for an answer doubles up to 8 times */
#define OVERTAKEN_FACTOR 8u /* waits after which an overtaken request is sent again, whatever else is heard */
/* Transfers slower than this are taken for lost ones: about a tenth of what a gigabit carries. */
#define SLOWEST_BYTES_S   (12u << 20)
#define FIRST_PAUSE_SHARE 64u

static uint64_t first_pause(const struct dp_link *link)
{
    uint64_t pause = link->session->retry_ns / FIRST_PAUSE_SHARE;
    return pause < MS_NS ? MS_NS : pause;
}

/* What the largest transfer under way may take. Answers come in order, or nearly: since the last one, one
 * request and its answer at most had to pass, whatever waits behind them. */
static uint64_t transfer_ns(const struct dp_link *link)
{
    return link->largest * 1000 / SLOWEST_BYTES_S * MS_NS;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum dp_status dp_link_open(struct dp_link *link, struct dp_client_session *session, uint32_t server,
                            bool control, const char *endpoint, uint32_t window, struct dp_error *err)
{
    size_t size = strlen(endpoint) + 1;
    *link = (struct dp_link){.session = session,
                             .server = server,
                             .control = control,
                             .endpoint = malloc(size),
                             .state = DP_LINK_GREETING,
                             .window = window,
                             .next_sequence = 1};
    if (!link->endpoint)
        return dp_fail(err, DP_NOMEM, "no memory for an endpoint");
    memcpy(link->endpoint, endpoint, size);
    link->pause_ns = first_pause(link);
    return DP_OK;
}

static void drop_all(struct dp_parcel **list)
{
    while (*list) {
        struct dp_parcel *parcel = *list;
        *list = parcel->next;
        dp_parcel_free(&parcel);
    }
}

void dp_link_close(struct dp_link *link)
{
    drop_all(&link->first);
    drop_all(&link->loose);
    free(link->endpoint);
    *link = (struct dp_link){0};
}

void dp_link_name(const struct dp_link *link, char *text, size_t size)
{
    if (link->control)
        (void)snprintf(text, size, "control at %s", link->endpoint);
    else
        (void)snprintf(text, size, "shard %" PRIu32 " at %s", link->server, link->endpoint);
}

/* What a server that answers no more said last is no sign of life: it is not handed on for ever. */
static struct dp_wait wait_heard(const struct dp_link *link)
{
    uint64_t fresh_ns = (link->session->retry_ns << SILENCES_MAX) + transfer_ns(link);
    uint64_t now_ns = dp_awake_ns(&link->session->clock);
    return now_ns - link->heard_ns <= fresh_ns ? link->wait : (struct dp_wait){0};
}

/* Until the next answer. */
static void forget_reason(struct dp_link *link)
{
    link->reason[0] = '\0';
    link->wait = (struct dp_wait){0};
}

enum dp_status dp_link_silence(const struct dp_link *link, enum dp_status why, const char *what,
                               uint32_t timeout_ms, struct dp_error *err)
{
    char name[256];
    dp_link_name(link, name, sizeof name);
    /* A person can mend a disk: that comes first. */
    if (link->reason[0] && link->wait.reason == DP_WAIT_DISK)
        return dp_fail_wait(err, why, wait_heard(link), "%s (%s: %s did not finish it in %" PRIu32 " ms)",
                            link->reason, what, name, timeout_ms);
    if (link->reason[0])
        return dp_fail_wait(err, why, wait_heard(link),
                            "%s: %s did not finish it in %" PRIu32 " ms; it said: %s", what, name, timeout_ms,
                            link->reason);
    return dp_fail(err, why, "%s: no answer from %s in %" PRIu32 " ms: is its server running?", what, name,
                   timeout_ms);
}

/* ---- what is under way ---- */

static uint64_t oldest_sequence(const struct dp_link *link)
{
    return link->first ? link->first->request.sequence : link->next_sequence;
}

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

bool dp_link_carries(const struct dp_link *link, const struct dp_call *call)
{
    for (const struct dp_parcel *p = link->first; p; p = p->next) {
        if (p->call == call)
            return true;
    }
    for (const struct dp_parcel *p = link->loose; p; p = p->next) {
        if (p->call == call)
            return true;
    }
    return false;
}

void dp_link_forget(struct dp_link *link, const struct dp_call *call)
{
    for (struct dp_parcel *p = link->first; p; p = p->next) {
        if (p->call == call)
            p->call = NULL;
    }
    /* Loose ones hold up nothing: they need not go on. */
    for (struct dp_parcel **at = &link->loose; *at;) {
        struct dp_parcel *p = *at;
        if (p->call != call) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        dp_parcel_free(&p);
    }
}

/* ---- sending ---- */

void dp_link_greet(struct dp_link *link, uint64_t now_ns)
{
    link->state = DP_LINK_GREETING;
    link->hello_id = 0;
    link->cursor = link->first;
    /* Not at once after the last time: a server that forgets us each time must not be asked in a loop. */
    link->hello_due_ns =
        link->rewound_ns
            ? later(now_ns, link->rewound_ns + dp_client_session_jitter(link->session, link->pause_ns))
            : now_ns;
    link->rewound_ns = link->hello_due_ns;
    link->pause_ns = sooner(link->pause_ns * 2, link->session->retry_ns);
}

void dp_link_put(struct dp_link *link, struct dp_parcel **parcel)
{
    struct dp_parcel *p = *parcel;
    *parcel = NULL;
    p->request.id = dp_client_session_next_id(link->session);
    p->request.cluster = link->session->cluster;
    p->request.generation = link->session->generation;
    p->request.session = link->session->id;
    if (p->call)
        p->call->waiting++;
    if (p->loose) {
        p->next = link->loose;
        link->loose = p;
        return;
    }
    DP_ASSERT(!link->control && dp_link_has_room(link));
    link->largest = later(link->first ? link->largest : 0, p->bytes);
    p->request.sequence = link->next_sequence++;
    p->next = NULL;
    if (link->last)
        link->last->next = p;
    else
        link->first = p;
    link->last = p;
    link->under_way++;
    if (!link->cursor)
        link->cursor = p;
    if (link->state == DP_LINK_REFUSED)
        dp_link_greet(link, dp_awake_ns(&link->session->clock));
}

/* A pull need not be answered when its owner has gone; until we would ask again it always has, as the owner
 * may wait anew. What changes rows or tables has no deadline of its own: were it dropped, the requests behind
 * it would overtake it. */
static uint32_t timeout_of(const struct dp_link *link, const struct dp_parcel *parcel, uint64_t now_ns)
{
    if (parcel->request.kind == DP_REQUEST_PUSH || parcel->request.kind == DP_REQUEST_CREATE_TABLE)
        return DP_TIMEOUT_MS_MAX;
    uint64_t deadline = parcel->call ? parcel->call->deadline_ns : 0;
    uint64_t least = OVERTAKEN_FACTOR * link->session->retry_ns + transfer_ns(link);
    uint64_t left = later(deadline > now_ns ? deadline - now_ns : 0, least) / MS_NS;
    return (uint32_t)later(sooner(left, DP_TIMEOUT_MS_MAX), 1);
}

static bool send_parcel(struct dp_link *link, struct dp_parcel *parcel, uint64_t now_ns)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    parcel->request.timeout_ms = timeout_of(link, parcel, now_ns);
    if (parcel->wait_until_ns)
        parcel->request.wait_ms = (uint32_t)sooner(
            parcel->wait_until_ns > now_ns ? (parcel->wait_until_ns - now_ns + MS_NS - 1) / MS_NS : 0,
            DP_TIMEOUT_MS_MAX);
    enum dp_status st = dp_parcel_message(parcel, &message, &err);
    if (st == DP_OK)
        st = link->session->transport.send(link->session->transport.self, link->server, &message, &err);
    if (st == DP_OK) {
        parcel->sends++;
        parcel->sent_ns = now_ns;
        parcel->overtaken_ns = 0;
    } else if (st != DP_AGAIN) {
        forget_reason(link);
        (void)snprintf(link->reason, sizeof link->reason, "sending failed: %.150s", err.text);
    }
    dp_message_free(&message);
    return st == DP_OK;
}

static void send_hello(struct dp_link *link, uint64_t now_ns)
{
    struct dp_client_session *session = link->session;
    struct dp_parcel *hello = dp_parcel_new(DP_REQUEST_HELLO, DP_REPLY_WELCOME);
    link->hello_due_ns = now_ns + MS_NS;
    if (!hello)
        return;
    bool wants = link->server == 0 && dp_client_session_lacks_stream(session);
    if (link->hello_id == 0 || link->hello_sequence != oldest_sequence(link) || link->hello_wants != wants) {
        link->hello_id = dp_client_session_next_id(session);
        link->hello_sequence = oldest_sequence(link);
        link->hello_wants = wants;
    }
    struct dp_request *r = &hello->request;
    r->id = link->hello_id;
    r->cluster = session->cluster;
    r->generation = session->generation;
    r->session = session->id;
    r->next_sequence = link->hello_sequence;
    r->want_stream = wants;
    r->stream_above = wants ? session->stream_above : 0;
    memcpy(r->client, session->name, sizeof r->client);
    if (send_parcel(link, hello, now_ns))
        link->hello_due_ns = now_ns + dp_client_session_jitter(session, session->retry_ns);
    dp_parcel_free(&hello);
}

/* When the oldest is sent again if nothing is heard. Any answer of the shard shows that it is at work, and that
 * bytes pass. */
static uint64_t silent_ns(const struct dp_link *link)
{
    const struct dp_parcel *oldest = link->first;
    if (!oldest || link->cursor == oldest)
        return UINT64_MAX;
    uint64_t wait = link->session->retry_ns;
    uint64_t quiet = later(link->heard_ns, oldest->sent_ns) + (wait << link->silences) + transfer_ns(link);
    if (oldest->overtaken_ns == 0)
        return quiet;
    /* Others' answers may go on for ever while this one's is lost. */
    return sooner(quiet, oldest->overtaken_ns + OVERTAKEN_FACTOR * wait + transfer_ns(link));
}

static uint64_t loose_wait_ns(const struct dp_link *link, const struct dp_parcel *parcel)
{
    uint32_t doublings = parcel->sends > 0 ? parcel->sends - 1 : 0;
    uint32_t most =
        parcel->wait_until_ns ? 1 : SILENCES_MAX; /* what waits at the server is silent by design */
    return link->session->retry_ns << (doublings < most ? doublings : most);
}

static void pump_loose(struct dp_link *link, uint64_t now_ns)
{
    for (struct dp_parcel *p = link->loose; p; p = p->next) {
        if (now_ns < p->due_ns)
            continue;
        p->due_ns = now_ns + (send_parcel(link, p, now_ns)
                                  ? dp_client_session_jitter(link->session, loose_wait_ns(link, p))
                                  : MS_NS);
    }
}

void dp_link_pump(struct dp_link *link, uint64_t now_ns)
{
    pump_loose(link, now_ns);
    if (link->control)
        return;
    if (link->state == DP_LINK_GREETING && now_ns >= link->hello_due_ns)
        send_hello(link, now_ns);
    if (link->state != DP_LINK_OPEN)
        return;
    if (now_ns >= silent_ns(link)) {
        link->cursor = link->first;
        link->rewound_ns = now_ns;
        if (link->silences < SILENCES_MAX)
            link->silences++;
    }
    while (link->cursor && now_ns >= link->hold_ns) {
        if (!send_parcel(link, link->cursor, now_ns)) {
            link->hold_ns = now_ns + MS_NS;
            break;
        }
        link->cursor = link->cursor->next;
    }
}

uint64_t dp_link_due_ns(const struct dp_link *link)
{
    uint64_t due = UINT64_MAX;
    for (const struct dp_parcel *p = link->loose; p; p = p->next)
        due = sooner(due, p->due_ns);
    if (link->control || link->state == DP_LINK_REFUSED)
        return due;
    if (link->state == DP_LINK_GREETING)
        return sooner(due, link->hello_due_ns);
    if (link->cursor)
        due = sooner(due, link->hold_ns);
    return sooner(due, silent_ns(link));
}

/* ---- taking answers ---- */

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
    forget_reason(link);
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

static void take_welcome(struct dp_link *link, const struct dp_reply *reply, uint64_t now_ns)
{
    struct dp_error err = {0};
    if (waits_and_tries_again(reply->status)) {
        remember(link, reply);
        link->hello_due_ns = now_ns + dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = sooner(link->pause_ns * 2, link->session->retry_ns);
        return;
    }
    if (dp_link_check_welcome(link, reply, &err) != DP_OK) {
        refuse_greeting(link, &err);
        return;
    }
    if (reply->window > 0 && reply->window < link->window)
        link->window = reply->window;
    link->restarts += link->boot != 0 && link->boot != reply->boot;
    link->boot = reply->boot;
    link->state = DP_LINK_OPEN;
    link->hello_id = 0;
    forget_reason(link);
    link->hold_ns = now_ns;
}

/* Everything from this parcel on is to be sent again, not before hold. Returns whether that was news. */
static bool rewind_to(struct dp_link *link, struct dp_parcel *parcel, uint64_t hold_ns)
{
    if (link->cursor && link->cursor->request.sequence <= parcel->request.sequence)
        return false;
    link->cursor = parcel;
    link->hold_ns = later(link->hold_ns, hold_ns);
    link->rewound_ns = hold_ns;
    link->pause_ns = sooner(link->pause_ns * 2, link->session->retry_ns);
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
    (void)rewind_to(link, from, later(now_ns, link->rewound_ns ? link->rewound_ns + link->pause_ns : 0));
}

static void take_status(struct dp_link *link, struct dp_parcel *parcel, const struct dp_reply *reply,
                        uint64_t now_ns)
{
    remember(link, reply);
    if (parcel->loose) {
        parcel->due_ns = now_ns + dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = sooner(link->pause_ns * 2, link->session->retry_ns);
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
    struct dp_parcel *oldest = link->first;
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
        dp_client_session_refuse_streams(session, later(reply->too_old, session->stream));
}

void dp_link_take(struct dp_link *link, struct dp_reply *reply, struct dp_message **message, uint64_t now_ns)
{
    struct dp_parcel *before;
    if (reply->session != link->session->id) {
        link->ignored++;
        return;
    }
    link->heard_ns = now_ns;
    link->silences = 0;
    if (link->state == DP_LINK_GREETING && link->hello_id != 0 && reply->id == link->hello_id) {
        take_welcome(link, reply, now_ns);
        return;
    }
    struct dp_parcel *parcel = find(link, reply->id, &before);
    if (!parcel || parcel->sends == 0) {
        link->ignored++;
        return;
    }
    note_overtaking(link, parcel, now_ns);
    if (waits_and_tries_again(reply->status) ||
        (!parcel->loose && (reply->status == DP_SESSION || reply->status == DP_ORDER))) {
        take_status(link, parcel, reply, now_ns);
        return;
    }
    forget_reason(link);
    link->pause_ns = first_pause(link);
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
    finish(link, parcel, reply, message, reply->status != DP_OK ? &why : NULL);
}
