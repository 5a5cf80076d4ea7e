/* Downpour's client library: pull rows, push gradients and wait, from any C program.
 *     open -> table -> (pull -> wait -> ... -> push -> wait)* -> close
 * Promise   Requests are asynchronous: pull and push return when the request is on its way, and several may
 *           be under way. A push is applied exactly once on each shard, however often it is resent. This
 *           also holds if a server restarts after a clean stop or, with durability machine or process,
 *           after a kill. Acknowledged pushes survive such a restart. On each shard, requests take effect
 *           in the order in which they were issued, but for a member's pull that its mode blocks
 *           (dp_client_join). A push is checked (finite, sizes) in full before any part of it is sent.
 *           Every wait has a deadline and names the server that it waited for. A deadline counts only the
 *           time in which the process ran. A suspension (Ctrl-Z, a sleeping laptop) during a wait counts as
 *           a quarter of a second at most.
 * Thread    A client and its tickets belong to one thread. Several clients may be used by several threads.
 * Memory    The keys and weights of a pull, and its pulled_at array, must live until its wait has returned a
 *           result other than DP_TIMEOUT. A push copies its arguments.
 * Failure   Every call returns a status; *err has the cause and the remedy (err may be NULL). When a deadline
 *           passed, err->wait says why the server makes the request wait, if it said so recently
 *           (common/base/wait.h).
 * Shapes    For n keys of a table of width dim, weights and gradients are f32[n][dim]; row i belongs to
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
#include "common/wire/lease.h"
#include "common/wire/view.h"

struct dp_client;

struct dp_client_options {
    const char *name; /* names the client in the servers' logs: "worker 0" */
    uint64_t cluster; /* the cluster's id, as its servers have it */
    /* 0: the one that the servers have. Another number: a cluster that is at another generation, since it was restored,
     * is refused (DP_GENERATION). */
    uint64_t generation;
    /* endpoints of all the cluster's shards, in shard order: "tcp://10.0.0.5:5701" */
    const char *const *shards;
    uint32_t shard_count; /* 0: the client uses only the control endpoint */
    /* Instead of `shards`: the number of servers, all with as many shards, whose addresses the first
     * server's register has. The client asks there, and again when a server is silent. */
    uint32_t servers;
    const char *control; /* the first server's control endpoint; NULL: notes and register are unavailable */
    const char
        *control_from; /* what names that endpoint, for messages; NULL, or lives as long as the client */
    uint32_t window;   /* most requests under way to one shard; 0: 16 */
    uint32_t retry_ms; /* time without a reply after which a request is resent; 0: 1,000 */
    uint32_t open_timeout_ms; /* for the handshakes with all shards; 0: 10,000 */
    bool bf16_values;         /* send values as bf16 (half the bytes, 8 bits of precision); rows stay f32 */
    /* Called several times a second while a call waits. Return true to end the call as if its deadline had
     * passed. May be NULL. */
    bool (*gives_up)(void *context);
    void *gives_up_context;
};

enum dp_status dp_client_open(const struct dp_client_options *options, struct dp_client **out,
                              struct dp_error *err);
/* The same with the cluster's id, shards and control endpoint from a cluster file ("DIR/cluster.conf" of a
 * run). options: the rest, or NULL. DP_IO, DP_ARGUMENT naming file and line. */
enum dp_status dp_client_open_file(const char *cluster_file, const struct dp_client_options *options,
                                   struct dp_client **out, struct dp_error *err);
/* Abandons requests that are not answered yet; wait for those that matter first. Accepts NULL inside, leaves
 * NULL. */
void dp_client_close(struct dp_client **client);
uint32_t dp_client_shards(const struct dp_client *client);
/* The restore that made the servers' rows: a number that each restore raises (1: never restored), and random bits that tell
 * restores apart. They stay the same for a client: once the cluster is restored, its requests fail with DP_GENERATION and
 * change nothing; close it and open another one. 0, 0: not known yet (a client without shards). */
void dp_client_generation(const struct dp_client *client, uint64_t *generation, uint64_t *history);
/* Seconds since 1970 by the clock of the first server, to within a greeting's time: so times of several
 * clients can be compared, whatever their machines' clocks say. client NULL, or of a cluster without
 * servers: this machine's clock. */
double dp_client_clock(const struct dp_client *client);

/* Opens a table of the cluster. Each shard creates the table if it is missing, and otherwise checks it
 * against the spec. DP_EXISTS names the field that differs: use the table's settings, or another name.
 * A shard has at most 1,024 tables. 'downpour restore --without TABLE' removes one.
 * Handles live as long as the client. */
struct dp_client_table;
enum dp_status dp_client_table(struct dp_client *client, const struct dp_table_spec *spec,
                               uint32_t timeout_ms, struct dp_client_table **out, struct dp_error *err);
/* The same, but a table that is there keeps the initial values of its creation: spec->init may differ. */
enum dp_status dp_client_table_kept(struct dp_client *client, const struct dp_table_spec *spec,
                                    uint32_t timeout_ms, struct dp_client_table **out, struct dp_error *err);

/* A set of keys, sorted and deduplicated once, for a pull and its push. */
struct dp_keys;
enum dp_status dp_keys_new(struct dp_keys **out, struct dp_error *err);
void dp_keys_free(struct dp_keys **keys);
/* Sets n keys, in any order, with duplicates allowed. A pull returns a row for each key; a push sums the
 * gradients of equal keys in the order given. Copies the keys and grows as needed. */
enum dp_status dp_keys_set(struct dp_keys *keys, const uint64_t *user_keys, size_t n, struct dp_error *err);
/* Sets n mixed keys (dp_mix), which must be strictly ascending (else DP_ARGUMENT). They are borrowed, not
 * copied. */
enum dp_status dp_keys_lend(struct dp_keys *keys, const uint64_t *mixed, size_t n, struct dp_error *err);
/* The number of keys given; the number of distinct ones; the distinct mixed keys; for each key given, its
 * index among the distinct ones (NULL for borrowed keys: the same index). */
size_t dp_keys_count(const struct dp_keys *keys);
size_t dp_keys_distinct(const struct dp_keys *keys);
const uint64_t *dp_keys_mixed(const struct dp_keys *keys);
const uint32_t *dp_keys_slots(const struct dp_keys *keys);

/* One table's part of a pull or push. */
struct dp_pull_part {
    struct dp_client_table *table;
    const struct dp_keys *keys;
    float *weights; /* [keys][dim], filled when the wait returned DP_OK */
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

/* How far a shard had come when it answered a pull. */
struct dp_pulled_at {
    uint64_t applied; /* what staleness counts from; DP_NOT_MEASURED: no row of it was pulled */
    uint64_t lsn;     /* of its journal: the rows show all of it */
};
#define DP_NOT_MEASURED UINT64_MAX

/* Issues a pull. timeout_ms: how long the call may wait for a place in the window. pulled_at: NULL, or an array
 * [shards] to be filled; pass it to the push that is computed from this pull, and its outcome measures how many
 * pushes came in between and how many of its rows they changed. */
enum dp_status dp_client_pull(struct dp_client *client, const struct dp_pull_part *parts, uint32_t count,
                              struct dp_pulled_at *pulled_at, uint32_t timeout_ms, struct dp_ticket *out,
                              struct dp_error *err);

struct dp_push_options {
    float rate; /* learning rate of this step: finite, FLT_MIN or more */
    /* 0: a stream that the client gets from shard 0 and numbers itself. After DP_TOO_OLD the next push uses a
     * new one; the refused push may have been applied on some shards. */
    uint64_t stream;
    /* If stream is not 0: use each number once; a number beyond the server's window waits. DP_PARTIAL: the servers were restored from a
     * checkpoint that has this push on some shards only, as it was not completed then: the rest is lost. */
    uint64_t number;
    const struct dp_pulled_at *pulled_at; /* [shards], of the pull that the push was computed from, or NULL */
    /* Each shard divides the rate by the push's staleness in pushes, if that is over 1 (Zhang et al. 2016, "Staleness-aware
     * async-SGD"). Needs pulled_at; a shard takes the rate as it is if none of its rows was pulled. Not in sync. */
    bool by_staleness;
    bool in_step; /* the push is this member's for `step` (dp_client_join) */
    uint64_t step;
    /* After the gradients: their weight in a synchronous step; shards count those that took effect (the counter `examples`). */
    uint64_t examples;
};
/* Issues a push to every shard, empty for shards without rows, because each shard counts the numbers.
 * DP_NOT_FINITE names table, key and value; nothing was sent then. */
enum dp_status dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                              const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                              struct dp_ticket *out, struct dp_error *err);

struct dp_outcome {
    uint32_t measured;      /* number of shards in the next two */
    uint64_t staleness_sum; /* pushes applied between the pull and this push, summed over shards */
    uint64_t staleness_max;
    /* Of the shards that measured it and applied it at once (all modes but sync): its rows, and those of them that any push, this
     * client's own included, had changed since the pull. */
    uint64_t rows, changed_rows;
    uint32_t divided;   /* by_staleness: number of shards in the next one */
    double divisor_sum; /* by which shards divided the rate, summed over them */
    bool repeated;      /* a shard had applied this number before */
    uint32_t dropped; /* in a step: shards that had closed the step without this push and did not apply it */
    uint32_t gaps;    /* in a step: number of shards in the next two */
    uint64_t gap_sum; /* steps by which this member was ahead of the slowest one, summed over shards */
    uint64_t gap_max;
    uint64_t
        open; /* of a pull in a step of sync: the greatest step that a shard's rows are of (dp_client_pull_step) */
};
/* Waits for a request. DP_OK: every shard is done, and the ticket is used up. DP_TIMEOUT: not yet; err names
 * the shard, and the caller may wait again or close. Any other status: the request was refused, with the
 * reason, and the ticket is used up. outcome: filled with DP_OK, or NULL. */
enum dp_status dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                              struct dp_outcome *outcome, struct dp_error *err);
/* Processes replies that have arrived and resends what is due, without waiting. Call it from time to time
 * during long computations. */
void dp_client_progress(struct dp_client *client);

/* ---- Workers that wait for each other (ssp, sync, sync with backups) ----
 *     join -> table -> (pull_step(t) -> wait -> ... -> push(t) -> wait)* -> leave
 * The members of a run are its ranks 0 .. members - 1. Each shard holds a member's pull of step t until the other members have come as
 * far as the mode asks: with ssp, each has finished the steps before t - slack; with sync, the shard has applied each step before t, all
 * members' pushes for it as one: the mean of their gradients, weighted by `examples`. A member finishes a step by its push for it, one
 * without rows if it has none. A process that is started again in its place finds what it has pushed by dp_client_pushed, if its pushes
 * have a stream and numbers of its choice: tests/system/example_sync.c is a complete program.
 * sync: all push a step at the same rate, one push a step and member. A push waits, as for a place in the window, until every shard has
 * answered the member's push before. Servers need a journal (durability machine or process), else joining is DP_UNSUPPORTED.
 * sync with slack B > 0 (backup workers, Chen et al. 2016): a shard applies a step when all but B members have pushed it. A push that
 * comes later is not applied there, which dp_outcome.dropped counts; shards may do without different members. So a member may be behind
 * the open step of a shard: dp_client_pull_step says how it goes on. A push does not wait for the one before it. */
struct dp_join {
    uint32_t run;     /* from 1: later runs replace earlier ones */
    uint32_t rank;    /* this member's, below `members` */
    uint32_t members; /* 1 .. DP_MEMBERS_MAX */
    enum dp_consistency mode;
    uint32_t slack;      /* ssp: S; sync: B, below `members`; async: 0 */
    uint64_t first_step; /* of the run */
    /* Where the member in this place has left, this one takes part again, from a step on that no shard has reached; false: its end
     * stays. It chooses the step: dp_client_joined_at. The others do without it in those between, and so do shards' rows. */
    bool returns;
};
/* Before joining: this member reports to the first server that it lives, several times within timeout_ms (once a second at least; 0: not at
 * all), from calls that wait and from dp_client_progress: call that during longer computations. */
void dp_client_heartbeats(struct dp_client *client, uint32_t timeout_ms);
/* Asks for how long the first server has not heard of each member: silent_ms[members of the join], by rank. It counts while it serves
 * and is not suspended, and all members as just heard when it starts. Members that have not joined yet count, too: the register's
 * view (run/<run>/view) lists those that have. DP_TIMEOUT: the first server is away. */
enum dp_status dp_client_silences(struct dp_client *client, uint64_t *silent_ms, uint32_t timeout_ms,
                                  struct dp_error *err);
/* Joins a run: takes the rank's place in the register's list of members, which the first to join makes, and hands the list to all
 * shards. Needs the control endpoint. A process that joins again in the place of an earlier one replaces it; if that one had left,
 * its end stays, unless this one `returns`. It waits for all shards: one that is away makes it DP_TIMEOUT.
 * DP_EXISTS: the other members mean another mode, or other members or steps. DP_DATA: the register is older than what the shards know of the
 * run: its store was lost, or is an old copy. After DP_TIMEOUT, join again. DP_REPLACED, of this call and
 * of all below: another process joined in this place, if only to let it leave (dp_client_was_let_leave); this client is no member any
 * more and cannot become one. */
enum dp_status dp_client_join(struct dp_client *client, const struct dp_join *join, uint32_t timeout_ms,
                              struct dp_error *err);
/* Of a client that has joined: the first step in which it takes part, first_step or where it returned. */
uint64_t dp_client_joined_at(const struct dp_client *client);
/* Likewise: in how many steps of the run before that this member took no part, in all, as it had left. */
uint64_t dp_client_missed(const struct dp_client *client);
/* After DP_REPLACED: whether the others go on without this member, as it was silent for long. It may join again as a new client with
 * `returns`. False: another process is in its place. */
bool dp_client_was_let_leave(const struct dp_client *client);
/* Ends this member's part: it has taken part in the steps before `until`, and no member waits for it in later ones. All of its
 * pushes must have been waited for (else DP_ARGUMENT). After DP_TIMEOUT, call it again. */
enum dp_status dp_client_leave(struct dp_client *client, uint64_t until, uint32_t timeout_ms,
                               struct dp_error *err);
/* Issues a pull for this member's step, as dp_client_pull, but to every shard, also those without rows of it. While shards hold it, its
 * wait's DP_TIMEOUT has err->wait.reason DP_WAIT_STEP, and the text names the member that is waited for, how far it is, and when it was
 * last heard. In sync with backups a shard that has closed the step gives the rows of a later one, and the wait's dp_outcome.open is
 * above `step`: do not use the rows, but push each of the steps below `open` without rows, since its number is used up, and pull `open`. */
enum dp_status dp_client_pull_step(struct dp_client *client, uint64_t step, const struct dp_pull_part *parts,
                                   uint32_t count, struct dp_pulled_at *pulled_at, uint32_t timeout_ms,
                                   struct dp_ticket *out, struct dp_error *err);

/* Finds which of a stream's numbers from .. from + count - 1 every shard has applied: bit i of bits[(count +
 * 63) / 64] is number from + i. A restarted program uses this to continue where it stopped; the result is as
 * durable as acknowledged pushes. A number whose bit is 0 may be applied on some shards: push it again, and
 * it takes effect only on the others. A stream that was never pushed to has no bit set. DP_TOO_OLD: a shard
 * has forgotten the stream in favour of newer ones, or cannot tell it from a forgotten one, and takes no more
 * pushes of it (dp_client_too_old). */
enum dp_status dp_client_pushed(struct dp_client *client, uint64_t stream, uint64_t from, size_t count,
                                uint64_t *bits, uint32_t timeout_ms, struct dp_error *err);

/* The same, of the numbers that any shard has applied: what another process pushed last may be on some shards only. */
enum dp_status dp_client_pushed_anywhere(struct dp_client *client, uint64_t stream, uint64_t from,
                                         size_t count, uint64_t *bits, uint32_t timeout_ms,
                                         struct dp_error *err);

/* ---- Workers that take their work from a common list (leases) ----
 *     lease -> (pull -> push under the number -> wait -> ... -> lease)* until OVER
 * The push numbers 0 .. total - 1 of an epoch are handed out by the first server, so that a fast worker does more, and what a worker that
 * died had taken is done by others. A number may be given to several workers: push it under the stream of the run and epoch
 * (dp_stream_of_run), and each shard counts one of them. The list is in the first server's memory only: after DP_LEASE_TELL, which comes first in each epoch,
 * ask again with what dp_client_pushed says. */
struct dp_lease {
    uint32_t run, epoch; /* run: from 1 */
    uint64_t total;      /* 1 .. DP_LEASE_TOTAL_MAX; the same from all workers */
    uint32_t rank;       /* another process of this rank takes this one's place: DP_REPLACED from then on */
    uint32_t want;       /* how many numbers more, up to DP_LEASE_WANT_MAX */
    /* The numbers that this process holds and has not finished: all others are given to others. And those whose pushes were
     * waited for since the last call that returned DP_OK. Up to DP_LEASE_HELD_MAX each. */
    const uint64_t *held, *done;
    uint32_t held_count, done_count;
    const uint64_t *
        pushed; /* after DP_LEASE_TELL: bits[(total + 63) / 64] of dp_client_pushed for all numbers (all set after DP_TOO_OLD); else NULL */
};
struct dp_leased {
    enum dp_lease_state state;
    uint32_t wait_ms; /* with DP_LEASE_WAIT */
    uint64_t done;    /* numbers of the epoch that are done, as far as the first server knows */
    uint32_t count;   /* with DP_LEASE_GIVEN */
    uint64_t number[DP_LEASE_WANT_MAX];
};
/* Asks for push numbers. Needs the control endpoint. A worker that holds none may get one that another worker holds, too. DP_INVALID: another
 * total is known for this epoch: two trainings share a run, or their workers differ in settings. */
enum dp_status dp_client_lease(struct dp_client *client, const struct dp_lease *ask, uint32_t timeout_ms,
                               struct dp_leased *out, struct dp_error *err);

/* After DP_TOO_OLD: streams of the same kind up to this one are too old, unless the shard knows them. A
 * training stream consists of (run, epoch). If this is an epoch of the requested run, the run is known and
 * only the epoch was forgotten; otherwise it is the last epoch of a run, and new runs need higher numbers. */
uint64_t dp_client_too_old(const struct dp_client *client);

/* The greatest run that a shard knew members of when this client connected to it: lower runs cannot be joined any more.
 * 0: none. */
uint32_t dp_client_last_run(const struct dp_client *client);

/* Simple calls for one table, which return when the request is done. */
enum dp_status dp_client_pull_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, float *weights, uint32_t timeout_ms,
                                   struct dp_error *err);
/* DP_TIMEOUT: the push may still be applied. Another call is another push and may apply the gradients twice;
 * use dp_client_push and dp_client_wait to retry safely. DP_INVALID: a shard had seen the push's number
 * before and did not apply it: two clients share a stream. */
enum dp_status dp_client_push_rows(struct dp_client *client, struct dp_client_table *table,
                                   const uint64_t *keys, size_t n, const float *gradients, float rate,
                                   uint32_t timeout_ms, struct dp_error *err);

/* The status of one shard. The caller frees the report with dp_client_status_free. */
struct dp_status_report; /* common/wire/reply.h */
enum dp_status dp_client_status(struct dp_client *client, uint32_t shard, uint32_t timeout_ms,
                                struct dp_status_report **out, struct dp_error *err);
void dp_client_status_free(struct dp_status_report **report);

/* Notes: small named values that the first server keeps in memory while it runs (progress, parts of an
 * evaluation). */
enum dp_status dp_client_note_put(struct dp_client *client, const char *name, const void *bytes, size_t size,
                                  uint32_t timeout_ms, struct dp_error *err);
/* Calls visit for each note whose name starts with prefix, in name order. */
enum dp_status dp_client_notes(struct dp_client *client, const char *prefix,
                               void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                               void *context, uint32_t timeout_ms, struct dp_error *err);

/* Register: small values (up to 64 KiB) with versions, which the first server keeps durably; for what a
 * cluster decides once. After a reply has shown a version, no later reply shows an older one.
 * Names are paths. When the register is full, values of an old run ("run/12/plan") are dropped for those of
 * newer runs; requests for that run then fail with DP_TOO_OLD. All other values are kept for ever, and take a half of the
 * register at most. The servers and workers use "stores", "generation" and "run/N/view", "plan" and "verdict": a set of these
 * fails with DP_INVALID unless it is what they may set. */
struct dp_register_value {
    uint64_t version; /* 0: never set */
    void *bytes;      /* on the heap, followed by a 0 byte; NULL before a call and after clear */
    size_t size;
    uint64_t register_id; /* random, from the register's creation: another number is another register */
};
/* Gets a value. Returns at once if its version is above `above`; otherwise when it rises above that, or after
 * wait_ms with the current value (also DP_OK). The server holds the request until then, so there is no need to
 * poll. DP_TIMEOUT: the first server has not replied within wait_ms + timeout_ms. */
enum dp_status dp_client_register_get(struct dp_client *client, const char *name, uint64_t above,
                                      uint32_t wait_ms, uint32_t timeout_ms, struct dp_register_value *out,
                                      struct dp_error *err);
/* Compare-and-set: stores the bytes as version expected + 1 if the current version is `expected`. *won: this
 * call's value was stored, once, however often it was resent. now: NULL, or receives the current value, this
 * call's or another's. After a failure the value may have been stored or not: read it. DP_TOO_OLD: the value
 * is more than 32 versions past `expected`. DP_NOT_FOUND: it has never been at `expected`. */
enum dp_status dp_client_register_set(struct dp_client *client, const char *name, uint64_t expected,
                                      const void *bytes, size_t size, uint32_t timeout_ms, bool *won,
                                      struct dp_register_value *now, struct dp_error *err);
void dp_register_value_clear(struct dp_register_value *value);

#ifdef __cplusplus
}
#endif

#endif
