/* Ask one: one request to one server, outside of the order of requests, and the wait for its answer.
 * Thread    The client's.
 * Failure   As its wait (dp_client_await); the call is ended then. */
#ifndef DP_CLIENT_ASK_ONE_H
#define DP_CLIENT_ASK_ONE_H

#include "common/client/client_inner.h"

/* Issues one loose shard request (consumed, with its new call) to a link, waits, and gives the call: read what it
 * kept, then dp_client_end. */
DP_MUST_USE
enum dp_status dp_client_ask(struct dp_client *client, struct dp_link *link,
                             struct dp_shard_request **to_shard, const char *what, uint32_t timeout_ms,
                             struct dp_call **out, struct dp_error *err);

#endif
