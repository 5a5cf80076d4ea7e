/* Statistics: what runs with several seeds say of modes, and of the difference between two.
 *     interval    mean, sample standard deviation, and the 95% interval of the mean by Student's t ("Student" 1908): mean +- t sd / sqrt(n)
 *     difference  of two modes, paired by seed: the interval of the differences. Both had the same data order and initial weights, so what a
 *                 seed does to both is not in it.
 *     ratio       the same of logarithms, back as a factor
 * Promise   Nothing is told of fewer than two values but their mean; a difference is shown only by three pairs and more, and where its
 *           interval does not hold 0. Each interval is for one comparison: of twenty true zeros one is missed on average. */
#ifndef DP_COMPARE_STATISTICS_H
#define DP_COMPARE_STATISTICS_H

#include "common/base/status.h"
#include "deploy/compare/comparison.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define DP_STATISTICS_SHOWN 3u /* pairs that show a difference, at least */

struct dp_interval {
    size_t n;
    double mean, sd, low, high; /* n 0: mean NaN; n below 2: sd, low and high NaN */
};

/* The 0.975 quantile of Student's t with so many degrees of freedom, 1 or more. */
double dp_student_t(size_t freedom);
/* Values that are not finite are left out. */
struct dp_interval dp_interval_of(const double *values, size_t count);

/* Of a mode over its seeds; its interval begins at 0 where it would begin below. */
struct dp_interval dp_statistics_mode(const json_t *root, size_t mode, enum dp_comparison_quantity quantity);
/* mode - beside, over the seeds in which both have a value; ratio: mode / beside, where all are positive, else n 0. */
struct dp_interval dp_statistics_pair(const json_t *root, size_t mode, size_t beside,
                                      enum dp_comparison_quantity quantity, struct dp_interval *ratio);
/* Whether a difference is shown: three pairs, and the interval does not hold 0. */
bool dp_statistics_shows(const struct dp_interval *difference);

/* Sets "statistics" of a comparison; of a target, a difference is "shown" only where both modes reached it in each run that ended well.
 * DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_comparison_count(json_t *root, struct dp_error *err);

#endif
