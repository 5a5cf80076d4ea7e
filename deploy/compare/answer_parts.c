#include "deploy/compare/answer_parts.h"

#include "common/base/json.h"
#include "deploy/compare/compare_words.h"

#include <math.h>
#include <string.h>

/* A difference at the end of less than this is "no worse, within": of a share itself, of a loss as part of it. */
#define SMALL   0.02
#define SAMPLES 10u
#define LOSS_FACTOR                                                                                          \
    2               /* a baseline of another set, and probabilities that are a little too sure, stay below */
#define LEAST_S 1.0 /* below, starting and sampling decide a training's times */

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

void dp_answer_put_list(FILE *to, const json_t *root, const size_t *modes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s%s",
                i == 0           ? ""
                : i + 1 == count ? " and "
                                 : ", ",
                dp_comparison_mode(root, modes[i]));
}

/* Some run of the others may have done what is said of these. */
bool dp_answer_put_of_whole(const struct dp_answer *a)
{
    bool some = a->fits < dp_comparison_modes(a->root);
    fputs(some ? "Of the modes that ended well with every seed, " : "", a->to);
    return some;
}

const char *dp_answer_own(const struct dp_answer *a, size_t mode, enum dp_comparison_quantity quantity,
                          char out[DP_COMPARE_INTERVAL_BYTES])
{
    struct dp_interval own = dp_statistics_mode(a->root, mode, quantity);
    return dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), out);
}

static void set_rates(struct dp_answer *a)
{
    const json_t *modes = json_object_get(a->root, "modes");
    double first = dp_json_get_real(json_array_get(modes, 0), "rate");
    size_t rates = json_array_size(json_object_get(dp_comparison_settings(a->root), "rates"));
    bool one = true, given = false;
    char word[24];
    for (size_t m = 0; m < json_array_size(modes); m++) {
        const json_t *mode = json_array_get(modes, m);
        double rate = dp_json_get_real(mode, "rate");
        one &= rate == first || (isnan(rate) && isnan(first));
        given |= json_object_get(json_object_get(mode, "settings"), "rate") != NULL;
    }
    if (json_array_size(modes) > 1 && rates > 1)
        (void)snprintf(a->rates, sizeof a->rates, ", each at the best of %s rates%s",
                       dp_answer_count_word(rates, word), given ? " or at the rate given for it" : "");
    else if (json_array_size(modes) > 1)
        (void)snprintf(a->rates, sizeof a->rates, "%s",
                       one ? ", at one rate for all modes" : ", each at the rate given for it");
}

void dp_answer_init(struct dp_answer *a, const struct dp_claims *claims, FILE *to)
{
    *a = (struct dp_answer){.root = claims->root, .to = to, .claims = claims};
    const json_t *target = json_object_get(dp_comparison_settings(a->root), "target");
    (void)snprintf(a->goal, sizeof a->goal, "%.60s %.4g",
                   dp_compare_metric_name(dp_comparison_metric(a->root)), dp_json_get_real(target, "value"));
    set_rates(a);
}

/* ---- the end */

const char *dp_answer_by(const struct dp_answer *a, const struct dp_claim *claim, char out[DP_ANSWER_BYTES])
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    (void)snprintf(out, DP_ANSWER_BYTES, "%.60s %s", dp_compare_metric_name(dp_comparison_metric(a->root)),
                   dp_compare_by_text(&claim->difference, text));
    return out;
}

static bool is_better(const struct dp_answer *a, const struct dp_claim *end)
{
    return (end->difference.mean > 0) == dp_comparison_higher_is_better(a->root);
}

/* "B ended better than A (accuracy higher by 0.010 [0.004, 0.016])", of a difference that is shown. */
void dp_answer_put_better(const struct dp_answer *a, const struct dp_claim *end)
{
    size_t better = is_better(a, end) ? end->mode : end->beside,
           worse = better == end->mode ? end->beside : end->mode;
    struct dp_claim by = dp_claims_find(a->claims, DP_QUANTITY_METRIC, better, worse);
    char text[DP_ANSWER_BYTES];
    fprintf(a->to, "%s ended better than %s (%s)", dp_comparison_mode(a->root, better),
            dp_comparison_mode(a->root, worse), dp_answer_by(a, &by, text));
}

/* How much worse it may have ended; NaN: there is no interval. */
static double worse_by(const struct dp_answer *a, const struct dp_claim *end)
{
    return dp_comparison_higher_is_better(a->root) ? -end->difference.low : end->difference.high;
}

/* At most that, and it is small. */
static bool is_no_worse(const struct dp_answer *a, const struct dp_claim *end)
{
    double size = end->scale.is_logit ? 1 : dp_statistics_mode(a->root, end->beside, DP_QUANTITY_METRIC).mean;
    return worse_by(a, end) <= SMALL * size;
}

static void put_within(const struct dp_answer *a, const struct dp_claim *end)
{
    char number[DP_COMPARE_INTERVAL_BYTES];
    int digits = dp_compare_difference_digits(&end->difference);
    fprintf(a->to, ", within %s", dp_compare_number_text(fmax(worse_by(a, end), 0), digits, number));
}

/* Goes on with a sentence about `mode`, which was first: at what cost? than: whose end it is held against. */
void dp_answer_put_cost(const struct dp_answer *a, size_t mode, size_t beside, bool names)
{
    struct dp_claim end = dp_claims_find(a->claims, DP_QUANTITY_METRIC, mode, beside);
    char text[DP_ANSWER_BYTES];
    const char *than = names ? " than " : "", *other = names ? dp_comparison_mode(a->root, beside) : "";
    if (end.n == 0 || !isfinite(worse_by(a, &end)))
        return;
    if (end.shown)
        fprintf(a->to, "%s%s%s", is_better(a, &end) ? " and ended better" : " but ended worse", than, other);
    else if (is_no_worse(a, &end)) {
        fprintf(a->to, " and ended no worse%s%s", than, other);
        put_within(a, &end);
    } else
        fprintf(a->to, ", and no difference%s%s at the end is shown", names ? " from " : "", other);
    fprintf(a->to, " (%s)", dp_answer_by(a, &end, text));
}

/* ---- what was not shown */

/* "With five seeds a difference of about 12% in time and 0.02 in accuracy would have been seen." */
void dp_answer_put_power(const struct dp_answer *a, const struct dp_claim *time, const struct dp_claim *end)
{
    char word[24], text[DP_COMPARE_INTERVAL_BYTES];
    struct dp_interval seen = {.n = 1, .mean = end ? end->seen : (double)NAN, .low = NAN, .high = NAN};
    bool has_end = end && end->n > 0 && isfinite(end->seen),
         has_time = time && time->n > 0 && isfinite(time->seen_ratio);
    if (!has_time && !has_end)
        return;
    fprintf(a->to, " With %s seeds a difference of ",
            dp_answer_count_word(has_time ? time->n : end->n, word));
    if (has_time && time->seen_ratio < 2)
        fprintf(a->to, time->seen_ratio < 1.1 ? "about %.2g%% in time" : "about %.0f%% in time",
                100 * (time->seen_ratio - 1));
    else if (has_time && time->seen_ratio < 10)
        fprintf(a->to, "a factor of about %.2g in time", time->seen_ratio);
    else if (has_time)
        fputs("a factor of more than ten in time", a->to);
    if (has_end)
        fprintf(a->to, "%sabout %s in %s", has_time ? " and " : "", dp_compare_difference_text(&seen, text),
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

/* A sentence of those that ended no worse, and how much worse they may have ended at most. */
static void put_no_worse(const struct dp_answer *a, const size_t *modes, size_t count,
                         const struct dp_claim *worst)
{
    char text[DP_ANSWER_BYTES];
    if (count == 0)
        return;
    fputs(" ", a->to);
    dp_answer_put_list(a->to, a->root, modes, count);
    fprintf(a->to, " ended no worse than %s", dp_comparison_mode(a->root, 0));
    put_within(a, worst);
    if (count == 1)
        fprintf(a->to, " (%s)", dp_answer_by(a, worst, text));
    fputs(".", a->to);
}

void dp_answer_put_ends(const struct dp_answer *a)
{
    size_t good[DP_COMPARISON_MODES_MAX], goods = 0, open[DP_COMPARISON_MODES_MAX], opens = 0, shown = 0;
    struct dp_claim worst = {.n = 0};
    for (size_t i = 1; i < a->fits; i++) {
        struct dp_claim end = dp_claims_find(a->claims, DP_QUANTITY_METRIC, a->fit[i], 0);
        if (end.shown) {
            shown++;
            fputs(" ", a->to);
            dp_answer_put_better(a, &end);
            fputs(".", a->to);
        } else if (end.n > 0 && is_no_worse(a, &end)) {
            worst = goods == 0 || worse_by(a, &end) > worse_by(a, &worst) ? end : worst;
            good[goods++] = a->fit[i];
        } else
            open[opens++] = a->fit[i];
    }
    put_no_worse(a, good, goods, &worst);
    if (opens == 0)
        return;
    bool some = shown + goods > 0;
    fprintf(a->to,
            some ? " No difference from %s at the end is shown for " : " No difference at the end is shown",
            dp_comparison_mode(a->root, 0));
    dp_answer_put_list(a->to, a->root, open, some ? opens : 0);
    fputs(".", a->to);
}

/* ---- reservations: rates */

/* Whether this mode chose among the rates, and how: -1 the least, 1 the greatest. */
static bool takes_part(const json_t *root, const json_t *rates, size_t mode, int *edge)
{
    double rate = dp_json_get_real(dp_comparison_mode_object(root, mode), "rate");
    size_t below = 0, above = 0, i;
    const json_t *one;
    if (!isfinite(rate) ||
        json_object_get(json_object_get(dp_comparison_mode_object(root, mode), "settings"), "rate"))
        return false;
    json_array_foreach((json_t *)rates, i, one)
    {
        below += json_number_value(one) < rate;
        above += json_number_value(one) > rate;
    }
    bool diverged = dp_ending_count(root, mode, DP_COMPARISON_DIVERGED) > 0; /* a greater rate is no cure */
    *edge = below == 0 ? -1 : above == 0 && !diverged ? 1 : 0;
    return true;
}

static void put_edge(const json_t *root, FILE *to, const size_t *modes, size_t count, bool all, int edge)
{
    if (count == 0)
        return;
    fputs(" ", to);
    dp_answer_put_list(to, root, modes, all ? 0 : count);
    fprintf(to, "%s took the %s rate that was tried: a %s one may suit %s better (--lr-grid).",
            all ? "All modes" : "", edge < 0 ? "least" : "greatest", edge < 0 ? "smaller" : "greater",
            all          ? "some"
            : count == 1 ? "it"
                         : "them");
}

void dp_answer_put_edges(const json_t *root, FILE *to)
{
    const json_t *rates = json_object_get(dp_comparison_settings(root), "rates");
    size_t greatest[DP_COMPARISON_MODES_MAX], least[DP_COMPARISON_MODES_MAX],
        greatests = 0, leasts = 0, modes = dp_comparison_modes(root);
    if (json_array_size(rates) < 2)
        return;
    for (size_t m = 0; m < modes; m++) {
        int edge = 0;
        if (!takes_part(root, rates, m, &edge))
            continue;
        if (edge > 0)
            greatest[greatests++] = m;
        else if (edge < 0)
            least[leasts++] = m;
    }
    put_edge(root, to, greatest, greatests, greatests == modes && modes > 1, 1);
    put_edge(root, to, least, leasts, leasts == modes && modes > 1, -1);
}

/* ---- reservations: losses */

/* By the report of the mode's first run that ended well; NaN: it has none. */
static double constant_loss(const json_t *root, size_t mode)
{
    size_t first = 0;
    const json_t *run = dp_comparison_next_good(root, mode, &first);
    return dp_json_get_real(json_object_get(json_object_get(run, "report"), "constant"), "loss");
}

static void put_loss(FILE *to, const char *mode, double loss, double constant)
{
    char text[2][DP_COMPARE_INTERVAL_BYTES];
    fprintf(
        to,
        " The loss of %s at the end (%s) is worse than a constant prediction's (%s): its rate is too high.",
        mode, dp_compare_number_text(loss, dp_compare_digits(DP_QUANTITY_LOSS, loss), text[0]),
        dp_compare_number_text(constant, dp_compare_digits(DP_QUANTITY_LOSS, constant), text[1]));
}

void dp_answer_put_losses(const json_t *root, FILE *to)
{
    const char *metric = dp_comparison_metric(root);
    if (strcmp(metric, "loss") == 0 || strcmp(metric, "logloss") == 0)
        return;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double loss = dp_statistics_mode(root, m, DP_QUANTITY_LOSS).mean, constant = constant_loss(root, m);
        if (dp_ending_is_whole(root, m) && constant > 0 && loss > LOSS_FACTOR * constant)
            put_loss(to, dp_comparison_mode(root, m), loss, constant);
    }
}

/* ---- reservations: times */

/* The longest of the modes' mean times; NaN: no mode has one. */
static double longest(const json_t *root, enum dp_comparison_quantity quantity)
{
    double out = NAN;
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        if (dp_ending_is_whole(root, m))
            out = fmax(out, dp_statistics_mode(root, m, quantity).mean);
    return out;
}

bool dp_answer_is_short(const json_t *root)
{
    return longest(root, DP_QUANTITY_SECONDS) < LEAST_S || longest(root, DP_QUANTITY_SECONDS_TO) < LEAST_S;
}

size_t dp_answer_few_samples(const json_t *root)
{
    size_t most = 0;
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i), *samples = json_object_get(run, "samples");
        size_t count = 0;
        for (size_t k = 0; k < json_array_size(samples); k++)
            count += !dp_comparison_is_left_out(samples, k);
        if (count > most && dp_comparison_outcome(root, run) == DP_COMPARISON_GOOD)
            most = count;
    }
    return most < SAMPLES ? most : 0;
}

void dp_answer_put_short(const json_t *root, FILE *to)
{
    double training = longest(root, DP_QUANTITY_SECONDS), there = longest(root, DP_QUANTITY_SECONDS_TO);
    if (training < LEAST_S)
        fprintf(to, "These trainings are too short to compare times (%.2g s): ", training);
    else
        fprintf(to,
                "The target is reached too soon to compare times (within %.2g s): set one farther away "
                "(--target), or ",
                there);
    fputs("use more data, epochs or --inject pace.", to);
}
