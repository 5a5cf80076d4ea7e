/* Factors: scores of many users with many items, for models whose score is a product of two vectors, plus
 * biases.
 * Thread    Any; the product uses the threads that the CPU backend set. */
#ifndef DP_COMPUTE_FACTORS_H
#define DP_COMPUTE_FACTORS_H

#include <stdint.h>

struct dp_factors {
    uint32_t width;
    const float *user, *item;           /* [users][width], [items][width] */
    const float *user_bias, *item_bias; /* [users], [items]; NULL: 0 */
    float bias;
};

/* out: [users][items]. */
void dp_factors_scores(const struct dp_factors *factors, uint32_t users, uint32_t items, float *out);

#endif
