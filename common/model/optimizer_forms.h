/* Optimizer forms: shared by the portable and the AVX2 form of each optimizer; inside this room only. The
 * scalars of a call (dependent on rate and step) are worked out here, once for both forms. */
#ifndef DP_MODEL_OPTIMIZER_FORMS_H
#define DP_MODEL_OPTIMIZER_FORMS_H

#include "common/model/optimizer.h"
#include "common/model/row.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

/* Adam's corrections at one step count, moved from m and v to the rate and epsilon (end of section 2 of
 * Kingma and Ba 2015), with epsilon scaled too, so that it is algorithm 1 exactly: rate (m / (1-b1^t)) /
 * (sqrt(v / (1-b2^t)) + epsilon)  ==  rate scale m / (sqrt(v) + epsilon_t) scale = sqrt(1-b2^t) / (1-b1^t),
 * epsilon_t = epsilon sqrt(1-b2^t)                               */
struct dp_correction {
    double scale;
    float epsilon;
};

struct dp_optimizer;
/* As dp_optimizer_apply_rows. */
typedef uint32_t (*dp_apply)(const struct dp_optimizer *, void *const *rows, uint32_t n,
                             const void *gradients, float rate);
/* Applies from a coordinate on; the row's step is set already. */
typedef bool (*dp_rest)(const struct dp_optimizer *, void *row, const void *gradient, float rate,
                        uint32_t from);

struct dp_optimizer {
    dp_apply apply;
    dp_rest rest; /* the portable form */
    uint32_t dim;
    float gradient_max; /* the largest one whose square, as the optimizer takes it, is finite */
    struct dp_optimizer_spec set;
    /* corrections[t - 1] for t <= corrections_len. */
    uint32_t corrections_len;
    bool corrections_settled; /* past the table both factors are 1 in f32 */
    struct dp_correction *corrections;
    uint32_t *corrections_users; /* optimizers that have the same ones; the last one frees them */
};

dp_rest dp_optimizer_portable(const struct dp_optimizer_spec *spec);
/* NULL where this build, this processor or this optimizer has no such form. */
dp_apply dp_optimizer_avx2(const struct dp_optimizer_spec *spec);

/* step >= 1; not from the table. */
struct dp_correction dp_correction_at(const struct dp_optimizer_spec *set, uint32_t step);

/* Running means below it are 0. Where gradients stay away a mean shrinks into the subnormal numbers and rounds to itself
 * there for ever, and each operation on it costs a processor a hundred times as much. */
#define DP_TINY 0x1p-120f

static inline uint32_t dp_step_next(void *row)
{
    uint32_t step = dp_row_step(row);
    step += step < UINT32_MAX;
    dp_row_set_step(row, step);
    return step;
}

/* fmaxf, without its call. */
static inline float dp_not_below(float negative)
{
    return negative < -FLT_MAX ? -FLT_MAX : negative;
}

struct dp_adam {
    float l2, beta1, beta2, rest1, rest2; /* rest: 1 - beta */
    float minus_rate, minus_decay, epsilon;
};

/* All but what depends on a row's step. */
static inline struct dp_adam dp_adam_of(const struct dp_optimizer *optimizer, float rate)
{
    const struct dp_optimizer_spec *set = &optimizer->set;
    return (struct dp_adam){
        .l2 = set->l2,
        .beta1 = set->beta1,
        .beta2 = set->beta2,
        .rest1 = 1.0f - set->beta1,
        .rest2 = 1.0f - set->beta2,
        .minus_decay = dp_not_below(-(rate * set->decay)),
    };
}

static inline void dp_adam_correct(const struct dp_optimizer *optimizer, uint32_t step, float rate,
                                   struct dp_adam *at)
{
    struct dp_correction correction = {1.0, optimizer->set.epsilon};
    if (step <= optimizer->corrections_len)
        correction = optimizer->corrections[step - 1];
    else if (!optimizer->corrections_settled)
        correction = dp_correction_at(&optimizer->set, step);
    at->minus_rate = dp_not_below((float)(-(double)rate * correction.scale));
    at->epsilon = correction.epsilon;
}

/* Signs are turned in these scalars, not in the lanes: to turn a NaN's would tell the forms apart. */
struct dp_ftrl {
    float l1, l2, beta;
    float per_rate, minus_per_rate; /* 1 / rate */
    float minus_first_den;          /* denominator of the closed form at n = 0 */
    bool first;                     /* the row's first step */
};

/* All but `first`. */
static inline struct dp_ftrl dp_ftrl_of(const struct dp_optimizer *optimizer, float rate)
{
    const struct dp_optimizer_spec *set = &optimizer->set;
    float per_rate = 1.0f / rate;
    return (struct dp_ftrl){
        .l1 = fabsf(set->l1), /* of -0 too: its sign is set by a bitwise or */
        .l2 = set->l2,
        .beta = set->ftrl_beta,
        .per_rate = per_rate,
        .minus_per_rate = -per_rate,
        .minus_first_den = dp_not_below(-fmaf(set->ftrl_beta, per_rate, set->l2)),
    };
}

#endif
