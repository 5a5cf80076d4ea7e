#include "deploy/compare/answer_parts.h"

#include "common/base/json.h"
#include "deploy/compare/compare_words.h"

#include <math.h>
#include <string.h>

/* A difference at the end of less than this is "no worse, within": of a share itself, of a loss as part of it. */
#define SMALL 0.02

const char *dp_answer_name_of(const struct dp_answer *a, size_t mode)
{
    return dp_comparison_mode(a->root, mode);
}

const json_t *dp_answer_settings_of(const struct dp_answer *a)
{
    return json_object_get(a->root, "settings");
}

const char *dp_answer_count_word(size_t count, char out[24])
{
    static const char *const words[] = {"no",  "one",   "two",   "three", "four", "five",
                                        "six", "seven", "eight", "nine",  "ten"};
    if (count < sizeof words / sizeof words[0])
        (void)snprintf(out, 24, "%s", words[count]);
    else
        (void)snprintf(out, 24, "%zu", count);
    return out;
}

void dp_answer_put_list(const struct dp_answer *a, const size_t *modes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(a->to, "%s%s", i == 0 ? "" : i + 1 == count ? " and " : ", ", dp_answer_name_of(a, modes[i]));
}

/* "accuracy 0.85" */
void dp_answer_put_goal(const struct dp_answer *a)
{
    const json_t *target = json_object_get(dp_answer_settings_of(a), "target");
    fprintf(a->to, "%s %.4g", dp_compare_metric_name(dp_comparison_metric(a->root)),
            dp_json_get_real(target, "value"));
}

/* Some run of the others may have done what is said of these. */
bool dp_answer_put_of_whole(const struct dp_answer *a)
{
    bool some = a->fits < dp_comparison_modes(a->root);
    fputs(some ? "Of the modes that ended well with every seed, " : "", a->to);
    return some;
}

void dp_answer_put_ratio(const struct dp_answer *a, const struct dp_claim *claim)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    fputs(dp_compare_ratio_text(&claim->ratio, text), a->to);
}

void dp_answer_put_own(const struct dp_answer *a, size_t mode, enum dp_comparison_quantity quantity)
{
    struct dp_interval own = dp_statistics_mode(a->root, mode, quantity);
    char text[DP_COMPARE_INTERVAL_BYTES];
    fputs(dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), text), a->to);
}

/* Under which rates the modes met: the grid's, or what a mode's name gives. */
void dp_answer_put_rates(const struct dp_answer *a)
{
    const json_t *modes = json_object_get(a->root, "modes");
    double first = dp_json_get_real(json_array_get(modes, 0), "rate");
    size_t rates = json_array_size(json_object_get(dp_answer_settings_of(a), "rates"));
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
        fprintf(a->to, ", each at the best of %s rates%s", dp_answer_count_word(rates, word),
                given ? " or at the rate given for it" : "");
    else
        fputs(one ? ", at one rate for all modes" : ", each at the rate given for it", a->to);
}

/* ---- the end */

static bool higher_is_better(const struct dp_answer *a)
{
    return dp_comparison_higher_is_better(a->root);
}

/* "higher by 0.010 [0.004, 0.016]" */
static void put_by(const struct dp_answer *a, const struct dp_claim *claim)
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

static bool is_better(const struct dp_answer *a, const struct dp_claim *end)
{
    return (end->difference.mean > 0) == higher_is_better(a);
}

/* "B ended better than A (accuracy higher by 0.010 [0.004, 0.016])", of a difference that is shown. */
void dp_answer_put_better(const struct dp_answer *a, const struct dp_claim *end)
{
    size_t better = is_better(a, end) ? end->mode : end->beside,
           worse = better == end->mode ? end->beside : end->mode;
    struct dp_claim by = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, better, worse);
    fprintf(a->to, "%s ended better than %s (", dp_answer_name_of(a, better), dp_answer_name_of(a, worse));
    put_by(a, &by);
    fputs(")", a->to);
}

/* How much worse it may have ended; NaN: there is no interval. */
static double worse_by(const struct dp_answer *a, const struct dp_claim *end)
{
    return higher_is_better(a) ? -end->difference.low : end->difference.high;
}

/* Goes on with a sentence about `mode`, which was first: at what cost? than: whose end it is held against. */
void dp_answer_put_cost(const struct dp_answer *a, size_t mode, size_t beside, bool names)
{
    struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, mode, beside);
    double by = worse_by(a, &end);
    double size = end.scale.is_logit ? 1 : dp_statistics_mode(a->root, beside, DP_QUANTITY_METRIC).mean;
    const char *than = names ? " than " : "", *other = names ? dp_answer_name_of(a, beside) : "";
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
void dp_answer_put_power(const struct dp_answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    char word[24];
    bool has_end = end && end->n > 0 && isfinite(end->seen),
         has_time = time && time->n > 0 && isfinite(time->seen_ratio);
    if (!has_time && !has_end)
        return;
    fprintf(a->to, " With %s seeds a difference of ",
            dp_answer_count_word(has_time ? time->n : end->n, word));
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

void dp_answer_put_coarse(const struct dp_answer *a, bool coarse)
{
    if (coarse)
        fputs(" The samples of the weights lie too far apart to say more about the time (--sample-every).",
              a->to);
}

bool dp_answer_is_few(const struct dp_answer *a)
{
    size_t seeds = dp_comparison_seeds(a->root);
    char word[24], needed[24];
    if (seeds >= DP_CLAIM_PAIRS)
        return false;
    fprintf(a->to, "With %s seed%s no difference can be shown: that takes %s.",
            dp_answer_count_word(seeds, word), seeds == 1 ? "" : "s",
            dp_answer_count_word(DP_CLAIM_PAIRS, needed));
    return true;
}

/* Which modes are shown to have ended elsewhere than the first one. */
void dp_answer_put_ends(const struct dp_answer *a)
{
    bool any = false;
    for (size_t i = 1; i < a->fits; i++) {
        struct dp_claim end = dp_claims_find(&a->claims, DP_QUANTITY_METRIC, a->fit[i], 0);
        if (!end.shown)
            continue;
        fputs(" ", a->to);
        dp_answer_put_better(a, &end);
        fputs(".", a->to);
        any = true;
    }
    fputs(any || a->fits < 2 ? "" : " No difference at the end is shown.", a->to);
}
