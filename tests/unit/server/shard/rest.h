/* Rest: does a shard that says nothing goes on really rest? Its thread sleeps then, so what it forgot to say would stand
 * still until something else wakes it. No turn after such a turn may do anything, unless the store completed a job, time
 * passed or a message came.
 *     open the store through it -> dp_shard_turn ... -> rest_check when it said false and before anything else comes */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_REST_H
#define DP_TESTS_UNIT_SERVER_SHARD_REST_H

#include "server/shard/shard.h"
#include "tests/lib/fake_store.h"

struct rest {
    struct dp_store store; /* the fake's */
    struct dp_fake_store *fake;
    uint32_t under_way; /* jobs that the shard has not heard of */
    uint64_t taken;     /* by the store */
    char did[64];
};

/* As dp_fake_store_open; what it gives watches over the fake's. rest: the caller's, outlives the store. */
struct dp_store rest_open(struct rest *rest, struct dp_fake_store *fake);
/* NULL: it rests, or a completed job waits to be looked at; else what it did, until the next call. others: whatever else it may do to the
 * world, summed up; it is asked before and after. */
const char *rest_check(struct rest *rest, struct dp_shard *shard, uint64_t (*others)(void *context),
                       void *context);

#endif
