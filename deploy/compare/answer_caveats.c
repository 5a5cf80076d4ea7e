#include "deploy/compare/answer_caveats.h"

#include "common/base/json.h"
#include "deploy/compare/compare_words.h"

#include <math.h>
#include <string.h>

#define SAMPLES   10u
#define MODES_MAX 64u
#define LOSS_FACTOR                                                                                          \
    2               /* a baseline of another set, and probabilities that are a little too sure, stay below */
#define LEAST_S 1.0 /* below, starting and sampling decide a training's times */

/* ---- rates */

static const json_t *mode_of(const json_t *root, size_t mode)
{
    return json_array_get(json_object_get(root, "modes"), mode);
}

/* Whether this mode chose among the rates, and how: -1 the least, 1 the greatest. */
static bool takes_part(const json_t *root, const json_t *rates, size_t mode, int *edge)
{
    double rate = dp_json_get_real(mode_of(root, mode), "rate");
    size_t below = 0, above = 0, i;
    const json_t *one;
    if (!isfinite(rate) || json_object_get(json_object_get(mode_of(root, mode), "settings"), "rate"))
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
    for (size_t i = 0; !all && i < count; i++)
        fprintf(to, "%s%s",
                i == 0           ? ""
                : i + 1 == count ? " and "
                                 : ", ",
                dp_comparison_mode(root, modes[i]));
    fprintf(to, "%s took the %s rate that was tried: a %s one may suit %s better (--lr-grid).",
            all ? "All modes" : "", edge < 0 ? "least" : "greatest", edge < 0 ? "smaller" : "greater",
            all          ? "some"
            : count == 1 ? "it"
                         : "them");
}

void dp_caveats_put_edges(const json_t *root, FILE *to)
{
    const json_t *rates = json_object_get(json_object_get(root, "settings"), "rates");
    size_t greatest[MODES_MAX], least[MODES_MAX], greatests = 0, leasts = 0,
                                                  modes = dp_comparison_modes(root);
    if (json_array_size(rates) < 2)
        return;
    for (size_t m = 0; m < modes && m < MODES_MAX; m++) {
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

/* ---- losses */

/* By the report of the mode's first run that ended well; NaN: it has none. */
static double constant_loss(const json_t *root, size_t mode)
{
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (run && dp_comparison_outcome(root, run) == DP_COMPARISON_GOOD)
            return dp_json_get_real(json_object_get(json_object_get(run, "report"), "constant"), "loss");
    }
    return (double)NAN;
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

void dp_caveats_put_losses(const json_t *root, FILE *to)
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

/* ---- times */

/* The longest of the modes' mean times; NaN: no mode has one. */
static double longest(const json_t *root, enum dp_comparison_quantity quantity)
{
    double out = NAN;
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        if (dp_ending_is_whole(root, m))
            out = fmax(out, dp_statistics_mode(root, m, quantity).mean);
    return out;
}

bool dp_caveats_are_short(const json_t *root)
{
    return longest(root, DP_QUANTITY_SECONDS) < LEAST_S || longest(root, DP_QUANTITY_SECONDS_TO) < LEAST_S;
}

size_t dp_caveats_few_samples(const json_t *root)
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

void dp_caveats_put_short(const json_t *root, FILE *to)
{
    double training = longest(root, DP_QUANTITY_SECONDS), there = longest(root, DP_QUANTITY_SECONDS_TO);
    if (training < LEAST_S)
        fprintf(to, "These trainings are too short to compare times (%.2g s): ", training);
    else
        fprintf(to,
                "The target is reached too soon to compare times (within %.2g s): set one farther away "
                "(--target), or ",
                there);
    fputs("use more data, epochs or --pace.", to);
}
