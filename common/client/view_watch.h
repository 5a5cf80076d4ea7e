/* View watch: a member with a pull that is blocked for long looks whether the view has changed.
 *     a pull is held for 2 s -> register_get, answered when there is a newer view -> handed to every shard
 * Why       A process that joins or leaves hands its view to all shards. If it dies before that, a shard
 *           would wait for a member that has left, or for a process that was replaced. A waiting member
 *           learns it from the register.
 * Promise   One request for the register at a time, which waits there. It never waits.
 * Thread    The client's. */
#ifndef DP_CLIENT_VIEW_WATCH_H
#define DP_CLIENT_VIEW_WATCH_H

#include "common/client/client_inner.h"

/* From now on, whenever replies were taken in. news: gets a newer view of the client's run. */
void dp_client_view_watch_begin(struct dp_client *client,
                                void (*news)(struct dp_client *client, const struct dp_view *view));
/* "run/7/view": the value of the register. */
void dp_client_view_name(uint32_t run, char *name, size_t size);

#endif
