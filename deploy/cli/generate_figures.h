/* Generate, figures: loss and AUC of the true probabilities of generated labels, row by row, in fixed
 * memory. No model of the rows beats them by more than chance. The loss and AUC of a constant are added,
 * which every model should beat.
 * Promise   The loss is exact. AUC counts two log odds as equal that fall into one bin of 1/2048: within
 *           1e-4 of the exact.
 * Thread    Each struct is one thread's. */
#ifndef DP_CLI_GENERATE_FIGURES_H
#define DP_CLI_GENERATE_FIGURES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_TRUTH_BINS 65536 /* of the log odds -16 .. 16 */

struct dp_truth {
    uint64_t rows, positives;
    double loss_sum;
    uint64_t bin[DP_TRUTH_BINS][2]; /* by label */
};

struct dp_truth_figures {
    double base_rate;     /* share of labels 1; NaN without rows, as all */
    double loss_constant; /* logloss of saying the base rate of every row */
    double loss, auc;     /* of the truth; auc NaN where one class is missing */
};

void dp_truth_add(struct dp_truth *truth, double probability, bool label);
void dp_truth_figures(const struct dp_truth *truth, struct dp_truth_figures *out);

#endif
