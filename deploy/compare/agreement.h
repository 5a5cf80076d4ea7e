/* Agreement: whether two comparisons of one thing agree, for `downpour report DIR --against REPORT`.
 *     settings, data, build, machine: the differences;  results of each mode that both have: whether each mean is in the other's interval
 * Promise   A result agrees if its mean here is in the 95% interval there, and that mean in the interval
 *           here. With fewer than two values on either side it is not known. Means are of good runs
 *           (comparison.h); a mode that diverged with some run on one side alone differs. Where both targets
 *           were chosen afterwards for one metric, times and examples on both sides are to that of there. */
#ifndef DP_COMPARE_AGREEMENT_H
#define DP_COMPARE_AGREEMENT_H

#include <jansson.h>
#include <stdio.h>

/* here, there: roots of comparisons. As text, the sum in the first line. */
void dp_agreement_put(FILE *to, const json_t *here, const json_t *there);

#endif
