/* Compare target: the metric by which modes are compared in time, where no --target is given.
 *     of each mode: its median seed's metric over the last tenth of its samples (the worst there) -> of the best mode -> less a margin
 * Choice    95% of the way from the baseline (the best constant; else the first sample) to the value that
 *           the best mode keeps: near its end, and far enough below for its other seeds to be there, too. A
 *           mode that never gets there is said not to.
 * Why       A target that the worst mode sets says nothing about the others: it can lie below chance. */
#ifndef DP_COMPARE_COMPARE_TARGET_H
#define DP_COMPARE_COMPARE_TARGET_H

#include <jansson.h>

/* {"metric", "value", "chosen": "automatic", "of": the best mode, "keeps": its metric, "baseline"}; NULL: no mode ended well with
 * every seed, so none is compared with others. */
json_t *dp_compare_target_choose(const json_t *root);

#endif
