/* Welcome: whether the right shard answers a greeting.
 * Promise   Refused: another place in the list of shards (DP_ARGUMENT), another store than before, one that
 *           does not belong with those of the other shards, or of another generation than these
 *           (DP_GENERATION), an answer that is none (DP_INVALID), and the shard's own refusals. Else the
 *           link and its session remember the shard's store and register, and the stream that it gave.
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
