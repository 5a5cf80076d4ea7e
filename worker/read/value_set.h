/* Value set: counts the different values of a column, by their hashes, up to a limit. Private to this room.
 *     {.max} -> see, see, ... -> clear
 * Promise   `count` is exact up to `max`. Once there are more, the set is full: cells stops growing.
 * Thread    One.
 * Memory    16 to 32 bytes a value.
 * Failure   DP_NOMEM. */
#ifndef DP_READ_VALUE_SET_H
#define DP_READ_VALUE_SET_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_value_set {
    uint64_t *slot; /* 0: free */
    uint32_t slots, count, max;
    uint64_t cells; /* that were seen until the set was full */
    bool full;
};

/* hash: spread over all 64 bits. */
enum dp_status dp_value_set_see(struct dp_value_set *set, uint64_t hash, struct dp_error *err);
void dp_value_set_clear(struct dp_value_set *set); /* keeps the counts */

#endif
