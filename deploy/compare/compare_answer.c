#include "deploy/compare/compare_words.h"

#include "deploy/compare/answer_parts.h"

#include <math.h>

#define WIDE 100

static struct dp_claim claim_of(const struct dp_answer *a, enum dp_comparison_quantity quantity, size_t mode,
                                size_t beside)
{
    return dp_claims_find(a->claims, quantity, mode, beside);
}

static const char *name_of(const struct dp_answer *a, size_t mode)
{
    return dp_comparison_mode(a->root, mode);
}

/* ---- two modes */

/* Neither the time nor the end differs; what else does. */
static void put_others(const struct dp_answer *a, size_t mode, size_t beside)
{
    struct dp_claim examples = claim_of(a, DP_QUANTITY_EXAMPLES_TO, mode, beside);
    struct dp_claim speed = claim_of(a, DP_QUANTITY_EXAMPLES_S, mode, beside);
    char text[DP_COMPARE_INTERVAL_BYTES];
    if (examples.shown)
        fprintf(a->to, ", though it needed %s times as many examples",
                dp_compare_ratio_text(&examples.ratio, text));
    if (speed.shown)
        fprintf(a->to, "%s %s times as many a second",
                examples.shown ? " and trained" : ", though it trained",
                dp_compare_ratio_text(&speed.ratio, text));
}

static void put_undecided(const struct dp_answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    bool wide = time->ratio.high > WIDE * time->ratio.low; /* such as [0.00, 144.33]: it says nothing */
    size_t few = time->coarse || wide ? 0 : dp_answer_few_samples(a->root);
    bool vague = time->coarse || wide || few > 0;
    const char *one = name_of(a, time->beside), *other = name_of(a, time->mode);
    bool others = claim_of(a, DP_QUANTITY_EXAMPLES_TO, time->mode, time->beside).shown ||
                  claim_of(a, DP_QUANTITY_EXAMPLES_S, time->mode, time->beside).shown;
    char text[DP_ANSWER_BYTES];
    if (end->shown) {
        dp_answer_put_better(a, end);
        fprintf(a->to, "%s; no difference in time is shown", a->rates);
    } else
        fprintf(a->to, "No difference between %s and %s %sis shown%s", one, other,
                others ? "in time or at the end " : "", a->rates);
    if (!vague)
        fprintf(a->to, ": %s took %s times as long to reach %s", other,
                dp_compare_ratio_text(&time->ratio, text), a->goal);
    if (!end->shown && end->n >= DP_CLAIM_PAIRS)
        fprintf(a->to, "%s%s ended with %s", vague ? ": " : ", and ", vague ? other : "it",
                dp_answer_by(a, end, text));
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
    struct dp_claim end = claim_of(a, DP_QUANTITY_METRIC, time->mode, time->beside);
    char text[DP_COMPARE_INTERVAL_BYTES];
    if (!time->shown) {
        put_undecided(a, time, &end);
        return;
    }
    struct dp_claim later = claim_of(a, DP_QUANTITY_SECONDS_TO, a->there[1], a->there[0]);
    fprintf(a->to, "%s reached %s sooner than %s, %s times as fast", name_of(a, later.beside), a->goal,
            name_of(a, later.mode), dp_compare_ratio_text(&later.ratio, text));
    dp_answer_put_cost(a, later.beside, later.mode, false);
    fprintf(a->to, "%s.", a->rates);
}

static void put_reached(const struct dp_answer *a, size_t mode, size_t reached, const char *goal)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD);
    char word[24];
    fprintf(a->to, "%s %s %s", name_of(a, mode), reached ? "reached" : "did not reach", goal);
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
    struct dp_claim end = claim_of(a, DP_QUANTITY_METRIC, second, first);
    bool second_leads = n_second == 0; /* what was never reached is said first */
    char text[DP_ANSWER_BYTES];
    put_reached(a, second_leads ? second : first, second_leads ? n_second : n_first, a->goal);
    fputs("; ", a->to);
    put_reached(a, second_leads ? first : second, second_leads ? n_first : n_second, "it");
    put_chance(a, counts);
    fprintf(a->to, "%s.", a->rates);
    if (end.shown) {
        fputs(" ", a->to);
        dp_answer_put_better(a, &end);
        fputs(".", a->to);
    } else if (end.n >= DP_CLAIM_PAIRS)
        fprintf(a->to, " No difference at the end is shown (%s: %s).", name_of(a, second),
                dp_answer_by(a, &end, text));
    if (!end.shown)
        dp_answer_put_power(a, NULL, &end);
}

static void put_two(const struct dp_answer *a)
{
    struct dp_claim time = claim_of(a, DP_QUANTITY_SECONDS_TO, a->fit[1], a->fit[0]);
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

/* Those among which none is shown to be the first, as they were given: the least mean, and all that it is not shown to be before. */
static size_t leaders_of(const struct dp_answer *a, size_t out[DP_COMPARISON_MODES_MAX], bool *coarse)
{
    size_t count = 0;
    for (size_t i = 0; i < a->fits; i++) {
        size_t mode = a->fit[i];
        struct dp_claim time = {.shown = false};
        if (a->theres > 0 && mode != a->there[0])
            time = claim_of(a, DP_QUANTITY_SECONDS_TO, mode, a->there[0]);
        if (time.shown || reached_by(a, mode) == 0)
            continue;
        out[count++] = mode;
        *coarse |= time.coarse;
    }
    return count;
}

static void put_sooner(const struct dp_answer *a, size_t than, const char *before, const char *which)
{
    struct dp_claim time = claim_of(a, DP_QUANTITY_SECONDS_TO, than, a->there[0]);
    char text[DP_COMPARE_INTERVAL_BYTES];
    fprintf(a->to, "%s%s times as fast as %s%s", before, dp_compare_ratio_text(&time.ratio, text),
            name_of(a, than), which);
}

/* Others reached it with fewer seeds, or with none: no times are compared. */
static void put_only(const struct dp_answer *a, size_t mode)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD), reached = reached_by(a, mode);
    char word[24], text[DP_COMPARE_INTERVAL_BYTES];
    (void)dp_answer_put_of_whole(a);
    fprintf(a->to, "%s alone reached %s", name_of(a, mode), a->goal);
    if (reached == runs)
        fprintf(a->to, " with all %s seeds, after %s seconds", dp_answer_count_word(runs, word),
                dp_answer_own(a, mode, DP_QUANTITY_SECONDS_TO, text));
    else
        fprintf(a->to, ", with %zu of %zu seeds", reached, runs);
    fprintf(a->to, "%s.", a->rates);
}

static void put_first(const struct dp_answer *a)
{
    size_t first = a->there[0], last = a->there[a->theres - 1];
    bool others = false;
    (void)dp_answer_put_of_whole(a);
    fprintf(a->to, "%s reached %s before all others%s", name_of(a, first), a->goal,
            a->theres == a->fits ? "" : " that did with every seed");
    put_sooner(a, a->there[1], ", ", a->theres > 2 ? ", the next," : "");
    for (size_t i = 2; i + 1 < a->theres; i++)
        others |= a->there[i] == 0;
    if (others)
        put_sooner(a, 0, " ", "");
    if (a->theres > 2)
        put_sooner(a, last, " and ", ", the last");
    if (first != 0)
        dp_answer_put_cost(a, first, 0, true);
    fprintf(a->to, "%s.", a->rates);
    if (first == 0)
        dp_answer_put_ends(a);
}

/* Of all pairs that reached it, what the least sure one would have shown. */
static void put_least_power(const struct dp_answer *a)
{
    struct dp_claim least = {.seen_ratio = NAN};
    for (size_t i = 1; i < a->theres; i++)
        for (size_t k = 0; k < i; k++) {
            struct dp_claim one = claim_of(a, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[k]);
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
        struct dp_claim one = claim_of(a, DP_QUANTITY_SECONDS_TO, a->fit[i], than);
        least = one.p >= least.p ? one : least;
        never[nevers++] = a->fit[i];
    }
    if (nevers == 0)
        return;
    fputs(" ", a->to);
    dp_answer_put_list(a->to, a->root, never, nevers);
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
        dp_answer_put_list(a->to, a->root, leaders, count);
        fprintf(a->to, " reached %s first is not shown", a->goal);
        for (size_t i = a->theres; i-- > 1;) {
            struct dp_claim time = claim_of(a, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[0]);
            if (!time.shown || time.by_count)
                continue;
            fprintf(a->to, "; %s was ", name_of(a, a->there[0]));
            put_sooner(a, a->there[i], "", "");
            break;
        }
        fprintf(a->to, "%s.", a->rates);
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
    char text[DP_COMPARE_INTERVAL_BYTES];
    fprintf(a->to, "%s reached %s", name_of(a, mode), a->goal);
    if (reached == runs)
        fprintf(a->to, " after %s seconds", dp_answer_own(a, mode, DP_QUANTITY_SECONDS_TO, text));
    else
        fprintf(a->to, " with %zu of %zu seeds", reached, runs);
    fprintf(a->to, " and ended at %s %s.", dp_compare_metric_name(dp_comparison_metric(a->root)),
            dp_answer_own(a, mode, DP_QUANTITY_METRIC, text));
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
        fprintf(a->to, "%s %s%s: set a nearer target (--target), or train for more epochs.",
                dp_answer_put_of_whole(a) ? "none reached" : "No mode reached", a->goal, a->rates);
        dp_answer_put_ends(a);
    } else if (is_met_untrained(a)) {
        fprintf(a->to,
                "Weights that are not trained meet the target, %s, so it distinguishes no modes: set another "
                "(--target).",
                a->goal);
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

void dp_compare_put_answer(FILE *to, const void *claims)
{
    struct dp_answer a;
    dp_answer_init(&a, claims, to);
    take_modes(&a);
    put_answer(&a);
    if (a.fits == 0)
        return;
    dp_answer_put_losses(a.root, to);
    dp_answer_put_edges(a.root, to);
}
