/* The client over a given transport and clock: dp_client_open uses sockets, tests use their own. */
#ifndef DP_CLIENT_CLIENT_OVER_H
#define DP_CLIENT_CLIENT_OVER_H

#include "common/client/downpour.h"
#include "common/env/clock.h"
#include "common/net/transport.h"

/* Servers 0 .. shard_count-1 of the transport are the shards, shard_count the control. Takes the transport
 * over, also on failure. session: a number that no other client has; 0: a random one. */
enum dp_status dp_client_open_over(const struct dp_client_options *options,
                                   const struct dp_transport *transport, const struct dp_clock *clock,
                                   uint64_t session, struct dp_client **out, struct dp_error *err);

#endif
