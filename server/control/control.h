/* Control: the one thread of a server that answers what has nothing to do with rows: notes, and the sum of
 * its shards' counters.
 * Promise   Answers hello, status, note_put and notes_get; anything else is refused with a reason. It never
 *           touches a shard's rows, so that whatever is asked of it, pushes go on.
 * Thread    start and stop: the server's main thread. One thread inside, which owns the socket and the
 *           board. */
#ifndef DP_CONTROL_CONTROL_H
#define DP_CONTROL_CONTROL_H

#include "common/net/net.h"
#include "common/wire/reply.h"

struct dp_control_options {
    struct dp_net *net;
    const char *endpoint;
    uint64_t cluster, generation, boot;
    /* The server's counters, summed over its shards; called on the control thread. */
    uint32_t (*counters)(void *context, struct dp_counter counters[DP_COUNTERS_MAX]);
    void *context;
};

struct dp_control;

/* Returns when it listens, or with why it does not. */
DP_MUST_USE
enum dp_status dp_control_start(const struct dp_control_options *options, struct dp_control **out,
                                struct dp_error *err);
void dp_control_stop(struct dp_control **control); /* accepts NULL inside */

#endif
