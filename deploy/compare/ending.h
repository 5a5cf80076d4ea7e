/* Ending: how a run of a comparison ended: well, diverged, or failed.
 *     diverged  It says so itself ("diverged" of the run), or it was trained to its end and its last weights are not finite, are worse than
 *               the baseline (the best constant, which is in the run's report), or are worse than those that it began with.
 *     failed    All other bad ends, and a run whose weights were not scored.
 * Promise   A run that diverged is a result: it did not reach the target, and ranks last at the end. No mode
 *           with such a run, or with one that failed, is compared by its other runs (claims.h).
 * Margin    A baseline of another set than the scored one, and a first sample of weights that had been
 *           trained already, are passed by 5% before they count. */
#ifndef DP_COMPARE_ENDING_H
#define DP_COMPARE_ENDING_H

#include "deploy/compare/comparison.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

enum dp_comparison_outcome { DP_COMPARISON_GOOD, DP_COMPARISON_DIVERGED, DP_COMPARISON_FAILED };

/* What shows a divergence. */
enum dp_ending_sign {
    DP_ENDING_NONE,
    DP_ENDING_STOPPED,    /* the run says so; its error, if any, says how */
    DP_ENDING_NOT_FINITE, /* of the last sample */
    DP_ENDING_BASELINE,   /* `end` is worse than `reference`, that of the best constant */
    DP_ENDING_BEGIN       /* `end` is not better than `reference`, that of the first sample */
};

struct dp_ending {
    enum dp_comparison_outcome outcome;
    enum dp_ending_sign sign;
    double end, reference; /* the metric; NaN: there is none */
};

/* root: of the comparison; run NULL: it failed. */
struct dp_ending dp_ending_of(const json_t *root, const json_t *run);
enum dp_comparison_outcome dp_comparison_outcome(const json_t *root, const json_t *run);
/* "ok", "diverged", "failed" */
const char *dp_ending_status(const json_t *root, const json_t *run);
/* Runs of a mode that ended so. */
size_t dp_ending_count(const json_t *root, size_t mode, enum dp_comparison_outcome outcome);
/* All runs of the mode that there are ended well, and there is one. */
bool dp_ending_is_whole(const json_t *root, size_t mode);
/* The metric of the best constant, by a run's report; NaN: it is not there. is_scored: of the set on which samples are scored. */
double dp_ending_baseline(const json_t *root, const json_t *run, bool *is_scored);

#endif
