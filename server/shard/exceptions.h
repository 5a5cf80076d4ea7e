/* Exceptions: a push of which a restored store has some keys already (server/durable/push_exceptions.h) loses these before it is
 * applied, so that its record has what is applied, and redo asks nobody.
 * Thread    The shard's. */
#ifndef DP_SHARD_EXCEPTIONS_H
#define DP_SHARD_EXCEPTIONS_H

#include "server/durable/push_ids.h"
#include "server/shard/sessions.h"

/* *changed: the push's sections have no keys any more that the store has; those that had no others are gone. What is left of the others
 * is copied, and belongs to the push's message. waiting->lookup is to be made anew then. DP_NOMEM: nothing is changed. */
DP_MUST_USE
enum dp_status dp_exceptions_pass_over(const struct dp_push_ids *ids, struct dp_waiting *waiting,
                                       bool *changed, struct dp_error *err);

#endif
