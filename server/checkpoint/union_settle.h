/* Union, settled: which pushes of a union are exceptions, and the ids without them. Of union.c only. */
#ifndef DP_CHECKPOINT_UNION_SETTLE_H
#define DP_CHECKPOINT_UNION_SETTLE_H

#include "server/checkpoint/union.h"

/* left_out: [shards], what each one lacks for good, each a part of lacking; NULL: nothing. Sets ids and exceptions from all and had;
 * all loses the exceptions. */
DP_MUST_USE
enum dp_status dp_union_settle(struct dp_union *cut, const struct dp_union_lacking *left_out,
                               struct dp_error *err);

#endif
