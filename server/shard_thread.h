/* Shard thread: one shard with its socket, its store and the loop that turns it.
 *     start: socket bound -> store opened -> journal's directory opened -> shard loaded, journal replayed ->
 *     turns ... -> drain -> rows written back -> store marked clean -> journal closed -> join
 * Thread    Functions: the server's main thread. counters: any.
 * Failure   start gives why; after that the thread ends only when it is told to, or when its store fails. */
#ifndef DP_SERVER_SHARD_THREAD_H
#define DP_SERVER_SHARD_THREAD_H

#include "common/net/net.h"
#include "common/wire/reply.h"

/* The journal of a shard (server/store/journal.h); not journaled: durability none. */
struct dp_shard_thread_journal {
    bool journaled, synced; /* synced: survives loss of power, else the death of the process */
    uint64_t budget_bytes;
};

struct dp_shard_thread_options {
    struct dp_net *net;
    const char *endpoint, *directory; /* of this shard; copied */
    uint32_t index, shards;           /* in the cluster */
    uint64_t cluster, generation, boot, cache_bytes;
    struct dp_shard_thread_journal journal;
    uint64_t salt; /* shard.h */
};

struct dp_shard_thread;

DP_MUST_USE
enum dp_status dp_shard_thread_start(const struct dp_shard_thread_options *options,
                                     struct dp_shard_thread **out, struct dp_error *err);
/* Tells it to drain. dp_shard_thread_join waits for the end. */
void dp_shard_thread_drain(struct dp_shard_thread *thread);
/* DP_OK: every row is in the store, which is marked clean. */
DP_MUST_USE
enum dp_status dp_shard_thread_join(struct dp_shard_thread **thread, struct dp_error *err);
uint32_t dp_shard_thread_counters(const struct dp_shard_thread *thread,
                                  struct dp_counter counters[DP_COUNTERS_MAX]);

#endif
