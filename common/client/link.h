/* Link: one server as this client sees it: greeting, the window of requests under way, sequence numbers,
 * sending again.
 *     put -> (greet) -> send in order -> answer -> the shard request's call
 * Promise   Shard requests reach the shard's logic in the order of put: go-back-N. `cursor` is the next one
 *           to send. A loss, a busy shard or a new session moves it back. All requests from there are then
 *           sent again, in order, with the same sequence numbers.
 * Why       The shard executes a session's requests in order and nothing else, so requests after a missing
 *           one are refused anyway.
 * Held      A member's pull that the shard blocks has used up its number: later requests are answered before
 *           it. It stays in the list, does not count for the retry timer, and is resent alone when the shard
 *           no longer reports it as blocked.
 * Thread    The client's.
 * Memory    Takes shard requests over.
 * Failure   A refused greeting refuses every shard request that is under way, with the reason; the next put greets
 *           again. A reply that fits nothing under way is counted and changes nothing. */
#ifndef DP_CLIENT_LINK_H
#define DP_CLIENT_LINK_H

#include "common/client/call.h"
#include "common/client/client_session.h"

enum dp_link_state { DP_LINK_GREETING, DP_LINK_OPEN, DP_LINK_REFUSED };

struct dp_link {
    struct dp_client_session *session;
    uint32_t server;
    bool control;   /* takes loose shard requests only, needs no greeting */
    char *endpoint; /* own copy; NULL: not known yet, nothing is sent */
    enum dp_link_state state;
    struct dp_error refused; /* why, in REFUSED */
    char reason[360];        /* why the server is making us wait, if it said so; "" after an answer */
    struct dp_wait wait;     /* the same as data */

    struct dp_shard_request *first, *last, *cursor; /* under way, by sequence; cursor NULL: all are sent */
    struct dp_shard_request *loose;
    uint32_t under_way, window; /* of those in order */
    uint64_t next_sequence;
    uint64_t largest; /* bytes: at least those of each shard request that is under way, in order */

    uint64_t hello_id, hello_sequence;     /* of the greeting now under way */
    bool hello_wants;                      /* a stream */
    bool hello_asks;                       /* for the generation */
    uint64_t hello_due_ns, hello_since_ns; /* since: sent first */
    uint64_t boot;
    uint64_t store; /* id of the shard's store; 0: not known */

    uint32_t held; /* of those under way: the shard has said that it holds them */
    struct {
        char reason[360]; /* what it said last of one of them */
        struct dp_wait wait;
        uint64_t heard_ns;
    } hold;

    uint64_t heard_ns;          /* last reply that fitted the session, but for HELD */
    uint64_t hold_ns, pause_ns; /* nothing is sent in order before hold; next pause, doubling */
    uint64_t rewound_ns;
    uint64_t carried, carried_ns; /* bytes, at the last look at a silent connection */
    uint32_t silences;
    uint32_t breaks; /* connections that ended since the last answer */
    bool misplaced;  /* something else answered at its endpoint */
};

enum dp_status dp_link_open(struct dp_link *link, struct dp_client_session *session, uint32_t server,
                            bool control, const char *endpoint, uint32_t window, struct dp_error *err);
/* The server is at this endpoint from now on: what is under way is sent again there, at once. False: there is
 * no memory, or no such endpoint; the link stays as it was. */
bool dp_link_move(struct dp_link *link, const char *endpoint, uint64_t now_ns);
/* Whether it has no endpoint, or gets no answer at the one that it has. */
bool dp_link_is_lost(const struct dp_link *link);
void dp_link_close(struct dp_link *link); /* drops what is under way; accepts a zeroed link */

/* Pulls that the shard holds leave their places to what they may wait for: this member's own pushes. To further pulls they do not:
 * there are never more of them than the window has places. */
static inline bool dp_link_has_room(const struct dp_link *link, enum dp_request_kind kind)
{
    return link->under_way - (kind == DP_REQUEST_PULL ? 0 : link->held) < link->window;
}
/* There must be room (but for loose shard requests, which have no window). */
void dp_link_put(struct dp_link *link, struct dp_shard_request **to_shard);
/* Says hello (again): the shard learns which sequence number to expect, the oldest that is not answered, and asks for a
 * stream where the session lacks one. */
void dp_link_greet(struct dp_link *link, uint64_t now_ns);
/* Sends what is due. */
void dp_link_pump(struct dp_link *link, uint64_t now_ns);
/* When pump has something to do next; UINT64_MAX: not before a reply. */
uint64_t dp_link_due_ns(const struct dp_link *link);
/* A reply of this server. May take over heap parts of the reply, and the message. */
void dp_link_take(struct dp_link *link, struct dp_reply *reply, struct dp_message **message, uint64_t now_ns);
/* The connection to the server has ended: what is under way may be lost, and is sent again at once, on the next one. Where connections
 * end before anything is answered, it is sent after a pause. */
void dp_link_broke(struct dp_link *link, uint64_t now_ns);
/* Makes a reply that did not decode into a refusal, for dp_link_take: of the request that it answers, where
 * that could be read. */
void dp_link_garbled(struct dp_link *link, struct dp_reply *reply, const struct dp_error *why);
/* Whether a shard request of the call is under way here. */
bool dp_link_carries(const struct dp_link *link, const struct dp_call *call);
/* The answers to the call's shard requests are dropped from now on. */
void dp_link_forget(struct dp_link *link, const struct dp_call *call);
/* "shard 1 at tcp://..." / "control at ..." into text. */
void dp_link_name(const struct dp_link *link, char *text, size_t size);
/* Hands the session's view to the shard, outside of the order and at once: it is there before what is sent from now on. No call waits for
 * the answer: a shard that still lacks it says so again. */
void dp_link_put_view(struct dp_link *link);
/* Whether the shard holds a shard request of the call (NULL: of any), and has said so recently. */
bool dp_link_holds(const struct dp_link *link, const struct dp_call *call);
/* Fails with why nothing came from this server for the call (NULL: none yet), and what to do. */
enum dp_status dp_link_silence(const struct dp_link *link, const struct dp_call *call, enum dp_status why,
                               const char *what, uint32_t timeout_ms, struct dp_error *err);

#endif
