/* Shard: the logic of one contiguous part of the key space. It sees no socket, no clock and no RocksDB:
 * requests in, replies out, over store.h, so that a simulator can drive it.
 *     receive, receive, ...  ->  turn: collect -> validate -> (misses are read) -> append to the journal ->
 *     apply -> (durable) -> reply
 * Promise   A push is applied in full or not at all, and once for each (stream, number). With a journal
 *           this holds over crashes: an answered push is there after the next open. Requests of one session
 *           take effect in the order of their sequence numbers, across resends and misses. No input changes
 *           anything unless it is valid; each is answered with a status and a reason, but bytes in which no
 *           header can be read, which are counted. Memory is bounded: rows by cache_bytes, waiting requests
 *           by requests_max.
 * Thread    All functions: the shard's own; counters may be read by any.
 * Memory    receive takes the message over. Replies go out through `reply`, which takes them over.
 * Failure   receive answers DP_AGAIN to the peer when the shard is full. A store's failure is answered to
 *           the requests it hit, and a failed write-back is what dp_shard_drained gives. After a failure of
 *           the journal, pushes are refused, but pulls continue. */
#ifndef DP_SHARD_SHARD_H
#define DP_SHARD_SHARD_H

#include "common/env/clock.h"
#include "common/model/range.h"
#include "common/wire/reply.h"
#include "server/checkpoint/copier.h"
#include "server/journal/journal.h"
#include "server/shard/observed.h"
#include "server/store/store.h"

struct dp_shard_options {
    uint32_t index, shards; /* of the cluster */
    uint64_t cluster, boot;
    uint64_t generation, history; /* of its store (store_id.h) */
    uint64_t store_id,
        register_id; /* of its store, and of the register that knows it, for clients; 0: none */
    /* Counts from 1970: other shards and live clients may know streams of a store that was thrown away, so this one's begin
     * at what it shows at the opening (dp_stream_of_client), and no client's are above it (admission.c). It may be set while the
     * shard runs. now_ns NULL: it shows 1970. */
    struct dp_clock wall;
    uint64_t cache_bytes;
    uint64_t salt; /* a secret of this process: row_cache.h */
    /* Pushes are journaled before they are answered, as `journal` says (disk, durability, sizes, thread, wake;
     * replay is the shard's). Not journaled: durability none. */
    bool journaled, recovers; /* recovers: the store was not closed cleanly, the journal has what it lacks */
    struct dp_journal_options journal;
    /* Pulls only: a push and a new table are refused (DP_UNSUPPORTED), and nothing is submitted to the store or written to the
     * journal's disk. Records that the store lacks are replayed into the cache, which must have space for them. */
    bool read_only;
    uint32_t requests_max;   /* waiting at once, of all sessions; 0: 1,024 */
    uint32_t taken_rows_max; /* rows of reads that are done, in one turn; 0: 8,192 */
    struct dp_store *store;  /* the caller's, open; outlives the shard */
    /* Called by dp_shard_open once it has recovered; a status other than DP_OK ends the opening. NULL: nothing is. */
    enum dp_status (*recovered)(void *context, struct dp_error *err);
    void *recovered_context;
    /* Copies the shard's part of a checkpoint; outlives the shard. NULL: an order for a checkpoint is refused. */
    struct dp_copier *copier;
    struct dp_clock clock;
    void (*reply)(void *context, const struct dp_peer *to, struct dp_message **message);
    /* Whether an answer with so many bytes of rows would be sent to the peer now; false: it would be dropped. A pull waits then, and
     * the shard asks again each turn: the caller turns once a peer has read something. NULL: always. */
    bool (*may_reply)(void *context, const struct dp_peer *to, uint64_t bytes);
    void *reply_context;
};

struct dp_shard;

/* Reads tables and push ids from the store's marks, and later changes from the journal. */
enum dp_status dp_shard_open(const struct dp_shard_options *options, struct dp_shard **out,
                             struct dp_error *err);
/* Without writing anything back: only after dp_shard_drained said so is nothing lost. */
void dp_shard_close(struct dp_shard **shard);

void dp_shard_receive(struct dp_shard *shard, const struct dp_peer *from, struct dp_message **message);
/* One turn over what was received and what the store completed. Never waits. Returns whether work is left
 * that needs no further input (call again at once). */
bool dp_shard_turn(struct dp_shard *shard);
/* In how many ms, at least 1, a shard that rests wants another turn though no request came: blocked pulls are
 * answered again and again. UINT32_MAX: it does not. */
uint32_t dp_shard_rest_ms(const struct dp_shard *shard);

/* From now on new requests are answered DP_STOPPING; those under way end; then a last write-back cycle
 * runs (write_back.c). */
void dp_shard_drain(struct dp_shard *shard);
/* DP_AGAIN: not yet (turn on); DP_OK: everything is in the store; else why not. */
enum dp_status dp_shard_drained(const struct dp_shard *shard, struct dp_error *err);

/* After dp_shard_drained gave DP_OK: the journal has pushes of a synchronous step that is open, which the next opening must replay. So
 * the store is not to be marked clean, and the journal stays. */
bool dp_shard_keeps_journal(const struct dp_shard *shard);
/* After dp_shard_drained gave DP_OK, best when the store is marked clean: the journal's segments are removed, the store has all that is
 * in them and says so. A crash within, or a failure, leaves some; the next opening removes those. */
enum dp_status dp_shard_end_journal(struct dp_shard *shard, struct dp_error *err);
/* Counters, by name, as metrics have them (counters.h); any thread. Returns how many were filled, at most
 * DP_COUNTERS_MAX. */
uint32_t dp_shard_counters(const struct dp_shard *shard, struct dp_counter counters[DP_COUNTERS_MAX]);
/* Those, the histograms and the refusals; any thread. */
void dp_shard_observe(const struct dp_shard *shard, struct dp_shard_observed *out);

#endif
