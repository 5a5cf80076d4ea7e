#include "deploy/compare/claims.h"

#include "deploy/compare/student.h"

#include <math.h>
#include <stdlib.h>

#define ALPHA     0.05 /* of a page */
#define POWER     0.80
#define NO_SPREAD 1e-12
#define OPEN      7.0 /* a factor of 1,000 */

/* ---- evidence: differences on the scale */

static void take_pairs(const json_t *root, struct dp_claim *c)
{
    size_t seeds = dp_comparison_seeds(root);
    double *at = calloc(4 * seeds + 1, sizeof *at), *low = at + seeds, *high = low + seeds,
           *middle = high + seeds;
    for (size_t s = 0; at && s < seeds; s++) {
        const json_t *one = dp_comparison_run_of(root, c->mode, s),
                     *other = dp_comparison_run_of(root, c->beside, s);
        struct dp_comparison_span a = dp_comparison_span(root, one, c->quantity);
        struct dp_comparison_span b = dp_comparison_span(root, other, c->quantity);
        at[s] = dp_scale_to(&c->scale, a.at) - dp_scale_to(&c->scale, b.at);
        low[s] = dp_scale_to(&c->scale, a.low) - dp_scale_to(&c->scale, b.high);
        high[s] = dp_scale_to(&c->scale, a.high) - dp_scale_to(&c->scale, b.low);
        middle[s] = (dp_scale_to(&c->scale, a.at) + dp_scale_to(&c->scale, b.at)) / 2;
    }
    const struct dp_interval of_at = dp_interval_of(at, at ? seeds : 0, ALPHA),
                             of_low = dp_interval_of(low, at ? seeds : 0, ALPHA),
                             of_high = dp_interval_of(high, at ? seeds : 0, ALPHA);
    c->n = of_at.n;
    c->at = of_at.mean, c->at_sd = of_at.sd;
    c->low = of_low.mean, c->low_sd = of_low.sd;
    c->high = of_high.mean, c->high_sd = of_high.sd;
    c->middle = dp_interval_of(middle, at ? seeds : 0, ALPHA).mean;
    c->error = dp_scale_error(&c->scale, c->middle);
    free(at);
}

/* Of a mean of n differences, that it is 0. */
static double p_of(double mean, double sd, size_t n)
{
    if (sd < NO_SPREAD)
        return fabs(mean) < NO_SPREAD ? 1 : 0;
    return dp_student_p(mean / (sd / sqrt((double)n)), n - 1);
}

/* The bounds say nothing: some sample below the target is the first one. */
static bool is_open(const struct dp_claim *c)
{
    return c->high - c->low > OPEN;
}

/* What is known shows a difference, given a spread that can be judged. */
static bool is_enough(const struct dp_claim *c)
{
    if (is_open(c))
        return false;
    return c->n >= DP_CLAIM_PAIRS && !(c->scale.is_logit && c->error == 0 && c->at_sd < NO_SPREAD);
}

/* The least alpha at which the interval excludes 0. */
static double p_of_interval(const struct dp_claim *c)
{
    double p = c->low > 0 ? p_of(c->low, c->low_sd, c->n) : c->high < 0 ? p_of(c->high, c->high_sd, c->n) : 1;
    return c->error > 0 ? fmax(p, dp_normal_p(c->at / c->error)) : p;
}

/* Modes are compared by all of their runs or not at all. */
static struct dp_claim evidence(const json_t *root, enum dp_comparison_quantity quantity, size_t mode,
                                size_t beside)
{
    struct dp_claim c = {
        .quantity = quantity, .mode = mode, .beside = beside, .p = 1, .scale = dp_scale_of(root, quantity)};
    bool to_target = quantity == DP_QUANTITY_SECONDS_TO || quantity == DP_QUANTITY_EXAMPLES_TO;
    if (!dp_ending_is_whole(root, mode) || !dp_ending_is_whole(root, beside))
        return c;
    size_t runs = dp_ending_count(root, mode, DP_COMPARISON_GOOD),
           others = dp_ending_count(root, beside, DP_COMPARISON_GOOD);
    c.reached[0] = dp_statistics_mode(root, mode, quantity).n;
    c.reached[1] = dp_statistics_mode(root, beside, quantity).n;
    if (to_target && (c.reached[0] < runs || c.reached[1] < others)) {
        c.by_count = quantity == DP_QUANTITY_SECONDS_TO; /* once, not again for examples */
        if (c.by_count)
            c.p = dp_fisher_p(c.reached[0], runs, c.reached[1], others);
        return c;
    }
    take_pairs(root, &c);
    if (is_enough(&c))
        c.p = p_of_interval(&c);
    return c;
}

/* ---- Holm */

static int by_p(const void *a, const void *b)
{
    const struct dp_claim *x = *(struct dp_claim *const *)a, *y = *(struct dp_claim *const *)b;
    return x->p != y->p ? (x->p > y->p) - (x->p < y->p) : (x > y) - (x < y);
}

/* Those after the first that fails are at its level, too: their p is not below its own. */
static void settle_levels(struct dp_claim **order, size_t count)
{
    double alpha = ALPHA / (double)count;
    bool holds = true;
    for (size_t i = 0; i < count; i++) {
        alpha = holds ? ALPHA / (double)(count - i) : alpha;
        holds = holds && order[i]->p <= alpha;
        order[i]->alpha = alpha;
        order[i]->shown = holds;
    }
}

/* ---- intervals of a level */

/* a - b of two values whose middle is known, and how far they are apart. */
static double apart(const struct dp_claim *c, double by)
{
    return dp_scale_from(&c->scale, c->middle + by / 2) - dp_scale_from(&c->scale, c->middle - by / 2);
}

static struct dp_interval moved(const struct dp_claim *c, double low, double high, bool as_ratio)
{
    return (struct dp_interval){.n = c->n,
                                .mean = as_ratio ? exp(c->at) : apart(c, c->at),
                                .sd = c->at_sd,
                                .low = as_ratio ? exp(low) : apart(c, low),
                                .high = as_ratio ? exp(high) : apart(c, high)};
}

/* What four of five comparisons with such a spread would show. */
static void settle_power(struct dp_claim *c, double first_alpha)
{
    double by_seeds = dp_student_shift(first_alpha, POWER, c->n - 1) * c->at_sd / sqrt((double)c->n);
    double by_error = (dp_normal_quantile(first_alpha) + dp_normal_quantile(2 * (1 - POWER))) * c->error;
    double by = fmax(by_seeds + (c->high - c->low) / 2, by_error);
    c->seen = by > 0 ? apart(c, by) : (double)NAN;
    c->seen_ratio = by > 0 ? exp(by) : (double)NAN;
}

static void settle(struct dp_claim *c, double first_alpha)
{
    double low = NAN, high = NAN;
    c->seen = c->seen_ratio = NAN;
    c->difference = c->ratio = (struct dp_interval){.mean = NAN, .sd = NAN, .low = NAN, .high = NAN};
    if (c->n == 0)
        return;
    c->coarse = is_open(c);
    if (is_enough(c)) {
        double t = dp_student_quantile(c->alpha, c->n - 1) / sqrt((double)c->n);
        double floor = dp_normal_quantile(c->alpha) * c->error;
        low = fmin(c->low - t * c->low_sd, c->at - floor);
        high = fmax(c->high + t * c->high_sd, c->at + floor);
        c->coarse = !c->shown && p_of(c->at, c->at_sd, c->n) <= c->alpha;
        settle_power(c, first_alpha);
    }
    c->difference = moved(c, low, high, false);
    if (!c->scale.is_logit)
        c->ratio = moved(c, low, high, true);
}

/* ---- the family */

static size_t add(struct dp_claim *to, const json_t *root, enum dp_comparison_quantity quantity, size_t mode,
                  size_t beside)
{
    *to = evidence(root, quantity, mode, beside);
    return 1;
}

enum dp_status dp_claims_of(const json_t *root, struct dp_claims *out, struct dp_error *err)
{
    static const enum dp_comparison_quantity beside_first[] = {DP_QUANTITY_EXAMPLES_TO, DP_QUANTITY_METRIC,
                                                               DP_QUANTITY_EXAMPLES_S};
    size_t modes = dp_comparison_modes(root), most = modes * (modes + 5) / 2, n = 0;
    struct dp_claim **order = calloc(most + 1, sizeof *order);
    *out = (struct dp_claims){.claim = calloc(most + 1, sizeof *out->claim)};
    if (!order || !out->claim) {
        free(order);
        dp_claims_clear(out);
        return dp_fail(err, DP_NOMEM, "no memory for the claims of a comparison");
    }
    for (size_t m = 1; m < modes; m++)
        for (size_t b = 0; b < m; b++)
            n += add(&out->claim[n], root, DP_QUANTITY_SECONDS_TO, m, b);
    for (size_t q = 0; q < sizeof beside_first / sizeof beside_first[0]; q++)
        for (size_t m = 1; m < modes; m++)
            n += add(&out->claim[n], root, beside_first[q], m, 0);
    out->count = n;
    for (size_t i = 0; i < n; i++)
        order[i] = &out->claim[i];
    qsort(order, n, sizeof *order, by_p);
    settle_levels(order, n);
    for (size_t i = 0; i < n; i++)
        settle(&out->claim[i], ALPHA / (double)n);
    free(order);
    return DP_OK;
}

void dp_claims_clear(struct dp_claims *claims)
{
    free(claims->claim);
    *claims = (struct dp_claims){0};
}

static struct dp_interval inverse(struct dp_interval of, bool is_ratio)
{
    double low = of.low;
    of.mean = is_ratio ? 1 / of.mean : -of.mean;
    of.low = is_ratio ? 1 / of.high : -of.high;
    of.high = is_ratio ? 1 / low : -low;
    return of;
}

/* The same, seen from the other mode. */
static struct dp_claim turned(struct dp_claim c)
{
    size_t mode = c.mode, reached = c.reached[0];
    double low = c.low, low_sd = c.low_sd;
    c.mode = c.beside, c.beside = mode;
    c.reached[0] = c.reached[1], c.reached[1] = reached;
    c.ratio = inverse(c.ratio, true);
    c.difference = inverse(c.difference, false);
    c.at = -c.at;
    c.low = -c.high, c.low_sd = c.high_sd;
    c.high = -low, c.high_sd = low_sd;
    return c;
}

struct dp_claim dp_claims_find(const struct dp_claims *claims, enum dp_comparison_quantity quantity,
                               size_t mode, size_t beside)
{
    for (size_t i = 0; i < claims->count; i++) {
        const struct dp_claim *one = &claims->claim[i];
        if (one->quantity == quantity && one->mode == mode && one->beside == beside)
            return *one;
        if (one->quantity == quantity && one->mode == beside && one->beside == mode)
            return turned(*one);
    }
    return (struct dp_claim){.quantity = quantity, .mode = mode, .beside = beside, .p = 1};
}

struct dp_claim dp_claim_plain(const json_t *root, enum dp_comparison_quantity quantity, size_t mode,
                               size_t beside)
{
    struct dp_claim out = evidence(root, quantity, mode, beside);
    out.alpha = ALPHA;
    settle(&out, ALPHA);
    return out;
}
