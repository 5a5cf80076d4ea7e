#include "deploy/compare/compare_words.h"

#include "common/base/json.h"
#include "deploy/compare/answer_parts.h"

#include <math.h>
#include <stdlib.h>

#define WIDE 100

/* ---- two modes */

/* "B took 1.02 [0.95, 1.10] times as long to reach accuracy 0.85" */
static void put_took(const struct dp_answer *a, const struct dp_claim *time)
{
    fprintf(a->to, "%s took ", dp_comparison_mode(a->root, time->mode));
    dp_answer_put_ratio(a, time);
    fputs(" times as long to reach ", a->to);
    dp_answer_put_goal(a);
}

/* Neither the time nor the end differs; what else does. */
static void put_others(const struct dp_answer *a, size_t mode, size_t beside)
{
    struct dp_claim examples = dp_claims_find(a->claims, DP_QUANTITY_EXAMPLES_TO, mode, beside);
    struct dp_claim speed = dp_claims_find(a->claims, DP_QUANTITY_EXAMPLES_S, mode, beside);
    if (examples.shown) {
        fputs(", though it needed ", a->to);
        dp_answer_put_ratio(a, &examples);
        fputs(" times as many examples", a->to);
    }
    if (speed.shown) {
        fputs(examples.shown ? " and trained " : ", though it trained ", a->to);
        dp_answer_put_ratio(a, &speed);
        fputs(" times as many a second", a->to);
    }
}

/* An interval such as [0.00, 144.33] says nothing. */
static bool is_wide(const struct dp_claim *time)
{
    return time->ratio.high > WIDE * time->ratio.low;
}

static void put_undecided(const struct dp_answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    bool wide = is_wide(time);
    size_t few = time->coarse || wide ? 0 : dp_answer_few_samples(a->root);
    bool vague = time->coarse || wide || few > 0;
    const char *one = dp_comparison_mode(a->root, time->beside),
               *other = dp_comparison_mode(a->root, time->mode);
    bool others = dp_claims_find(a->claims, DP_QUANTITY_EXAMPLES_TO, time->mode, time->beside).shown ||
                  dp_claims_find(a->claims, DP_QUANTITY_EXAMPLES_S, time->mode, time->beside).shown;
    if (end->shown) {
        dp_answer_put_better(a, end);
        dp_answer_put_rates(a);
        fputs("; no difference in time is shown", a->to);
    } else {
        fprintf(a->to, "No difference between %s and %s %sis shown", one, other,
                others ? "in time or at the end " : "");
        dp_answer_put_rates(a);
    }
    if (!vague) {
        fputs(": ", a->to);
        put_took(a, time);
    }
    if (!end->shown && end->n >= DP_CLAIM_PAIRS) {
        fprintf(a->to, "%s%s ended with ", vague ? ": " : ", and ", vague ? other : "it");
        dp_answer_put_by(a, end);
    }
    if (!end->shown && !vague)
        put_others(a, time->mode, time->beside);
    fputs(".", a->to);
    dp_answer_put_coarse(a, time->coarse);
    if (few > 0)
        fprintf(a->to,
                " With %zu samples a training times cannot be compared: take more (--sample-every), or train "
                "longer.",
                few);
    if (wide && !time->coarse)
        fputs(" The times vary too much between seeds to be compared: use more seeds, data or epochs.",
              a->to);
    dp_answer_put_power(a, time, end->shown ? NULL : end);
}

/* Both reached it with every seed. */
static void put_times(const struct dp_answer *a, const struct dp_claim *time)
{
    struct dp_claim end = dp_claims_find(a->claims, DP_QUANTITY_METRIC, time->mode, time->beside);
    if (!time->shown) {
        put_undecided(a, time, &end);
        return;
    }
    struct dp_claim later = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, a->there[1], a->there[0]);
    fprintf(a->to, "%s reached ", dp_comparison_mode(a->root, later.beside));
    dp_answer_put_goal(a);
    fprintf(a->to, " sooner than %s, ", dp_comparison_mode(a->root, later.mode));
    dp_answer_put_ratio(a, &later);
    fputs(" times as fast", a->to);
    dp_answer_put_cost(a, later.beside, later.mode, false);
    dp_answer_put_rates(a);
    fputs(".", a->to);
}

static void put_reached(const struct dp_answer *a, size_t mode, size_t reached, bool names_goal)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD);
    char word[24];
    fprintf(a->to, "%s %s ", dp_comparison_mode(a->root, mode), reached ? "reached" : "did not reach");
    if (names_goal)
        dp_answer_put_goal(a);
    else
        fputs("it", a->to);
    if (reached == 0)
        fprintf(a->to, " with any of %s seeds", dp_answer_count_word(runs, word));
    else if (reached < runs)
        fprintf(a->to, " with %zu of %zu seeds", reached, runs);
    else
        fprintf(a->to, " with all %s", dp_answer_count_word(runs, word));
}

static void put_chance(const struct dp_answer *a, const struct dp_claim *counts)
{
    fprintf(a->to,
            counts->shown ? " (more than chance: Fisher's exact test, p = %.2g)"
                          : ", which may be chance (Fisher's exact test, p = %.2g)",
            counts->p);
}

/* Some seed of the two did not: by how many did. */
static void put_counts(const struct dp_answer *a, const struct dp_claim *counts)
{
    size_t first = counts->beside, second = counts->mode, n_first = counts->reached[1],
           n_second = counts->reached[0];
    struct dp_claim end = dp_claims_find(a->claims, DP_QUANTITY_METRIC, second, first);
    bool second_leads = n_second == 0; /* what was never reached is said first */
    put_reached(a, second_leads ? second : first, second_leads ? n_second : n_first, true);
    fputs("; ", a->to);
    put_reached(a, second_leads ? first : second, second_leads ? n_first : n_second, false);
    put_chance(a, counts);
    dp_answer_put_rates(a);
    fputs(".", a->to);
    if (end.shown) {
        fputs(" ", a->to);
        dp_answer_put_better(a, &end);
        fputs(".", a->to);
    } else if (end.n >= DP_CLAIM_PAIRS) {
        fprintf(a->to, " No difference at the end is shown (%s: ", dp_comparison_mode(a->root, second));
        dp_answer_put_by(a, &end);
        fputs(").", a->to);
    }
    if (!end.shown)
        dp_answer_put_power(a, NULL, &end);
}

static void put_two(const struct dp_answer *a)
{
    struct dp_claim time = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, a->fit[1], a->fit[0]);
    if (time.n > 0)
        put_times(a, &time);
    else
        put_counts(a, &time);
}

/* ---- more */

static size_t reached_by(const struct dp_answer *a, size_t mode)
{
    return dp_statistics_mode(a->root, mode, DP_QUANTITY_SECONDS_TO).n;
}

/* Those of which no one is shown to be the first, as they were given: the least mean, and all that it is not shown to be before. */
static size_t leaders_of(const struct dp_answer *a, size_t out[DP_COMPARISON_MODES_MAX], bool *coarse)
{
    size_t count = 0;
    for (size_t i = 0; i < a->fits; i++) {
        size_t mode = a->fit[i];
        struct dp_claim time = {.shown = false};
        if (a->theres > 0 && mode != a->there[0])
            time = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, mode, a->there[0]);
        if (time.shown || reached_by(a, mode) == 0)
            continue;
        out[count++] = mode;
        *coarse |= time.coarse;
    }
    return count;
}

static void put_sooner(const struct dp_answer *a, size_t than, const char *before, const char *which)
{
    struct dp_claim time = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, than, a->there[0]);
    fputs(before, a->to);
    dp_answer_put_ratio(a, &time);
    fprintf(a->to, " times as fast as %s%s", dp_comparison_mode(a->root, than), which);
}

/* Others reached it with fewer seeds, or with none: no times are compared. */
static void put_only(const struct dp_answer *a, size_t mode)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD), reached = reached_by(a, mode);
    char word[24];
    (void)dp_answer_put_of_whole(a);
    fprintf(a->to, "%s alone reached ", dp_comparison_mode(a->root, mode));
    dp_answer_put_goal(a);
    if (reached == runs) {
        fprintf(a->to, " with all %s seeds, after ", dp_answer_count_word(runs, word));
        dp_answer_put_own(a, mode, DP_QUANTITY_SECONDS_TO);
        fputs(" seconds", a->to);
    } else
        fprintf(a->to, ", with %zu of %zu seeds", reached, runs);
    dp_answer_put_rates(a);
    fputs(".", a->to);
}

static void put_first(const struct dp_answer *a)
{
    size_t first = a->there[0], last = a->there[a->theres - 1];
    bool others = false;
    (void)dp_answer_put_of_whole(a);
    fprintf(a->to, "%s reached ", dp_comparison_mode(a->root, first));
    dp_answer_put_goal(a);
    fputs(a->theres == a->fits ? " before all others" : " before all others that did with every seed", a->to);
    put_sooner(a, a->there[1], ", ", a->theres > 2 ? ", the next," : "");
    for (size_t i = 2; i + 1 < a->theres; i++)
        others |= a->there[i] == 0;
    if (others)
        put_sooner(a, 0, " ", "");
    if (a->theres > 2)
        put_sooner(a, last, " and ", ", the last");
    if (first != 0)
        dp_answer_put_cost(a, first, 0, true);
    dp_answer_put_rates(a);
    fputs(".", a->to);
    if (first == 0)
        dp_answer_put_ends(a);
}

/* Of all pairs that reached it, what the least sure one would have shown. */
static void put_least_power(const struct dp_answer *a)
{
    struct dp_claim least = {.seen_ratio = NAN};
    for (size_t i = 1; i < a->theres; i++)
        for (size_t k = 0; k < i; k++) {
            struct dp_claim one = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[k]);
            if (one.seen_ratio > least.seen_ratio || !isfinite(least.seen_ratio))
                least = one;
        }
    dp_answer_put_power(a, &least, NULL);
}

/* than: one that did reach it. */
static void put_never(const struct dp_answer *a, size_t than)
{
    size_t never[DP_COMPARISON_MODES_MAX], nevers = 0;
    struct dp_claim least = {.p = 0, .shown = true}; /* the least sure one */
    for (size_t i = 0; i < a->fits; i++) {
        if (reached_by(a, a->fit[i]) > 0)
            continue;
        struct dp_claim one = dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, a->fit[i], than);
        least = one.p >= least.p ? one : least;
        never[nevers++] = a->fit[i];
    }
    if (nevers == 0)
        return;
    fputs(" ", a->to);
    dp_answer_put_list(a, never, nevers);
    fputs(" did not reach it with any seed", a->to);
    put_chance(a, &least);
    fputs(".", a->to);
}

static void put_many(const struct dp_answer *a)
{
    size_t leaders[DP_COMPARISON_MODES_MAX];
    bool coarse = false;
    size_t count = leaders_of(a, leaders, &coarse);
    if (count == 1 && a->theres < 2)
        put_only(a, leaders[0]);
    else if (count == 1)
        put_first(a);
    else {
        fputs("Which of ", a->to);
        dp_answer_put_list(a, leaders, count);
        fputs(" reached ", a->to);
        dp_answer_put_goal(a);
        fputs(" first is not shown", a->to);
        for (size_t i = a->theres; i-- > 1;) {
            struct dp_claim time =
                dp_claims_find(a->claims, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[0]);
            if (!time.shown || time.by_count)
                continue;
            fprintf(a->to, "; %s was ", dp_comparison_mode(a->root, a->there[0]));
            put_sooner(a, a->there[i], "", "");
            break;
        }
        dp_answer_put_rates(a);
        fputs(".", a->to);
        dp_answer_put_ends(a);
        dp_answer_put_coarse(a, coarse);
        put_least_power(a);
    }
    put_never(a, a->theres > 0 ? a->there[0] : leaders[0]);
}

/* ---- all of it */

/* The only one that ended well. */
static void put_alone(const struct dp_answer *a)
{
    size_t mode = a->fit[0], runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD),
           reached = reached_by(a, mode);
    fprintf(a->to, "%s reached ", dp_comparison_mode(a->root, mode));
    dp_answer_put_goal(a);
    if (reached == runs) {
        fputs(" after ", a->to);
        dp_answer_put_own(a, mode, DP_QUANTITY_SECONDS_TO);
        fputs(" seconds", a->to);
    } else
        fprintf(a->to, " with %zu of %zu seeds", reached, runs);
    fprintf(a->to, " and ended at %s ", dp_compare_metric_name(dp_comparison_metric(a->root)));
    dp_answer_put_own(a, mode, DP_QUANTITY_METRIC);
    fputs(".", a->to);
}

static void take_modes(struct dp_answer *a)
{
    double mean[DP_COMPARISON_MODES_MAX];
    for (size_t m = 0; m < dp_comparison_modes(a->root); m++) {
        struct dp_interval own = dp_statistics_mode(a->root, m, DP_QUANTITY_SECONDS_TO);
        if (!dp_ending_is_whole(a->root, m))
            continue;
        a->fit[a->fits++] = m;
        a->any |= own.n > 0;
        if (own.n < dp_ending_count(a->root, m, DP_COMPARISON_GOOD))
            continue;
        size_t at = a->theres++;
        for (; at > 0 && mean[at - 1] > own.mean; at--) {
            mean[at] = mean[at - 1];
            a->there[at] = a->there[at - 1];
        }
        mean[at] = own.mean;
        a->there[at] = m;
    }
}

/* By the first sample, before any example was applied. */
static bool is_met_untrained(const struct dp_answer *a)
{
    return a->theres > 0 && dp_statistics_mode(a->root, a->there[0], DP_QUANTITY_EXAMPLES_TO).mean < 1;
}

static void put_answer(const struct dp_answer *a)
{
    if (!json_is_object(json_object_get(dp_comparison_settings(a->root), "target")) || a->fits == 0)
        return;
    if (!a->any) {
        fputs(dp_answer_put_of_whole(a) ? "none reached " : "No mode reached ", a->to);
        dp_answer_put_goal(a);
        dp_answer_put_rates(a);
        fputs(": set a nearer target (--target), or train for more epochs.", a->to);
        dp_answer_put_ends(a);
    } else if (is_met_untrained(a)) {
        fputs("Weights that are not trained meet the target, ", a->to);
        dp_answer_put_goal(a);
        fputs(", so it distinguishes no modes: set another (--target).", a->to);
        dp_answer_put_ends(a);
    } else if (a->fits == 1)
        put_alone(a);
    else if (dp_answer_is_short(a->root) && a->theres == a->fits) {
        dp_answer_put_short(a->root, a->to);
        dp_answer_put_ends(a);
    } else if (!dp_answer_is_few(a) && a->fits == 2)
        put_two(a);
    else if (dp_comparison_seeds(a->root) >= DP_CLAIM_PAIRS)
        put_many(a);
}

static void put_caveats(const struct dp_answer *a)
{
    if (a->fits == 0)
        return;
    dp_answer_put_losses(a->root, a->to);
    dp_answer_put_edges(a->root, a->to);
}

void dp_compare_put_answer(FILE *to, const void *claims)
{
    struct dp_answer a = {.claims = claims, .root = ((const struct dp_claims *)claims)->root, .to = to};
    take_modes(&a);
    put_answer(&a);
    put_caveats(&a);
}
