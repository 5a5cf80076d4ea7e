/* Dead orders: those of commands that were killed. Shards hold files and journal for them until they have heard nothing for 60 s, and
 * meanwhile refuse any other order.
 *     (DIR's lock) -> end -> our own order is begun -> sweep
 * Promise   Who has DIR's lock knows that nobody on this machine drives an order of another making-<order> in it (on some shared file
 *           systems flock is per machine): an order tells its cluster and the machine of its command by its upper half. Those of ours
 *           that a shard knows are abandoned; when all shards have begun another one, nobody copies for them, and their directories
 *           are removed. One that no shard knows may be of another cluster of the same id, whose shards still copy for it: its
 *           directory is removed if it is empty, and else left to dp_checkpoint_sweep.
 * Thread    One.
 * Failure   end: DP_STOPPING; DP_IO: DIR cannot be read. The first shard that does not answer in time ends it with DP_OK: the next order
 *           names the cause. sweep: what cannot be removed is logged; files of the pool go with the next prune or abandon. */
#ifndef DP_CHECKPOINT_DEAD_ORDERS_H
#define DP_CHECKPOINT_DEAD_ORDERS_H

#include "common/client/downpour.h"

#define DP_DEAD_ORDERS_MAX 16u   /* more are left to the next time */
#define DP_DEAD_ORDERS_MS  5000u /* for all of them together */

struct dp_dead_orders {
    uint64_t cluster, machine;
    const char *directory;
    bool (*stopped)(void *context);
    void *context;
    uint64_t order[DP_DEAD_ORDERS_MAX]; /* the rest is end's */
    bool known[DP_DEAD_ORDERS_MAX];     /* to a shard */
    uint32_t count;
};

/* This machine, since it was started. */
uint64_t dp_dead_orders_machine(void);
/* A new order of the cluster, driven from the machine; not 0. */
uint64_t dp_dead_orders_draw(uint64_t cluster, uint64_t machine);
DP_MUST_USE
enum dp_status dp_dead_orders_end(struct dp_dead_orders *orders, struct dp_client *client,
                                  struct dp_error *err);
void dp_dead_orders_sweep(const struct dp_dead_orders *orders);

#endif
