/* Heartbeats: a member shows the first server that it lives, and learns how long the others have been
 * silent.
 *     (now and then: a heartbeat) | silences: a heartbeat whose answer is waited for
 * Promise   Each heartbeat is a request of its own: an unanswered one is given up for the next, and never resent
 *           after a pause that grew with the server's silence. So a server that comes back hears all members
 *           soon.
 * Thread    The client's. */
#ifndef DP_CLIENT_HEARTBEATS_H
#define DP_CLIENT_HEARTBEATS_H

#include "common/client/downpour.h"

/* Before a place is taken, so that its silence counts from then: waits until the first server has heard of it. Nothing to do without
 * heartbeats. */
enum dp_status dp_client_heartbeats_begin(struct dp_client *client, uint32_t timeout_ms,
                                          struct dp_error *err);

#endif
