/* Claims: the differences between modes that a page may claim, and those of them that its data show.
 *     family    Fixed by the number of modes, before any data. Every two modes: the time to the target.
 *               Every mode against the first: examples to the target, metric at the end, speed. Two modes
 *               have 4 claims; five have 22.
 *     test      Student's t of the differences, paired by seed, on the quantity's scale (statistics.h).
 *               Runs of one seed have the same initial weights and order of data. If some run of the two
 *               modes did not reach the target, Fisher's exact test of the counts is used.
 *     Holm      The p values are sorted. The k-th of N is tested at 0.05 / (N - k + 1), up to the first
 *               failure (Holm 1979). If no modes differ, a page claims anything with a probability of 5% at
 *               most.
 * Promise   A claim agrees with its printed interval. The interval has the level of the claim's step, so it
 *           excludes "no difference" exactly if the difference is claimed.
 *           A mode with a run that diverged or failed is in no claim; nor are fewer than three pairs.
 * Instrument  The interval of a ratio of times to the target begins with the interval of (last sample
 *             below) / (first sample there), and ends with that of the opposite ratio. The interval of
 *             accuracies is at least as wide as the quantile times the test set's standard error. If the
 *             size of the test set is not known, an accuracy with the same difference at each seed shows
 *             nothing.
 * Memory    of fills a struct of {0}; clear frees it. */
#ifndef DP_COMPARE_CLAIMS_H
#define DP_COMPARE_CLAIMS_H

#include "common/base/status.h"
#include "deploy/compare/statistics.h"

#define DP_CLAIM_PAIRS 3u /* that show a difference, at least */

/* Of a mode against another one. */
struct dp_claim {
    enum dp_comparison_quantity quantity;
    size_t mode, beside;
    size_t n;          /* pairs; 0: they are not compared */
    bool by_count;     /* Fisher's test; the intervals have n 0 */
    size_t reached[2]; /* by_count: the target, of mode and beside */
    double p, alpha;   /* of the test; of its step: the intervals are of 1 - alpha */
    bool shown;
    bool coarse;                   /* it would be shown, were it not for the instrument */
    struct dp_interval ratio;      /* mode / beside; n 0: on a logit scale */
    struct dp_interval difference; /* mode - beside, in units of the quantity, about the middle of both */
    double seen; /* a difference of that size would be shown with a probability of 80%; NaN: not known */
    double seen_ratio; /* the same, as a ratio above 1 */
    /* On the scale: means and standard deviations of the differences, and of their bounds by the instrument. */
    struct dp_interval at, low, high;
    double middle, error;
    struct dp_scale scale;
};

struct dp_claims {
    const json_t *root; /* the comparison */
    size_t count;
    struct dp_claim *claim;
};

enum dp_status dp_claims_of(const json_t *root, struct dp_claims *out, struct dp_error *err);
void dp_claims_clear(struct dp_claims *claims); /* accepts {0} */
/* Of the family, whichever of the two comes first in it; n 0: it has none. */
struct dp_claim dp_claims_find(const struct dp_claims *claims, enum dp_comparison_quantity quantity,
                               size_t mode, size_t beside);
/* A difference that no page claims, with its plain 95% interval. */
struct dp_claim dp_claim_plain(const json_t *root, enum dp_comparison_quantity quantity, size_t mode,
                               size_t beside);
/* Sets "statistics" and "claims" of a comparison (README.md). */
enum dp_status dp_comparison_count(json_t *root, struct dp_error *err);

#endif
