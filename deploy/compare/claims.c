#include "deploy/compare/claims.h"

#include "common/base/json.h"

#include <math.h>
#include <stdlib.h>

#define ALPHA     0.05 /* of a page */
#define POWER     0.80
#define NO_SPREAD 1e-12
#define OPEN      7.0 /* a factor of 1,000 */

/* ---- evidence: differences on the scale */

static void take_pairs(const json_t *root, struct dp_claim *c)
{
    double at[DP_COMPARISON_SEEDS_MAX], low[DP_COMPARISON_SEEDS_MAX], high[DP_COMPARISON_SEEDS_MAX],
        middle[DP_COMPARISON_SEEDS_MAX];
    size_t n = dp_comparison_seeds(root);
    for (size_t s = 0; s < n; s++) {
        const json_t *one = dp_comparison_run_of(root, c->mode, s),
                     *other = dp_comparison_run_of(root, c->beside, s);
        struct dp_comparison_span a = dp_comparison_span(root, one, c->quantity);
        struct dp_comparison_span b = dp_comparison_span(root, other, c->quantity);
        at[s] = dp_scale_to(&c->scale, a.at) - dp_scale_to(&c->scale, b.at);
        low[s] = dp_scale_to(&c->scale, a.low) - dp_scale_to(&c->scale, b.high);
        high[s] = dp_scale_to(&c->scale, a.high) - dp_scale_to(&c->scale, b.low);
        middle[s] = (dp_scale_to(&c->scale, a.at) + dp_scale_to(&c->scale, b.at)) / 2;
    }
    c->at = dp_interval_of(at, n, ALPHA);
    c->low = dp_interval_of(low, n, ALPHA);
    c->high = dp_interval_of(high, n, ALPHA);
    c->middle = dp_interval_of(middle, n, ALPHA).mean;
    c->n = c->at.n;
    c->error = dp_scale_error(&c->scale, c->middle);
}

/* Of a mean of differences, that it is 0. */
static double p_of(const struct dp_interval *of)
{
    if (of->sd < NO_SPREAD)
        return fabs(of->mean) < NO_SPREAD ? 1 : 0;
    return dp_student_p(of->mean / (of->sd / sqrt((double)of->n)), of->n - 1);
}

/* The bounds say nothing: some sample below the target is the first one. */
static bool is_open(const struct dp_claim *c)
{
    return c->high.mean - c->low.mean > OPEN;
}

/* What is known shows a difference, given a spread that can be judged. */
static bool is_enough(const struct dp_claim *c)
{
    if (is_open(c))
        return false;
    return c->n >= DP_CLAIM_PAIRS && !(c->scale.is_logit && c->error == 0 && c->at.sd < NO_SPREAD);
}

/* The least alpha at which the interval excludes 0. */
static double p_of_interval(const struct dp_claim *c)
{
    double p = c->low.mean > 0 ? p_of(&c->low) : c->high.mean < 0 ? p_of(&c->high) : 1;
    return c->error > 0 ? fmax(p, dp_normal_p(c->at.mean / c->error)) : p;
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
                                .mean = as_ratio ? exp(c->at.mean) : apart(c, c->at.mean),
                                .sd = c->at.sd,
                                .low = as_ratio ? exp(low) : apart(c, low),
                                .high = as_ratio ? exp(high) : apart(c, high)};
}

/* What four of five comparisons with such a spread would show. */
static void settle_power(struct dp_claim *c, double first_alpha)
{
    double by_seeds = dp_student_shift(first_alpha, POWER, c->n - 1) * c->at.sd / sqrt((double)c->n);
    double by_error = (dp_normal_quantile(first_alpha) + dp_normal_quantile(2 * (1 - POWER))) * c->error;
    double by = fmax(by_seeds + (c->high.mean - c->low.mean) / 2, by_error);
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
        low = fmin(c->low.mean - t * c->low.sd, c->at.mean - floor);
        high = fmax(c->high.mean + t * c->high.sd, c->at.mean + floor);
        c->coarse = !c->shown && p_of(&c->at) <= c->alpha;
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
    *out = (struct dp_claims){.root = root, .claim = calloc(most + 1, sizeof *out->claim)};
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
    struct dp_interval low = c.low;
    c.mode = c.beside, c.beside = mode;
    c.reached[0] = c.reached[1], c.reached[1] = reached;
    c.ratio = inverse(c.ratio, true);
    c.difference = inverse(c.difference, false);
    c.at = inverse(c.at, false);
    c.low = inverse(c.high, false);
    c.high = inverse(low, false);
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

/* ---- in the report */

static json_t *interval_json(const struct dp_interval *interval)
{
    json_t *out = json_pack("{s:I}", "n", (json_int_t)interval->n);
    dp_json_set_real(out, "mean", interval->mean);
    dp_json_set_real(out, "sd", interval->sd);
    dp_json_set_real(out, "low", interval->low);
    dp_json_set_real(out, "high", interval->high);
    return out;
}

/* Adds what the test says. */
static json_t *claim_json(const struct dp_claim *claim, bool is_claimed)
{
    json_t *out = interval_json(&claim->difference);
    if (claim->ratio.n > 0)
        (void)json_object_set_new(out, "ratio", interval_json(&claim->ratio));
    (void)json_object_set_new(out, "test", json_string(claim->by_count ? "fisher" : "t"));
    dp_json_set_real(out, "p", claim->p);
    dp_json_set_real(out, "level", 1 - claim->alpha);
    (void)json_object_set_new(out, "scale", json_string(dp_scale_name(&claim->scale)));
    if (is_claimed)
        (void)json_object_set_new(out, "shown", json_boolean(claim->shown));
    return out;
}

static json_t *quantity_json(const json_t *root, const struct dp_claims *claims, size_t mode,
                             enum dp_comparison_quantity quantity)
{
    const struct dp_scale scale = dp_scale_of(root, quantity);
    struct dp_interval own = dp_statistics_mode(root, mode, quantity);
    json_t *out = interval_json(&own), *difference = json_null();
    (void)json_object_set_new(out, "scale", json_string(dp_scale_name(&scale)));
    if (mode > 0) {
        struct dp_claim claim = dp_claims_find(claims, quantity, mode, 0);
        bool is_claimed = claim.alpha > 0;
        if (!is_claimed)
            claim = dp_claim_plain(root, quantity, mode, 0);
        difference = claim_json(&claim, is_claimed);
    }
    (void)json_object_set_new(out, "difference", difference);
    return out;
}

static json_t *mode_json(const json_t *root, const struct dp_claims *claims, size_t mode)
{
    json_t *out = json_pack("{s:s}", "mode", dp_comparison_mode(root, mode));
    size_t good = dp_ending_count(root, mode, DP_COMPARISON_GOOD);
    dp_json_set_u64(out, "runs", good);
    dp_json_set_u64(out, "diverged", dp_ending_count(root, mode, DP_COMPARISON_DIVERGED));
    dp_json_set_u64(out, "failed", dp_ending_count(root, mode, DP_COMPARISON_FAILED));
    for (int q = 0; q < DP_QUANTITIES; q++) {
        json_t *one = quantity_json(root, claims, mode, (enum dp_comparison_quantity)q);
        if (q == DP_QUANTITY_SECONDS_TO || q == DP_QUANTITY_EXAMPLES_TO)
            dp_json_set_u64(one, "of", good); /* runs */
        (void)json_object_set_new(out, dp_comparison_quantity_key((enum dp_comparison_quantity)q), one);
    }
    return out;
}

static json_t *family_json(const json_t *root, const struct dp_claims *claims)
{
    json_t *out = json_array();
    for (size_t i = 0; i < claims->count; i++) {
        const struct dp_claim *claim = &claims->claim[i];
        json_t *one = claim_json(claim, true);
        (void)json_object_set_new(one, "quantity", json_string(dp_comparison_quantity_key(claim->quantity)));
        (void)json_object_set_new(one, "mode", json_string(dp_comparison_mode(root, claim->mode)));
        (void)json_object_set_new(one, "beside", json_string(dp_comparison_mode(root, claim->beside)));
        (void)json_array_append_new(out, one);
    }
    return out;
}

enum dp_status dp_comparison_count(json_t *root, struct dp_error *err)
{
    struct dp_claims claims = {0};
    enum dp_status st = dp_claims_of(root, &claims, err);
    if (st != DP_OK)
        return st;
    json_t *all = json_array(), *family = family_json(root, &claims);
    bool good = all && family;
    for (size_t m = 0; good && m < dp_comparison_modes(root); m++)
        good = json_array_append_new(all, mode_json(root, &claims, m)) == 0;
    good =
        good && json_object_set(root, "statistics", all) == 0 && json_object_set(root, "claims", family) == 0;
    json_decref(all);
    json_decref(family);
    dp_claims_clear(&claims);
    return good ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the statistics");
}
