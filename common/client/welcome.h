/* Welcome: whether the right shard answers a greeting.
 * Promise   These are refused: another place in the list of shards (DP_ARGUMENT); another store than
 *           before, a store that does not belong to those of the other shards, or one of another generation
 *           (DP_GENERATION); a malformed answer (DP_INVALID); the shard's own refusals. Else the link and
 *           its session remember the shard's store and register, and the stream that it gave.
 * Thread    The client's. */
#ifndef DP_CLIENT_WELCOME_H
#define DP_CLIENT_WELCOME_H

#include "common/client/link.h"

/* A server's generation, from any of its answers that has one: the first becomes the session's, and others must be the
 * same. */
enum dp_status dp_link_learn_generation(struct dp_link *link, const struct dp_reply *reply,
                                        struct dp_error *err);
enum dp_status dp_link_check_welcome(struct dp_link *link, const struct dp_reply *reply,
                                     struct dp_error *err);

#endif
