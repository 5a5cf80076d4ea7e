/* Shard thread: one shard with its socket, its store and the loop that turns it.
 *     start: socket bound -> (every request: AGAIN, how far it is) store opened, journal replayed -> opened ->
 *     turns ... -> drain -> rows written back -> store marked clean -> journal closed -> join
 * Thread    Functions: the server's main thread. counters, observe, say, state: any, before the drain.
 * Failure   start gives why the socket could not be bound. A disk without room for the opening is waited
 *           for: the opening is tried again, and requests get the missing resource. A shard that could not
 *           be opened for another reason has ended, its state is not OK, and join gives why. After that the
 *           thread ends only on request, or when its store fails. */
#ifndef DP_SERVER_SHARD_THREAD_H
#define DP_SERVER_SHARD_THREAD_H

#include "common/net/net.h"
#include "common/wire/reply.h"
#include "server/checkpoint/copier_thread.h"
#include "server/shard/observed.h"
#include "server/store/store_id.h"

/* The journal of a shard (server/journal/journal.h); not journaled: durability none. */
struct dp_shard_thread_journal {
    bool journaled, synced; /* synced: survives loss of power, else the death of the process */
    uint64_t budget_bytes;
};

struct dp_shard_thread_options {
    struct dp_net *net;
    const char *endpoint, *directory; /* of this shard; copied */
    uint32_t index, shards;           /* in the cluster */
    uint64_t cluster, boot, cache_bytes;
    struct dp_shard_thread_journal journal;
    uint64_t salt;                    /* shard.h */
    bool read_only;                   /* nothing in `directory` is written (shard.h, rocks_store.h) */
    const struct dp_store_gate *gate; /* of its store (store_id.h); outlives the thread */
    struct dp_copier_thread *copier;  /* of the server; outlives the thread. NULL: no checkpoint is taken */
    void (*opened)(void *context);    /* from the shard's thread, once: it does not open any more */
    void *opened_context;
};

struct dp_shard_thread;

enum dp_status dp_shard_thread_start(const struct dp_shard_thread_options *options,
                                     struct dp_shard_thread **out, struct dp_error *err);
/* FAILED: it could not be opened, or was asked to drain before; join says why. */
enum dp_shard_thread_state { DP_SHARD_THREAD_OPENS, DP_SHARD_THREAD_SERVES, DP_SHARD_THREAD_FAILED };
enum dp_shard_thread_state dp_shard_thread_state(const struct dp_shard_thread *thread);
/* While it opens: how far it is, or what it lacks to open. Any thread. */
void dp_shard_thread_say(struct dp_shard_thread *thread, struct dp_error *text);
/* The one that its socket is bound to. */
const char *dp_shard_thread_endpoint(const struct dp_shard_thread *thread);
/* Orders it to drain; a shard that still opens gives up soon. dp_shard_thread_join waits for the end. */
void dp_shard_thread_drain(struct dp_shard_thread *thread);
/* DP_OK: every row is in the store, which is marked clean. DP_STOPPING: it was asked to drain before it had opened; the
 * next start does what was left. */
enum dp_status dp_shard_thread_join(struct dp_shard_thread **thread, struct dp_error *err);
/* None while it opens. */
uint32_t dp_shard_thread_counters(struct dp_shard_thread *thread,
                                  struct dp_counter counters[DP_COUNTERS_MAX]);
/* What it counted since it opened. Returns when that was, in seconds since 1970 by this machine's clock; 0:
 * it does not serve, and *out is not set. */
uint64_t dp_shard_thread_observe(struct dp_shard_thread *thread, struct dp_shard_observed *out);

#endif
