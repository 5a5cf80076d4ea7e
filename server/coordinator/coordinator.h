/* Coordinator: the thread of the first server that makes checkpoints of the cluster (coordination.h), one at a time: when a
 * client asks for one, and, if the cluster file says so (checkpoint), every so many seconds and at last.
 *     new -> (control, which takes the register's lock) -> start -> ... -> give_up -> stop
 *     take BEGIN -> (order, prune) -> COPIED | ABANDONED;  LOOK: how far it is;  ABANDON: it is given up
 * Promise   A client that dies changes nothing: the checkpoint is completed. A stop gives it up. After a kill the next
 *           life removes what it left, as its order and directory are in a file, DIRECTORY/checkpoint-order.
 *           A client that is silent for 60 s is waited for no longer: wait_ms is over.
 *           The states of the last eight orders can be asked for.
 * Thread    new, start, give_up, stop: main's. take: any, also before start. take_last: any one.
 * Failure   take: DP_IN_USE: another order is under way. DP_INVALID: an order of a shard. Failures of a checkpoint are in
 *           its state, and in the log. */
#ifndef DP_COORDINATOR_COORDINATOR_H
#define DP_COORDINATOR_COORDINATOR_H

#include "common/config/cluster.h"
#include "common/wire/checkpoint.h"

/* All borrowed until stop. */
struct dp_coordinator_options {
    const struct dp_cluster *cluster;
    const char
        *file; /* its file, which is read again for each checkpoint: a further run may have other settings */
    const char *directory; /* of this server */
};

struct dp_coordinator;

enum dp_status dp_coordinator_new(const struct dp_coordinator_options *options, struct dp_coordinator **out,
                                  struct dp_error *err);
/* Once no other process can be the first server: what an earlier one left is removed. */
enum dp_status dp_coordinator_start(struct dp_coordinator *coordinator, struct dp_error *err);
/* *made: filled in where *state is COPIED. */
enum dp_status dp_coordinator_take(struct dp_coordinator *coordinator, const struct dp_checkpoint_ask *ask,
                                   struct dp_checkpoint_state *state, struct dp_checkpoint_made *made,
                                   struct dp_error *err);
/* The one by the cluster file, now: the servers are to stop. One that fails is tried again for retry_ms: a server
 * may be starting. Returns once it has ended (the log says how), or as soon as `stopped` says so. */
void dp_coordinator_take_last(struct dp_coordinator *coordinator, uint32_t retry_ms,
                              bool (*stopped)(void *context), void *context);
/* The order under way ends, as a rule within the 2 s that this waits: a disk that hangs holds up stop, not the shards. */
void dp_coordinator_give_up(struct dp_coordinator *coordinator); /* accepts NULL */
void dp_coordinator_stop(
    struct dp_coordinator **coordinator); /* accepts NULL inside, and one that was not started; leaves NULL */

#endif
