/* Student: the distributions behind intervals and tests: Student's t ("Student" 1908), the normal one, and Fisher's exact test of two counts.
 * Accuracy  Seven digits; a quantile is the value whose probability is the one asked for.
 * Why       Own code: GSL has these functions, but under the GPL, which would then cover each build of `downpour`.
 * Two sides A probability p is always that of both tails: of a value at least this far from 0. */
#ifndef DP_COMPARE_STUDENT_H
#define DP_COMPARE_STUDENT_H

#include <stddef.h>

/* freedom: 1 or more; p: in (0, 1). */
double dp_student_p(double t, size_t freedom);
double dp_student_quantile(double p, size_t freedom);
/* How far from 0 a mean lies, in standard errors, for a test at p to see it with a probability of `power`: of noncentral t (Johnson and Welch
 * 1940). power: at least 0.5. */
double dp_student_shift(double p, double power, size_t freedom);
double dp_normal_p(double z);
double dp_normal_quantile(double p);
/* `one` of `ones` against `other` of `others`: of all tables with these sums, those that are not more likely (Fisher 1922). */
double dp_fisher_p(size_t one, size_t ones, size_t other, size_t others);

#endif
