/* Best: the N greatest of many scores, ties by their order.
 * Memory    16 bytes each. */
#ifndef DP_RUN_BEST_H
#define DP_RUN_BEST_H

#include "common/base/status.h"

#include <stddef.h>

struct dp_best {
    struct dp_best_one {
        double score;
        size_t at;
    } * one; /* the greatest first */
    size_t count, max;
};

enum dp_status dp_best_init(struct dp_best *out, size_t max, struct dp_error *err);
void dp_best_clear(struct dp_best *best);
/* at: ascending from call to call. */
void dp_best_offer(struct dp_best *best, double score, size_t at);

#endif
