/* Downpour's client library: pull rows, push gradients, wait; from any C program.
 *     open -> table -> (pull -> wait -> ... -> push -> wait)* -> close
 * Promise   Issue, overlap, wait: pull and push return when the request is on its way; a push is applied
 *           exactly once on each shard however often it had to be sent, also over a restart of a server that
 *           was closed cleanly, or killed where the cluster's durability is machine or process; what was
 *           answered is then still there. Requests take effect on each shard in the order they were issued. A
 *           push is checked (finite, sizes) in full before any part of it is sent. Every wait has a deadline
 *           and names what it waited for.
 * Thread    A client and its tickets belong to one thread. Several clients may be used by several threads.
 * Memory    keys and weights of a pull, and the applied array, must live until its wait gave an answer; a
 *           push copies.
 * Failure   Every call gives a status and, in *err, cause and remedy (err may be NULL).
 * Shapes    n keys of a table of width dim: weights and gradients are f32[n][dim], row i belongs to
 *           keys[i]. */
#ifndef DP_CLIENT_DOWNPOUR_H
#define DP_CLIENT_DOWNPOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "common/base/status.h"
#include "common/model/table.h"
#include "common/wire/snapshot.h"

struct dp_client;

struct dp_client_options {
    const char *name; /* for the servers' logs: "worker 0" */
    uint64_t cluster; /* id and generation of the cluster: as its servers have them */
    uint64_t generation;
    const char *const *shards; /* endpoints in shard order, "tcp://10.0.0.5:5701": all of the cluster */
    uint32_t shard_count;
    const char *control;      /* endpoint of the first server's control socket; NULL: no notes */
    uint32_t window;          /* requests under way to one shard at most; 0: 16 */
    uint32_t retry_ms;        /* silence after which a request is sent again; 0: 1,000 */
    uint32_t open_timeout_ms; /* until every shard has answered the handshake; 0: 10,000 */
    bool bf16_values;         /* values travel as bf16 (half the bytes, 8 bits of precision); rows stay f32 */
};

DP_MUST_USE
enum dp_status dp_client_open(const struct dp_client_options *options, struct dp_client **out,
                              struct dp_error *err);
/* Unanswered requests are abandoned: wait for what must arrive. Accepts NULL inside, leaves NULL. */
void dp_client_close(struct dp_client **client);
uint32_t dp_client_shards(const struct dp_client *client);

/* A table of the cluster: made on every shard where it is absent, else checked against the spec (DP_EXISTS
 * names the field that differs). Handles live as long as the client. */
struct dp_client_table;
DP_MUST_USE
enum dp_status dp_client_table(struct dp_client *client, const struct dp_table_spec *spec,
                               uint32_t timeout_ms, struct dp_client_table **out, struct dp_error *err);

/* Keys, sorted and deduplicated once, used for a pull and its push. */
struct dp_keys;
DP_MUST_USE
enum dp_status dp_keys_new(struct dp_keys **out, struct dp_error *err);
void dp_keys_free(struct dp_keys **keys);
/* n keys in any order, duplicates allowed: a pull gives each its row, a push sums the gradients of equal keys
 * in the order given. Copies; grows as needed. */
DP_MUST_USE
enum dp_status dp_keys_set(struct dp_keys *keys, const uint64_t *user_keys, size_t n, struct dp_error *err);
/* n mixed keys (dp_mix), strictly ascending: lent, no copy; DP_ARGUMENT when they are not ascending. */
DP_MUST_USE
enum dp_status dp_keys_lend(struct dp_keys *keys, const uint64_t *mixed, size_t n, struct dp_error *err);
/* Keys given, distinct ones among them, and for each given one its place among the distinct (NULL for lent
 * keys: their own). */
size_t dp_keys_count(const struct dp_keys *keys);
size_t dp_keys_distinct(const struct dp_keys *keys);
const uint64_t *dp_keys_mixed(const struct dp_keys *keys);
const uint32_t *dp_keys_slots(const struct dp_keys *keys);

/* One table's part of a pull or push. */
struct dp_pull_part {
    struct dp_client_table *table;
    const struct dp_keys *keys;
    float *weights; /* [keys][dim], filled when the wait gave DP_OK */
};
struct dp_push_part {
    struct dp_client_table *table;
    const struct dp_keys *keys;
    const float *gradients; /* [keys][dim] */
};

/* A request under way; {0} is none. */
struct dp_ticket {
    uint64_t id;
};

/* What DP_NOT_MEASURED in an applied array means: no row of that shard was pulled. */
#define DP_NOT_MEASURED UINT64_MAX

/* timeout_ms: how long it may take until the window has room. applied: NULL, or [shards], filled with how
 * many pushes each shard had applied: give it to the push that stands on this pull, and its staleness is
 * measured. */
DP_MUST_USE
enum dp_status dp_client_pull(struct dp_client *client, const struct dp_pull_part *parts, uint32_t count,
                              uint64_t *applied, uint32_t timeout_ms, struct dp_ticket *out,
                              struct dp_error *err);

struct dp_push_options {
    float rate; /* learning rate of this step: finite, FLT_MIN or more */
    uint64_t
        stream; /* 0: this client's own stream, numbered by the client; after DP_TOO_OLD the next push gets
                      * another (that one may be applied on some shards) */
    uint64_t number; /* with a stream of one's own: each number once; above the remembered window it waits */
    const uint64_t *applied; /* [shards] of the pull it stands on, or NULL */
};
/* Goes to every shard, empty where it has no rows: each counts the number. DP_NOT_FINITE (nothing was sent)
 * names table, key and value. */
DP_MUST_USE
enum dp_status dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                              const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                              struct dp_ticket *out, struct dp_error *err);

struct dp_outcome {
    uint32_t measured;      /* shards whose staleness is in the next two */
    uint64_t staleness_sum; /* pushes applied between the pull and this push, over shards */
    uint64_t staleness_max;
    bool repeated; /* a shard had applied this number before */
};
/* DP_OK: done on every shard, the ticket is used up. DP_TIMEOUT: not yet, wait again or close; names the
 * shard. Any other: refused, with the reason; the ticket is used up. outcome: NULL or filled. */
DP_MUST_USE
enum dp_status dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                              struct dp_outcome *outcome, struct dp_error *err);
/* Takes in what has arrived and resends what is due, without waiting. Call it now and then while computing
 * for long. */
void dp_client_progress(struct dp_client *client);

/* Which of the numbers from .. from + count - 1 of a stream every shard has applied: bit i of
 * bits[(count + 63) / 64] is number from + i. For who was started again and wants to go on where it stopped: what
 * is told survives what an answered push survives. A number whose bit is 0 may be there on some shards: push it
 * again, and it takes effect on the others alone. DP_TOO_OLD: a shard has forgotten the stream, as newer ones took
 * its place, or cannot tell it from one that it has forgotten, and takes no push of it any more (dp_client_too_old); a
 * stream never pushed to has no bit set. */
DP_MUST_USE
enum dp_status dp_client_pushed(struct dp_client *client, uint64_t stream, uint64_t from, size_t count,
                                uint64_t *bits, uint32_t timeout_ms, struct dp_error *err);

/* What a shard says of snapshots: its rows of the end of an epoch, kept beside it (proto/README.md). */
struct dp_snapshot_state {
    bool held;           /* it has the one that was named */
    uint32_t run, epoch; /* the last that it reverted to; 0, 0: none */
};
struct dp_snapshot_order {
    enum dp_snapshot_action action;
    uint32_t run, epoch; /* from 1; drop: 0, 0 */
    uint32_t keeps;      /* take: an epoch whose snapshot stays, too; 0: none */
};
/* Orders all shards, and returns when all have done it: states[dp_client_shards]. Nobody may push meanwhile. May be repeated at
 * will, by another client too. DP_NOT_FOUND: a shard that is to revert has no such snapshot. DP_INVALID: to revert, and a later
 * run has pushed to it since. */
DP_MUST_USE
enum dp_status dp_client_snapshot(struct dp_client *client, const struct dp_snapshot_order *order,
                                  struct dp_snapshot_state *states, uint32_t timeout_ms,
                                  struct dp_error *err);

/* Of the last answer DP_TOO_OLD to this client: streams of its kind up to this one are too old, unless the shard knows
 * them. (run, epoch), as a stream of training is made up: an epoch of the run that was asked about tells that the
 * run is known and only this epoch was forgotten; else it is the last epoch of a run, and new runs are to be above. */
uint64_t dp_client_too_old(const struct dp_client *client);

/* Simple forms: one table, done when they return. */
DP_MUST_USE
enum dp_status dp_client_pull_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, float *weights, uint32_t timeout_ms,
                                   struct dp_error *err);
/* DP_TIMEOUT: the push may still be applied; calling this again is another push, which may count the gradients
 * twice. Who must know uses dp_client_push and waits again. DP_EXISTS: a shard had seen the push's number
 * before and did not apply it: two clients share a stream. */
DP_MUST_USE
enum dp_status dp_client_push_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, const float *gradients, float rate,
                                   uint32_t timeout_ms, struct dp_error *err);

/* What one shard says of itself. The report's heap memory is the caller's: dp_client_status_free. */
struct dp_status_report; /* common/wire/reply.h */
DP_MUST_USE
enum dp_status dp_client_status(struct dp_client *client, uint32_t shard, uint32_t timeout_ms,
                                struct dp_status_report **out, struct dp_error *err);
void dp_client_status_free(struct dp_status_report **report);

/* Notes: small named values kept in memory by the first server while it runs (progress, parts of an
 * evaluation). */
DP_MUST_USE
enum dp_status dp_client_note_put(struct dp_client *client, const char *name, const void *bytes, size_t size,
                                  uint32_t timeout_ms, struct dp_error *err);
/* Calls visit for each note whose name starts with prefix, in name order. */
DP_MUST_USE
enum dp_status dp_client_notes(struct dp_client *client, const char *prefix,
                               void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                               void *context, uint32_t timeout_ms, struct dp_error *err);

#ifdef __cplusplus
}
#endif

#endif
