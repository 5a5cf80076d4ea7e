#include "common/client/link_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS            DP_LINK_MS_NS
#define SILENCES_MAX     3u /* the wait for an answer doubles up to 8 times */
#define OVERTAKEN_FACTOR 8u /* waits after which an overtaken request is sent again, whatever else is heard */
/* Transfers slower than this are taken for lost ones: about a tenth of what a gigabit carries. */
#define SLOWEST_BYTES_S (12u << 20)
/* Unless they move: so many bytes between two looks at the connection. Small ones are sent again at once. */
#define MOVES_BYTES (16u << 10)
#define LOOK_NS     (1000 * MS_NS)
#define LARGE_BYTES (1u << 20)

/* What the largest transfer under way may take. Answers come in order, or nearly: since the last one, one
 * request and its answer at most had to pass, whatever waits after them. */
static uint64_t transfer_ns(const struct dp_link *link)
{
    return link->largest * 1000 / SLOWEST_BYTES_S * MS_NS;
}

enum dp_status dp_link_open(struct dp_link *link, struct dp_client_session *session, uint32_t server,
                            bool control, const char *endpoint, uint32_t window, struct dp_error *err)
{
    *link = (struct dp_link){.session = session,
                             .server = server,
                             .control = control,
                             .endpoint = endpoint ? strdup(endpoint) : NULL,
                             .state = DP_LINK_GREETING,
                             .window = window,
                             .next_sequence = 1};
    if (endpoint && !link->endpoint)
        return dp_fail(err, DP_NOMEM, "no memory for an endpoint");
    link->pause_ns = dp_link_first_pause(link);
    return DP_OK;
}

static void drop_all(struct dp_shard_request **list)
{
    while (*list) {
        struct dp_shard_request *to_shard = *list;
        *list = to_shard->next;
        dp_shard_request_free(&to_shard);
    }
}

void dp_link_close(struct dp_link *link)
{
    drop_all(&link->first);
    drop_all(&link->loose);
    free(link->endpoint);
    *link = (struct dp_link){0};
}

bool dp_link_move(struct dp_link *link, const char *endpoint, uint64_t now_ns)
{
    const struct dp_transport *t = &link->session->transport;
    struct dp_error err = {0};
    if (link->endpoint && strcmp(link->endpoint, endpoint) == 0)
        return true;
    char *own = strdup(endpoint);
    if (!own || !t->move || t->move(t->self, link->server, endpoint, &err) != DP_OK) {
        free(own);
        (void)snprintf(link->reason, sizeof link->reason, "its new address: %.300s", err.text);
        return false;
    }
    free(link->endpoint);
    link->endpoint = own;
    link->misplaced = false;
    link->silences = 0;
    link->breaks = 0; /* no pause */
    link->pause_ns = dp_link_first_pause(link);
    dp_link_forget_reason(link);
    dp_link_broke(link, now_ns);
    link->breaks = 0;
    return true;
}

bool dp_link_is_lost(const struct dp_link *link)
{
    return !link->endpoint || link->misplaced || link->breaks > 0 || link->silences > 0 ||
           (link->state == DP_LINK_GREETING && link->hello_id != 0);
}

void dp_link_name(const struct dp_link *link, char *text, size_t size)
{
    const char *endpoint = link->endpoint ? link->endpoint : "(no address)";
    if (link->control)
        (void)snprintf(text, size, "control at %s", endpoint);
    else
        (void)snprintf(text, size, "shard %" PRIu32 " at %s", link->server, endpoint);
}

/* What a server that answers no more said last is no sign of life: it is not handed on for ever. */
static struct dp_wait wait_heard(const struct dp_link *link, const struct dp_wait *said, uint64_t heard_ns)
{
    uint64_t fresh_ns = (link->session->retry_ns << SILENCES_MAX) + transfer_ns(link);
    uint64_t now_ns = dp_awake_ns(&link->session->clock);
    return now_ns - heard_ns <= fresh_ns ? *said : (struct dp_wait){0};
}

bool dp_link_holds(const struct dp_link *link, const struct dp_call *call)
{
    const struct dp_shard_request *p = link->held > 0 ? link->first : NULL;
    while (p && !(p->held && (!call || p->call == call)))
        p = p->next;
    return p && wait_heard(link, &link->hold.wait, link->hold.heard_ns).reason != DP_WAIT_NONE;
}

enum dp_status dp_link_silence(const struct dp_link *link, const struct dp_call *call, enum dp_status why,
                               const char *what, uint32_t timeout_ms, struct dp_error *err)
{
    char name[256];
    struct dp_wait wait = wait_heard(link, &link->wait, link->heard_ns);
    dp_link_name(link, name, sizeof name);
    if ((call || !link->reason[0]) && dp_link_holds(link, call))
        return dp_fail_wait(err, why, link->hold.wait, "%s: %s still holds it after %" PRIu32 " ms: %s", what,
                            name, timeout_ms, link->hold.reason);
    /* A person can mend a disk: that comes first. */
    if (link->reason[0] && link->wait.reason == DP_WAIT_DISK)
        return dp_fail_wait(err, why, wait, "%s (%s: %s did not finish it in %" PRIu32 " ms)", link->reason,
                            what, name, timeout_ms);
    if (link->reason[0])
        return dp_fail_wait(err, why, wait, "%s: %s did not finish it in %" PRIu32 " ms; it said: %s", what,
                            name, timeout_ms, link->reason);
    const struct dp_transport *t = &link->session->transport;
    const char *trouble = t->trouble ? t->trouble(t->self, link->server) : NULL;
    if (trouble)
        return dp_fail(err, why, "%s: no answer from %s in %" PRIu32 " ms: %s", what, name, timeout_ms,
                       trouble);
    return dp_fail(err, why, "%s: no answer from %s in %" PRIu32 " ms: is its server running?%s%s", what,
                   name, timeout_ms, link->held > 0 ? " It said last: " : "",
                   link->held > 0 ? link->hold.reason : "");
}

/* ---- what is under way ---- */

static uint64_t oldest_sequence(const struct dp_link *link)
{
    const struct dp_shard_request *oldest = dp_link_oldest(link);
    return oldest ? oldest->request.sequence : link->next_sequence;
}

bool dp_link_carries(const struct dp_link *link, const struct dp_call *call)
{
    for (const struct dp_shard_request *p = link->first; p; p = p->next) {
        if (p->call == call)
            return true;
    }
    for (const struct dp_shard_request *p = link->loose; p; p = p->next) {
        if (p->call == call)
            return true;
    }
    return false;
}

void dp_link_forget(struct dp_link *link, const struct dp_call *call)
{
    for (struct dp_shard_request *p = link->first; p; p = p->next) {
        if (p->call == call)
            p->call = NULL;
    }
    /* Loose ones hold up nothing: they need not go on. */
    for (struct dp_shard_request **at = &link->loose; *at;) {
        struct dp_shard_request *p = *at;
        if (p->call != call) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        dp_shard_request_free(&p);
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
        link->rewound_ns ? dp_link_later(now_ns, link->rewound_ns +
                                                     dp_client_session_jitter(link->session, link->pause_ns))
                         : now_ns;
    link->rewound_ns = link->hello_due_ns;
    link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
}

void dp_link_put(struct dp_link *link, struct dp_shard_request **to_shard)
{
    struct dp_shard_request *p = *to_shard;
    *to_shard = NULL;
    p->request.id = dp_client_session_next_id(link->session);
    p->request.cluster = link->session->cluster;
    p->request.session = link->session->id;
    if (p->call)
        p->call->waiting++;
    if (p->loose) {
        p->next = link->loose;
        link->loose = p;
        return;
    }
    DP_ASSERT(!link->control && dp_link_has_room(link, p->request.kind));
    link->largest = dp_link_later(link->first ? link->largest : 0, p->bytes);
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

/* A pull need not be answered once its owner has given up; until the client would ask again it must, as the owner
 * may wait again. What changes rows or tables has no deadline of its own: were it dropped, the requests after
 * it would overtake it. Nor has a member's pull: the shard holds it for as long as other members need. */
static uint32_t timeout_of(const struct dp_link *link, const struct dp_shard_request *to_shard,
                           uint64_t now_ns)
{
    if (to_shard->request.kind == DP_REQUEST_PUSH || to_shard->request.kind == DP_REQUEST_CREATE_TABLE ||
        to_shard->request.member.given)
        return DP_TIMEOUT_MS_MAX;
    uint64_t deadline = to_shard->call ? to_shard->call->deadline_ns : 0;
    uint64_t least = OVERTAKEN_FACTOR * link->session->retry_ns + transfer_ns(link);
    uint64_t left = dp_link_later(deadline > now_ns ? deadline - now_ns : 0, least) / MS_NS;
    return (uint32_t)dp_link_later(dp_link_sooner(left, DP_TIMEOUT_MS_MAX), 1);
}

static bool is_sent(const struct dp_link *link, const struct dp_shard_request *to_shard)
{
    return !link->cursor || link->cursor->request.sequence > to_shard->request.sequence;
}

void dp_link_broke(struct dp_link *link, uint64_t now_ns)
{
    uint64_t due_ns = now_ns;
    if (link->breaks > 0) {
        due_ns += dp_client_session_jitter(link->session, link->pause_ns);
        link->pause_ns = dp_link_sooner(link->pause_ns * 2, link->session->retry_ns);
    }
    link->breaks++;
    for (struct dp_shard_request *p = link->loose; p; p = p->next)
        p->due_ns = p->sends > 0 ? due_ns : p->due_ns;
    if (link->state == DP_LINK_GREETING)
        link->hello_due_ns = dp_link_sooner(link->hello_due_ns, due_ns);
    /* From the first, what the shard holds included: it would answer on the connection that has ended. */
    if (link->state != DP_LINK_OPEN || !link->first || !is_sent(link, link->first))
        return;
    link->cursor = link->first;
    link->rewound_ns = due_ns;
    link->hold_ns = dp_link_later(link->hold_ns, due_ns);
}

static bool send_to_shard(struct dp_link *link, struct dp_shard_request *to_shard, uint64_t now_ns)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    to_shard->request.timeout_ms = timeout_of(link, to_shard, now_ns);
    to_shard->request.shard = link->session->addressed && !link->control ? link->server + 1 : 0;
    to_shard->request.generation = link->session->generation;
    to_shard->request.history = link->session->history;
    if (to_shard->wait_until_ns)
        to_shard->request.wait_ms = (uint32_t)dp_link_sooner(
            to_shard->wait_until_ns > now_ns ? (to_shard->wait_until_ns - now_ns + MS_NS - 1) / MS_NS : 0,
            DP_TIMEOUT_MS_MAX);
    enum dp_status st = dp_shard_request_message(to_shard, &message, &err);
    if (st == DP_OK)
        st = link->session->transport.send(link->session->transport.self, link->server, &message, &err);
    if (st == DP_OK) {
        to_shard->sends++;
        to_shard->sent_ns = now_ns;
        to_shard->overtaken_ns = 0;
    } else if (st != DP_AGAIN) {
        dp_link_forget_reason(link);
        (void)snprintf(link->reason, sizeof link->reason, "sending failed: %.150s", err.text);
    }
    dp_message_free(&message);
    return st == DP_OK;
}

static void send_hello(struct dp_link *link, uint64_t now_ns)
{
    struct dp_client_session *session = link->session;
    struct dp_shard_request *hello = dp_shard_request_new(DP_REQUEST_HELLO, DP_REPLY_WELCOME);
    link->hello_due_ns = now_ns + MS_NS;
    if (!hello)
        return;
    bool wants = link->server == 0 && dp_client_session_lacks_stream(session);
    if (link->hello_id == 0 || link->hello_sequence != oldest_sequence(link) || link->hello_wants != wants) {
        link->hello_id = dp_client_session_next_id(session);
        link->hello_since_ns = now_ns;
        link->hello_sequence = oldest_sequence(link);
        link->hello_wants = wants;
    }
    struct dp_request *r = &hello->request;
    r->id = link->hello_id;
    r->cluster = session->cluster;
    link->hello_asks = session->generation == 0;
    r->session = session->id;
    r->next_sequence = link->hello_sequence;
    r->want_stream = wants;
    r->stream_above = wants ? session->stream_above : 0;
    memcpy(r->client, session->name, sizeof r->client);
    if (send_to_shard(link, hello, now_ns))
        link->hello_due_ns = now_ns + dp_client_session_jitter(session, session->retry_ns);
    dp_shard_request_free(&hello);
}

static uint64_t silence_ns(const struct dp_link *link)
{
    return (link->session->retry_ns << link->silences) + transfer_ns(link);
}

/* When one that was overtaken is sent again: others' answers may go on for ever while its own is lost. */
static uint64_t late_ns(const struct dp_link *link, const struct dp_shard_request *oldest)
{
    return oldest->overtaken_ns == 0
               ? UINT64_MAX
               : oldest->overtaken_ns + OVERTAKEN_FACTOR * link->session->retry_ns + transfer_ns(link);
}

/* When the oldest is sent again if nothing is heard. Any answer of the shard shows that it is at work, and that
 * bytes pass. */
static uint64_t silent_ns(const struct dp_link *link)
{
    const struct dp_shard_request *oldest = dp_link_oldest(link);
    if (!oldest || !is_sent(link, oldest))
        return UINT64_MAX;
    uint64_t since = dp_link_later(link->heard_ns, oldest->sent_ns);
    uint64_t due = dp_link_sooner(since + silence_ns(link), late_ns(link, oldest));
    return link->carried_ns > since ? dp_link_later(due, link->carried_ns + LOOK_NS) : due;
}

/* Looks at the connection of a silent shard; false: nothing moved since the last look, or others' answers
 * did. The first only counts. */
static bool moves(struct dp_link *link, uint64_t now_ns)
{
    const struct dp_transport *transport = &link->session->transport;
    const struct dp_shard_request *oldest = dp_link_oldest(link);
    if (!transport->carried || link->largest < LARGE_BYTES)
        return false;
    bool first = link->carried_ns <= dp_link_later(link->heard_ns, oldest->sent_ns);
    bool looked = oldest->overtaken_ns > 0 && link->carried_ns > oldest->overtaken_ns;
    if (first && looked && now_ns >= late_ns(link, oldest))
        return false;
    uint64_t before = link->carried;
    link->carried = transport->carried(transport->self, link->server);
    link->carried_ns = now_ns;
    return link->carried != 0 && (first || link->carried >= before + MOVES_BYTES);
}

/* When what the shard holds is sent again if it is not heard to be held any more. */
static uint64_t renewals_due_ns(const struct dp_link *link)
{
    uint64_t due = UINT64_MAX;
    for (const struct dp_shard_request *p = link->held > 0 ? link->first : NULL; p && is_sent(link, p);
         p = p->next)
        due = p->held ? dp_link_sooner(due, dp_link_later(p->held_ns, p->sent_ns)) : due;
    return due == UINT64_MAX ? due : dp_link_later(due + silence_ns(link), link->hold_ns);
}

static uint64_t loose_wait_ns(const struct dp_link *link, const struct dp_shard_request *to_shard)
{
    uint32_t doublings = to_shard->sends > 0 ? to_shard->sends - 1 : 0;
    uint32_t most =
        to_shard->wait_until_ns ? 1 : SILENCES_MAX; /* what waits at the server is silent by design */
    return link->session->retry_ns << (doublings < most ? doublings : most);
}

static void pump_loose(struct dp_link *link, uint64_t now_ns)
{
    for (struct dp_shard_request *p = link->loose; p; p = p->next) {
        if (now_ns < p->due_ns)
            continue;
        p->due_ns = now_ns + (send_to_shard(link, p, now_ns)
                                  ? dp_client_session_jitter(link->session, loose_wait_ns(link, p))
                                  : MS_NS);
    }
}

/* Each alone: their numbers are used up, no later request waits for them. */
static void renew_held(struct dp_link *link, uint64_t now_ns)
{
    uint64_t silence = silence_ns(link);
    for (struct dp_shard_request *p = link->first; p && is_sent(link, p); p = p->next) {
        if (!p->held || now_ns < dp_link_later(p->held_ns, p->sent_ns) + silence)
            continue;
        if (!send_to_shard(link, p, now_ns)) {
            link->hold_ns = now_ns + MS_NS;
            return;
        }
    }
    if (link->silences < SILENCES_MAX)
        link->silences++;
}

/* Whether the answer to the shard request at the cursor, with those that are still to come, is what a server keeps for a peer that
 * does not read: beyond that the shard request waits until one of them has come. Pulls that the shard holds do not count: what it
 * holds them for may stand behind the cursor. So where this says no, the retry timer of an earlier one runs. */
static bool may_ask(const struct dp_link *link)
{
    const struct dp_shard_request *next = link->cursor;
    uint64_t unread = 0;
    if (next->answer_bytes == 0 || link->largest * link->under_way <= DP_PEER_UNSENT_MAX)
        return true;
    for (const struct dp_shard_request *p = link->first; p != next; p = p->next) {
        unread += p->held ? 0 : p->answer_bytes;
        if (unread > 0 && unread + next->answer_bytes > DP_PEER_UNSENT_MAX)
            return false;
    }
    return true;
}

void dp_link_pump(struct dp_link *link, uint64_t now_ns)
{
    if (!link->endpoint)
        return;
    pump_loose(link, now_ns);
    if (link->control)
        return;
    if (link->state == DP_LINK_GREETING && now_ns >= link->hello_due_ns)
        send_hello(link, now_ns);
    if (link->state != DP_LINK_OPEN)
        return;
    if (now_ns >= silent_ns(link) && !moves(link, now_ns)) {
        link->cursor = dp_link_oldest(link);
        link->rewound_ns = now_ns;
        if (link->silences < SILENCES_MAX)
            link->silences++;
    }
    if (now_ns >= renewals_due_ns(link))
        renew_held(link, now_ns);
    while (link->cursor && now_ns >= link->hold_ns && may_ask(link)) {
        if (!send_to_shard(link, link->cursor, now_ns)) {
            link->hold_ns = now_ns + MS_NS;
            break;
        }
        link->cursor = link->cursor->next;
    }
}

uint64_t dp_link_due_ns(const struct dp_link *link)
{
    uint64_t due = UINT64_MAX;
    if (!link->endpoint)
        return due;
    for (const struct dp_shard_request *p = link->loose; p; p = p->next)
        due = dp_link_sooner(due, p->due_ns);
    if (link->control || link->state == DP_LINK_REFUSED)
        return due;
    if (link->state == DP_LINK_GREETING)
        return dp_link_sooner(due, link->hello_due_ns);
    if (link->cursor && may_ask(link))
        due = dp_link_sooner(due, link->hold_ns);
    return dp_link_sooner(due, dp_link_sooner(silent_ns(link), renewals_due_ns(link)));
}
