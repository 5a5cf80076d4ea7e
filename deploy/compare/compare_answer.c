#include "deploy/compare/compare_answer.h"

#include "common/base/json.h"
#include "deploy/compare/claims.h"
#include "deploy/compare/compare_words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODES_MAX 64u
/* A difference at the end of less than this is "no worse, within": of a share itself, of a loss as part of it. */
#define SMALL 0.02

struct answer {
    const json_t *root;
    FILE *to;
    struct dp_claims claims;
    size_t fit[MODES_MAX], fits; /* modes that ended well with every seed, as they were given */
    size_t there[MODES_MAX],
        theres; /* those of them that reached the target with every seed, the least mean first */
    bool any;   /* some run of them did */
};

static const char *name_of(const struct answer *a, size_t mode)
{
    return dp_comparison_mode(a->root, mode);
}

static const json_t *settings_of(const struct answer *a)
{
    return json_object_get(a->root, "settings");
}

static const char *count_word(size_t count, char out[24])
{
    static const char *const words[] = {"no",  "one",   "two",   "three", "four", "five",
                                        "six", "seven", "eight", "nine",  "ten"};
    if (count < sizeof words / sizeof words[0])
        (void)snprintf(out, 24, "%s", words[count]);
    else
        (void)snprintf(out, 24, "%zu", count);
    return out;
}

static void put_list(const struct answer *a, const size_t *modes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(a->to, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", name_of(a, modes[i]));
}

/* "accuracy 0.85" */
static void put_goal(const struct answer *a)
{
    const json_t *target = json_object_get(settings_of(a), "target");
    fprintf(a->to, "%s %.4g", dp_compare_metric_name(dp_comparison_metric(a->root)),
            dp_json_get_real(target, "value"));
}

/* Some run of the others may have done what is said of these. */
static bool put_of_whole(const struct answer *a)
{
    bool some = a->fits < dp_comparison_modes(a->root);
    fputs(some ? "Of the modes that ended well with every seed, " : "", a->to);
    return some;
}

static void put_ratio(const struct answer *a, const struct dp_claim *claim)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    fputs(dp_compare_ratio_text(&claim->ratio, text), a->to);
}

static void put_own(const struct answer *a, size_t mode, enum dp_comparison_quantity quantity)
{
    struct dp_interval own = dp_statistics_mode(a->root, mode, quantity);
    char text[DP_COMPARE_INTERVAL_BYTES];
    fputs(dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), text), a->to);
}

/* Under which rates the modes met: the grid's, or what a mode's name gives. */
static void put_rates(const struct answer *a)
{
    const json_t *modes = json_object_get(a->root, "modes");
    double first = dp_json_get_real(json_array_get(modes, 0), "rate");
    size_t rates = json_array_size(json_object_get(settings_of(a), "rates"));
    bool one = true, given = false;
    char word[24];
    for (size_t m = 0; m < json_array_size(modes); m++) {
        const json_t *mode = json_array_get(modes, m);
        double rate = dp_json_get_real(mode, "rate");
        one &= rate == first || (isnan(rate) && isnan(first));
        given |= json_object_get(json_object_get(mode, "settings"), "rate") != NULL;
    }
    if (json_array_size(modes) < 2)
        return;
    if (rates > 1)
        fprintf(a->to, ", each at the best of %s rates%s", count_word(rates, word),
                given ? " or at the rate given for it" : "");
    else
        fputs(one ? ", at one rate for all modes" : ", each at the rate given for it", a->to);
}

/* ---- the end */

static bool higher_is_better(const struct answer *a)
{
    return dp_comparison_higher_is_better(a->root);
}

/* "higher by 0.010 [0.004, 0.016]" */
static void put_by(const struct answer *a, const struct dp_claim *claim)
{
    bool higher = claim->difference.mean > 0;
    struct dp_interval by = claim->difference;
    char text[DP_COMPARE_INTERVAL_BYTES];
    if (!higher) {
        by.mean = -claim->difference.mean;
        by.low = -claim->difference.high;
        by.high = -claim->difference.low;
    }
    fprintf(a->to, "%s %s by %s", dp_compare_metric_name(dp_comparison_metric(a->root)),
            higher ? "higher" : "lower", dp_compare_difference_text(&by, text));
}

static bool is_better(const struct answer *a, const struct dp_claim *end)
{
    return (end->difference.mean > 0) == higher_is_better(a);
}

/* "B ended better than A (accuracy higher by 0.010 [0.004, 0.016])", of a difference that is shown. */
static void put_better(const struct answer *a, const struct dp_claim *end)
{
    size_t better = is_better(a, end) ? end->mode : end->beside,
           worse = better == end->mode ? end->beside : end->mode;
    struct dp_claim by = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, better, worse);
    fprintf(a->to, "%s ended better than %s (", name_of(a, better), name_of(a, worse));
    put_by(a, &by);
    fputs(")", a->to);
}

/* How much worse it may have ended; NaN: there is no interval. */
static double worse_by(const struct answer *a, const struct dp_claim *end)
{
    return higher_is_better(a) ? -end->difference.low : end->difference.high;
}

/* Goes on with a sentence about `mode`, which was first: at what cost? than: whose end it is held against. */
static void put_cost(const struct answer *a, size_t mode, size_t beside, bool names)
{
    struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, mode, beside);
    double by = worse_by(a, &end);
    double size = end.scale.is_logit ? 1 : dp_statistics_mode(a->root, beside, DP_QUANTITY_METRIC).mean;
    const char *than = names ? " than " : "", *other = names ? name_of(a, beside) : "";
    char text[DP_COMPARE_INTERVAL_BYTES];
    if (end.n == 0 || !isfinite(by))
        return;
    if (end.shown) {
        fprintf(a->to, "%s%s%s (", is_better(a, &end) ? " and ended better" : " but ended worse", than,
                other);
        put_by(a, &end);
        fputs(")", a->to);
        return;
    }
    const char *difference = dp_compare_difference_text(&end.difference, text);
    if (by <= SMALL * size)
        fprintf(a->to, " and ended no worse%s%s, within %.*f (difference %s)", than, other,
                dp_compare_difference_digits(&end.difference), fmax(by, 0), difference);
    else
        fprintf(a->to, ", and no difference%s%s at the end is shown (%s)", names ? " from " : "", other,
                difference);
}

/* ---- what was not shown */

/* "With five seeds a difference of about 12% in time and 0.02 in accuracy would have been seen." */
static void put_power(const struct answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    char word[24];
    bool has_end = end && end->n > 0 && isfinite(end->seen),
         has_time = time && time->n > 0 && isfinite(time->seen_ratio);
    if (!has_time && !has_end)
        return;
    fprintf(a->to, " With %s seeds a difference of ", count_word(has_time ? time->n : end->n, word));
    if (has_time && time->seen_ratio < 2)
        fprintf(a->to, "about %.2g%% in time", 100 * (time->seen_ratio - 1));
    else if (has_time && time->seen_ratio < 10)
        fprintf(a->to, "a factor of about %.2g in time", time->seen_ratio);
    else if (has_time)
        fputs("a factor of more than ten in time", a->to);
    if (has_end)
        fprintf(a->to, "%sabout %.2g in %s", has_time ? " and " : "", end->seen,
                dp_compare_metric_name(dp_comparison_metric(a->root)));
    fputs(" would have been seen in four of five comparisons.", a->to);
}

static void put_coarse(const struct answer *a, bool coarse)
{
    if (coarse)
        fputs(" The samples of the weights lie too far apart to say more about the time (--sample-every).",
              a->to);
}

static bool is_few(const struct answer *a)
{
    size_t seeds = dp_comparison_seeds(a->root);
    char word[24], needed[24];
    if (seeds >= DP_CLAIM_PAIRS)
        return false;
    fprintf(a->to, "With %s seed%s no difference can be shown: that takes %s.", count_word(seeds, word),
            seeds == 1 ? "" : "s", count_word(DP_CLAIM_PAIRS, needed));
    return true;
}

/* Which modes are shown to have ended elsewhere than the first one. */
static void put_ends(const struct answer *a)
{
    bool any = false;
    for (size_t i = 1; i < a->fits; i++) {
        struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, a->fit[i], 0);
        if (!end.shown)
            continue;
        fputs(" ", a->to);
        put_better(a, &end);
        fputs(".", a->to);
        any = true;
    }
    fputs(any || a->fits < 2 ? "" : " No difference at the end is shown.", a->to);
}

/* ---- two modes */

/* "B took 1.02 [0.95, 1.10] times as long to reach accuracy 0.85" */
static void put_took(const struct answer *a, const struct dp_claim *time)
{
    fprintf(a->to, "%s took ", name_of(a, time->mode));
    put_ratio(a, time);
    fputs(" times as long to reach ", a->to);
    put_goal(a);
}

/* Neither the time nor the end differs; what else does. */
static void put_others(const struct answer *a, size_t mode, size_t beside)
{
    struct dp_claim examples = dp_claims_find(&a->claims, DP_QUANTITY_EXAMPLES_TO, mode, beside);
    struct dp_claim speed = dp_claims_find(&a->claims, DP_QUANTITY_EXAMPLES_S, mode, beside);
    if (examples.shown) {
        fputs(", though it needed ", a->to);
        put_ratio(a, &examples);
        fputs(" times as many examples", a->to);
    }
    if (speed.shown) {
        fputs(examples.shown ? " and trained " : ", though it trained ", a->to);
        put_ratio(a, &speed);
        fputs(" times as many a second", a->to);
    }
}

static void put_undecided(const struct answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    const char *one = name_of(a, time->beside), *other = name_of(a, time->mode);
    bool others = dp_claims_find(&a->claims, DP_QUANTITY_EXAMPLES_TO, time->mode, time->beside).shown ||
                  dp_claims_find(&a->claims, DP_QUANTITY_EXAMPLES_S, time->mode, time->beside).shown;
    if (end->shown) {
        put_better(a, end);
        put_rates(a);
        fputs("; no difference in time is shown", a->to);
    } else {
        fprintf(a->to, "No difference between %s and %s %sis shown", one, other,
                others ? "in time or at the end " : "");
        put_rates(a);
    }
    if (!time->coarse) {
        fputs(": ", a->to);
        put_took(a, time);
    }
    if (!end->shown && end->n >= DP_CLAIM_PAIRS)
        fprintf(a->to, "%sthe difference in %s at the end is %s", time->coarse ? ": " : ", and ",
                dp_compare_metric_name(dp_comparison_metric(a->root)),
                dp_compare_difference_text(&end->difference, text));
    if (!end->shown && !time->coarse)
        put_others(a, time->mode, time->beside);
    fputs(".", a->to);
    put_coarse(a, time->coarse);
    put_power(a, time, end->shown ? NULL : end);
}

/* Both reached it with every seed. */
static void put_times(const struct answer *a, const struct dp_claim *time)
{
    struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, time->mode, time->beside);
    if (!time->shown) {
        put_undecided(a, time, &end);
        return;
    }
    struct dp_claim later = dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, a->there[1], a->there[0]);
    fprintf(a->to, "%s reached ", name_of(a, later.beside));
    put_goal(a);
    fputs(" ", a->to);
    put_ratio(a, &later);
    fprintf(a->to, " times sooner than %s", name_of(a, later.mode));
    put_cost(a, later.beside, later.mode, false);
    put_rates(a);
    fputs(".", a->to);
}

static void put_reached(const struct answer *a, size_t mode, size_t reached, bool names_goal)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD);
    char word[24];
    fprintf(a->to, "%s %s ", name_of(a, mode), reached ? "reached" : "did not reach");
    if (names_goal)
        put_goal(a);
    else
        fputs("it", a->to);
    if (reached == 0)
        fprintf(a->to, " with any of %s seeds", count_word(runs, word));
    else if (reached < runs)
        fprintf(a->to, " with %zu of %zu seeds", reached, runs);
    else
        fprintf(a->to, " with all %s", count_word(runs, word));
}

static void put_chance(const struct answer *a, const struct dp_claim *counts)
{
    fprintf(a->to,
            counts->shown ? " (more than chance: Fisher's exact test, p = %.2g)"
                          : ", which may be chance (Fisher's exact test, p = %.2g)",
            counts->p);
}

/* Some seed of the two did not: by how many did. */
static void put_counts(const struct answer *a, const struct dp_claim *counts)
{
    size_t first = counts->beside, second = counts->mode, n_first = counts->reached[1],
           n_second = counts->reached[0];
    struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, second, first);
    char text[DP_COMPARE_INTERVAL_BYTES];
    bool second_leads = n_second == 0; /* what was never reached is said first */
    put_reached(a, second_leads ? second : first, second_leads ? n_second : n_first, true);
    fputs("; ", a->to);
    put_reached(a, second_leads ? first : second, second_leads ? n_first : n_second, false);
    put_chance(a, counts);
    put_rates(a);
    fputs(".", a->to);
    if (end.shown) {
        fputs(" ", a->to);
        put_better(a, &end);
        fputs(".", a->to);
    } else if (end.n >= DP_CLAIM_PAIRS)
        fprintf(a->to, " No difference at the end is shown (%s).",
                dp_compare_difference_text(&end.difference, text));
    if (!end.shown)
        put_power(a, NULL, &end);
}

static void put_two(const struct answer *a)
{
    struct dp_claim time = dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, a->fit[1], a->fit[0]);
    if (time.n > 0)
        put_times(a, &time);
    else
        put_counts(a, &time);
}

/* ---- more */

static size_t reached_by(const struct answer *a, size_t mode)
{
    return dp_statistics_mode(a->root, mode, DP_QUANTITY_SECONDS_TO).n;
}

/* Those of which no one is shown to be the first, as they were given: the least mean, and all that it is not shown to be before. */
static size_t leaders_of(const struct answer *a, size_t out[MODES_MAX], bool *coarse)
{
    size_t count = 0;
    for (size_t i = 0; i < a->fits; i++) {
        size_t mode = a->fit[i];
        struct dp_claim time = {.shown = false};
        if (a->theres > 0 && mode != a->there[0])
            time = dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, mode, a->there[0]);
        if (time.shown || reached_by(a, mode) == 0)
            continue;
        out[count++] = mode;
        *coarse |= time.coarse;
    }
    return count;
}

static void put_sooner(const struct answer *a, size_t than, const char *before, const char *which)
{
    struct dp_claim time = dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, than, a->there[0]);
    fputs(before, a->to);
    put_ratio(a, &time);
    fprintf(a->to, " times sooner than %s%s", name_of(a, than), which);
}

/* Others reached it with fewer seeds, or with none: no times are compared. */
static void put_only(const struct answer *a, size_t mode)
{
    size_t runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD), reached = reached_by(a, mode);
    char word[24];
    (void)put_of_whole(a);
    fprintf(a->to, "%s alone reached ", name_of(a, mode));
    put_goal(a);
    if (reached == runs) {
        fprintf(a->to, " with all %s seeds, after ", count_word(runs, word));
        put_own(a, mode, DP_QUANTITY_SECONDS_TO);
        fputs(" seconds", a->to);
    } else
        fprintf(a->to, ", with %zu of %zu seeds", reached, runs);
    put_rates(a);
    fputs(".", a->to);
}

static void put_first(const struct answer *a)
{
    size_t first = a->there[0], last = a->there[a->theres - 1];
    bool others = false;
    (void)put_of_whole(a);
    fprintf(a->to, "%s reached ", name_of(a, first));
    put_goal(a);
    fputs(a->theres == a->fits ? " before all others" : " before all others that did with every seed", a->to);
    put_sooner(a, a->there[1], ", ", a->theres > 2 ? ", the next," : "");
    for (size_t i = 2; i + 1 < a->theres; i++)
        others |= a->there[i] == 0;
    if (others)
        put_sooner(a, 0, " ", "");
    if (a->theres > 2)
        put_sooner(a, last, " and ", ", the last");
    if (first != 0)
        put_cost(a, first, 0, true);
    put_rates(a);
    fputs(".", a->to);
    if (first == 0)
        put_ends(a);
}

/* Of all pairs that reached it, what the least sure one would have shown. */
static void put_least_power(const struct answer *a)
{
    struct dp_claim least = {.seen_ratio = NAN};
    for (size_t i = 1; i < a->theres; i++)
        for (size_t k = 0; k < i; k++) {
            struct dp_claim one =
                dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[k]);
            if (one.seen_ratio > least.seen_ratio || !isfinite(least.seen_ratio))
                least = one;
        }
    put_power(a, &least, NULL);
}

/* than: one that did reach it. */
static void put_never(const struct answer *a, size_t than)
{
    size_t never[MODES_MAX], nevers = 0;
    struct dp_claim least = {.p = 0, .shown = true}; /* the least sure one */
    for (size_t i = 0; i < a->fits; i++) {
        if (reached_by(a, a->fit[i]) > 0)
            continue;
        struct dp_claim one = dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, a->fit[i], than);
        least = one.p >= least.p ? one : least;
        never[nevers++] = a->fit[i];
    }
    if (nevers == 0)
        return;
    fputs(" ", a->to);
    put_list(a, never, nevers);
    fputs(" did not reach it with any seed", a->to);
    put_chance(a, &least);
    fputs(".", a->to);
}

static void put_many(const struct answer *a)
{
    size_t leaders[MODES_MAX];
    bool coarse = false;
    size_t count = leaders_of(a, leaders, &coarse);
    if (count == 1 && a->theres < 2)
        put_only(a, leaders[0]);
    else if (count == 1)
        put_first(a);
    else {
        fputs("Which of ", a->to);
        put_list(a, leaders, count);
        fputs(" reached ", a->to);
        put_goal(a);
        fputs(" first is not shown", a->to);
        for (size_t i = a->theres; i-- > 1;) {
            struct dp_claim time =
                dp_claims_find(&a->claims, DP_QUANTITY_SECONDS_TO, a->there[i], a->there[0]);
            if (!time.shown || time.by_count)
                continue;
            fprintf(a->to, "; %s was ", name_of(a, a->there[0]));
            put_sooner(a, a->there[i], "", "");
            break;
        }
        put_rates(a);
        fputs(".", a->to);
        put_coarse(a, coarse);
        put_least_power(a);
    }
    put_never(a, a->theres > 0 ? a->there[0] : leaders[0]);
}

/* ---- all of it */

/* The only one that ended well. */
static void put_alone(const struct answer *a)
{
    size_t mode = a->fit[0], runs = dp_ending_count(a->root, mode, DP_COMPARISON_GOOD),
           reached = reached_by(a, mode);
    fprintf(a->to, "%s reached ", name_of(a, mode));
    put_goal(a);
    if (reached == runs) {
        fputs(" after ", a->to);
        put_own(a, mode, DP_QUANTITY_SECONDS_TO);
        fputs(" seconds", a->to);
    } else
        fprintf(a->to, " with %zu of %zu seeds", reached, runs);
    fprintf(a->to, " and ended at %s ", dp_compare_metric_name(dp_comparison_metric(a->root)));
    put_own(a, mode, DP_QUANTITY_METRIC);
    fputs(".", a->to);
}

static void take_modes(struct answer *a)
{
    double mean[MODES_MAX];
    for (size_t m = 0; m < dp_comparison_modes(a->root) && a->fits < MODES_MAX; m++) {
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
static bool is_met_untrained(const struct answer *a)
{
    return a->theres > 0 && dp_statistics_mode(a->root, a->there[0], DP_QUANTITY_EXAMPLES_TO).mean < 1;
}

static void put_answer(const struct answer *a)
{
    if (!json_is_object(json_object_get(settings_of(a), "target")) || a->fits == 0)
        return;
    if (!a->any) {
        fputs(put_of_whole(a) ? "none reached " : "No mode reached ", a->to);
        put_goal(a);
        put_rates(a);
        fputs(": set a nearer target (--target), or train for more epochs.", a->to);
        put_ends(a);
    } else if (is_met_untrained(a)) {
        fputs("Weights that are not trained meet the target, ", a->to);
        put_goal(a);
        fputs(", so it tells no modes apart: set another (--target).", a->to);
        put_ends(a);
    } else if (a->fits == 1)
        put_alone(a);
    else if (!is_few(a) && a->fits == 2)
        put_two(a);
    else if (dp_comparison_seeds(a->root) >= DP_CLAIM_PAIRS)
        put_many(a);
}

char *dp_compare_answer(const json_t *root)
{
    struct answer a = {.root = root};
    struct dp_error no_memory;
    char *text = NULL;
    size_t size = 0;
    if (dp_claims_of(root, &a.claims, &no_memory) == DP_OK)
        a.to = open_memstream(&text, &size);
    if (a.to) {
        take_modes(&a);
        put_answer(&a);
    }
    dp_claims_clear(&a.claims);
    if (a.to && fclose(a.to) == 0)
        return text;
    free(text);
    return NULL;
}
