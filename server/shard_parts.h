/* Shard parts: the parts of a shard: its store, its journal's disk, its logic. Opened all or none.
 *     store -> journal's directory -> tables, push ids -> journal replayed
 * Promise   The store is marked open last. So if a later part of an opening fails, a clean store stays
 *           clean.
 * Thread    open and close: any one, not at the same time. progress: open writes, any reads; stop may be set
 *           by any, and open then gives DP_STOPPING soon. */
#ifndef DP_SERVER_SHARD_PARTS_H
#define DP_SERVER_SHARD_PARTS_H

#include "server/shard/shard.h"
#include "server/shard_thread.h"

#include <stdatomic.h>

enum dp_shard_phase {
    DP_SHARD_OPENING,
    DP_SHARD_ASKING, /* the first server, whether this is its store */
    DP_SHARD_CHECKING,
    DP_SHARD_REPLAYING
};

struct dp_shard_progress {
    atomic_bool stop;
    atomic_int phase;                       /* enum dp_shard_phase */
    _Atomic uint64_t done_bytes, all_bytes; /* of the journal, in this phase */
};

struct dp_shard_parts {
    struct dp_store store;
    struct dp_store_id id;
    struct dp_disk disk; /* the journal's */
    struct dp_shard *shard;
    struct dp_copier copier; /* of this shard; {0}: none */
    struct dp_shard_progress progress;
};

struct dp_shard_parts_options {
    const struct dp_shard_thread_options *thread;
    const char *directory;
    void (*wake)(void *context); /* from threads of store and journal */
    void (*reply)(void *context, const struct dp_peer *to, struct dp_message **message);
    bool (*may_reply)(void *context, const struct dp_peer *to, uint64_t bytes);
    void *context; /* of both */
};

enum dp_status dp_shard_parts_open(struct dp_shard_parts *parts, const struct dp_shard_parts_options *options,
                                   struct dp_error *err);
void dp_shard_parts_close(struct dp_shard_parts *parts); /* of what was not opened: no effect */
/* While it opens: what requests are answered. options: the thread's, constant. */
void dp_shard_parts_say(const struct dp_shard_parts *parts, const struct dp_shard_thread_options *options,
                        struct dp_error *err);

/* The largest segment of a journal with this budget. */
uint64_t dp_shard_segment_bytes(uint64_t budget_bytes);

#endif
