#include "deploy/cli/generate_figures.h"

#include <math.h>
#include <stddef.h>

#define HALF (DP_TRUTH_BINS / 2)

static double log_or_0(double share)
{
    return share > 0 ? share * log(share) : 0;
}

void dp_truth_add(struct dp_truth *truth, double probability, bool label)
{
    double odds = log(probability / (1 - probability)), at = HALF + floor(odds * (HALF / 16));
    size_t bin = at < 0 ? 0 : at >= DP_TRUTH_BINS ? DP_TRUTH_BINS - 1 : (size_t)at;
    truth->rows++;
    truth->positives += label;
    truth->loss_sum -= log(label ? probability : 1 - probability);
    truth->bin[bin][label]++;
}

void dp_truth_figures(const struct dp_truth *truth, struct dp_truth_figures *out)
{
    double rows = (double)truth->rows, positives = (double)truth->positives, negatives = rows - positives;
    double below = 0, right = 0;
    for (size_t i = 0; i < DP_TRUTH_BINS; i++) {
        right += (double)truth->bin[i][1] * (below + (double)truth->bin[i][0] / 2);
        below += (double)truth->bin[i][0];
    }
    out->base_rate = positives / rows; /* 0 / 0 is NaN */
    out->loss_constant = -log_or_0(out->base_rate) - log_or_0(1 - out->base_rate);
    out->loss = truth->loss_sum / rows;
    out->auc = right / (positives * negatives);
}
