#include "deploy/run/best.h"

#include <stdlib.h>

enum dp_status dp_best_init(struct dp_best *out, size_t max, struct dp_error *err)
{
    *out = (struct dp_best){.one = calloc(max + 1, sizeof *out->one), .max = max};
    return out->one ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the best %zu", max);
}

void dp_best_clear(struct dp_best *best)
{
    free(best->one);
    *best = (struct dp_best){0};
}

void dp_best_offer(struct dp_best *best, double score, size_t at)
{
    if (best->count == best->max && (best->max == 0 || !(score > best->one[best->max - 1].score)))
        return;
    size_t to = best->count < best->max ? best->count++ : best->max - 1;
    for (; to > 0 && score > best->one[to - 1].score; to--)
        best->one[to] = best->one[to - 1];
    best->one[to] = (struct dp_best_one){score, at};
}
