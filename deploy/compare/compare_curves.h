/* Compare curves: a metric of each mode's runs over time or examples, on points that all modes have in common.
 * Memory    make allocates; free accepts NULL. */
#ifndef DP_COMPARE_COMPARE_CURVES_H
#define DP_COMPARE_COMPARE_CURVES_H

#include "deploy/compare/statistics.h"
#include "deploy/pages/colour.h"

#define DP_COMPARE_CURVE_POINTS 200u

struct dp_compare_curves {
    double end; /* where the last run of all ends; 0: there is none */
    double x[DP_COMPARE_CURVE_POINTS];
    struct {
        size_t known; /* points that are numbers */
        double y[DP_COMPARE_CURVE_POINTS], low[DP_COMPARE_CURVE_POINTS], high[DP_COMPARE_CURVE_POINTS];
    } mode[DP_COLOUR_MODES_MAX];
};

/* y: the mean over the good runs (ending.h) that have a value there, by the metric's scale; low, high: its 95% interval, as tables have them. NaN after the mode's last run, and where no run has a
 * value. over: "seconds" or "examples". NULL: no memory. */
struct dp_compare_curves *dp_compare_curves_make(const json_t *root, const char *key, const char *over);
/* x: losses from the least of all means up to `end`, the first of them; y: seconds to each, where all good runs of the mode reached it
 * after their second sample. */
struct dp_compare_curves *dp_compare_curves_to_loss(const json_t *root);
void dp_compare_curves_free(struct dp_compare_curves *curves);
/* Draws 1 - accuracy in its place. */
void dp_compare_curves_flip(struct dp_compare_curves *curves);

#endif
