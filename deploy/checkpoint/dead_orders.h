/* Dead orders: those of commands that were killed. Shards hold files and journal for them until they have heard nothing for 60 s, and
 * meanwhile refuse any other order.
 *     (DIR's lock) -> end -> our own order is begun -> sweep
 * Promise   Who has DIR's lock knows that nobody drives an order of another making-<order> in it. Those of this cluster are
 *           abandoned; when all shards have begun another one, nobody copies for them, and what they left is removed. Another cluster's
 *           may still be copied for: an order tells its cluster by its upper half.
 * Thread    One.
 * Failure   DP_IO: DIR cannot be read, or what they left cannot be removed. An order that could not be abandoned ends by itself. */
#ifndef DP_CHECKPOINT_DEAD_ORDERS_H
#define DP_CHECKPOINT_DEAD_ORDERS_H

#include "common/client/downpour.h"

#define DP_DEAD_ORDERS_MAX 16u /* more are left to the next time */

struct dp_dead_orders {
    uint64_t cluster;
    uint64_t order[DP_DEAD_ORDERS_MAX];
    uint32_t count;
};

/* A new order of the cluster; not 0. */
uint64_t dp_dead_orders_draw(uint64_t cluster);
DP_MUST_USE
enum dp_status dp_dead_orders_end(struct dp_client *client, uint64_t cluster, const char *directory,
                                  struct dp_dead_orders *out, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_dead_orders_sweep(const struct dp_dead_orders *orders, const char *directory,
                                    struct dp_error *err);

#endif
