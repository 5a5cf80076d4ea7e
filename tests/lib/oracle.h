/* Oracle: what a graph gives, in float64 by plain loops, written from graph.h's formulas and independent of
 * program.c and every backend. Each number is dual (value, derivative): the values alone serve finite
 * differences; the derivatives are forward-mode differentiation, exact up to rounding.
 * Thread    Any.                                                                                      */
#ifndef DP_TESTS_LIB_ORACLE_H
#define DP_TESTS_LIB_ORACLE_H

#include "worker/compute/graph.h"
#include "worker/read/batch.h"

struct dp_oracle_result {
    double loss;
    double derivative; /* d loss / d weights[parameter][index]; 0 where parameter is -1 */
};

/* weights: as dp_program_forward's, in float64. output: NULL or [examples, width of the output node]. */
struct dp_oracle_result dp_oracle_run(const struct dp_graph *graph, const struct dp_batch *batch,
                                      double *const *weights, int parameter, size_t index, double *output);
/* Central difference of the loss; the weight is put back. */
double dp_oracle_difference(const struct dp_graph *graph, const struct dp_batch *batch,
                            double *const *weights, int parameter, size_t index);

#endif
