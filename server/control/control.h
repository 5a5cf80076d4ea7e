/* Control: one thread of a server that answers the requests that do not concern rows: the register, the
 * leases and the members' heartbeats (on the first server only), notes, and the sum of the shards' counters.
 * Promise   Answers hello, status, note_put, notes_get, register_get, register_set, heartbeat, lease and, on the first
 *           server, checkpoint; refuses anything else with a reason. It never touches a shard's rows, so no request to
 *           it delays a push. A server that is not the first refuses register requests, heartbeats and leases and names
 *           the first server.
 * Thread    The server's main thread calls start and stop; idle_ms and each_note: any, in between. One thread
 *           inside owns the socket, the board, the register and the leases. */
#ifndef DP_CONTROL_CONTROL_H
#define DP_CONTROL_CONTROL_H

#include "common/net/net.h"
#include "common/wire/reply.h"
#include "server/control/board.h"

struct dp_control_register;

/* The strings are borrowed until start returns. */
struct dp_control_options {
    struct dp_net *net;
    const char *endpoint;
    uint64_t cluster, boot;
    uint32_t shards; /* of the cluster, which the register's value "stores" must have; 0: any number */
    uint64_t generation, history; /* of its stores; 0, 0: dp_control_set_generation gives them later */
    /* The server's counters, summed over its shards; called on the control thread. */
    uint32_t (*counters)(void *context, struct dp_counter counters[DP_COUNTERS_MAX]);
    /* Takes an order of a checkpoint of the cluster (server/coordinator); NULL: this server makes none. */
    enum dp_status (*checkpoint)(void *context, const struct dp_checkpoint_ask *ask,
                                 struct dp_checkpoint_state *state, struct dp_checkpoint_made *made,
                                 struct dp_error *err);
    /* On the control thread, before start returns: the register is open, and no request was answered. NULL:
     * nothing is to be done. */
    enum dp_status (*prove)(void *context, struct dp_control_register *values, struct dp_error *err);
    void *context;
    const char *register_directory; /* directory of the register's file; NULL: this is not the first server */
    /* its control endpoint, named in refusals if register_directory is NULL */
    const char *first_server;
    bool read_only;
};

struct dp_control;

/* Returns once the thread listens, or with the reason why it cannot. DP_CORRUPT: the register is damaged.
 * DP_IN_USE: another server holds the register. */
enum dp_status dp_control_start(const struct dp_control_options *options, struct dp_control **out,
                                struct dp_error *err);
/* The endpoint that its socket is bound to. */
const char *dp_control_endpoint(const struct dp_control *control);
/* What the server's stores say of their generation; 0, 0: all of them are new (the register may know it, or it is the
 * first one). Once, from any thread; not if the options had it. */
void dp_control_set_generation(struct dp_control *control, uint64_t generation, uint64_t history);
void dp_control_stop(struct dp_control **control); /* accepts NULL inside */

/* How long its thread has not come round; about a second at most while it is well. */
uint64_t dp_control_idle_ms(const struct dp_control *control);
/* Calls `see` for each note whose name starts with the prefix, in name order, with its age. The control
 * thread waits that long before it puts a note: `see` only copies. */
void dp_control_each_note(struct dp_control *control, const char *prefix,
                          void (*see)(void *context, const struct dp_board_note *note, uint64_t age_ns),
                          void *context);

#endif
