/* Push ids of several shards: the numbers that any of them has used up, and those that one of them lacks.
 * Every push goes to every shard, so two shards' ids differ by what was under way when they were taken.
 * Thread    Any, with ids of its own. */
#ifndef DP_IDS_PUSH_IDS_UNION_H
#define DP_IDS_PUSH_IDS_UNION_H

#include "server/ids/push_ids.h"

#include <stdbool.h>

/* Adds all that `from` has used up and forgotten, and the refusals it knows. The limits on wide streams and the quota do not count;
 * with more streams than fit the least recently used ones are forgotten. Fails only with DP_NOMEM: `into` has a part
 * of `from` then. */
enum dp_status dp_push_ids_merge(struct dp_push_ids *into, const struct dp_push_ids *from);

/* Visits, ascending by (stream, number), what `all` has used up and `own` has not; a stream that `own` has forgotten has
 * nothing that it lacks. visit gives false to end. */
void dp_push_ids_lacking(const struct dp_push_ids *own, const struct dp_push_ids *all,
                         bool (*visit)(void *context, uint64_t stream, uint64_t number), void *context);

#endif
