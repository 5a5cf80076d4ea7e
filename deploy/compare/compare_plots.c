#include "deploy/compare/compare_plots.h"

#include "deploy/compare/claims.h"
#include "deploy/compare/compare_curves.h"
#include "deploy/compare/compare_words.h"
#include "deploy/pages/page_plots.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODES_MAX DP_COLOUR_MODES_MAX
#define SEEDS_MAX 99u
#define RATES_MAX 32u
#define HIGH      0.9 /* an accuracy */

struct mode_names {
    size_t count;
    const char *name[MODES_MAX];
    enum dp_colour colour[MODES_MAX];
};

static struct mode_names names_of(const json_t *root)
{
    struct mode_names names = {.count = dp_comparison_modes(root)};
    if (names.count > MODES_MAX)
        names.count = MODES_MAX;
    for (size_t m = 0; m < names.count; m++)
        names.name[m] = dp_comparison_mode(root, m);
    dp_colour_modes(names.name, names.count, names.colour);
    return names;
}

static size_t seeds_of(const json_t *root)
{
    size_t seeds = dp_comparison_seeds(root);
    return seeds < SEEDS_MAX ? seeds : SEEDS_MAX;
}

/* ---- course */

/* Some mode ends above: its accuracies differ by little on a linear scale. */
static bool ends_high(const struct dp_compare_curves *curves, size_t modes)
{
    bool high = false;
    for (size_t m = 0; m < modes; m++) {
        size_t i = DP_COMPARE_CURVE_POINTS;
        while (i > 0 && !isfinite(curves->mode[m].y[i - 1]))
            i--;
        high |= i > 0 && curves->mode[m].y[i - 1] > HIGH;
    }
    return high;
}

static size_t series_of(const struct dp_compare_curves *c, const struct mode_names *names,
                        struct dp_plot_series series[MODES_MAX])
{
    size_t count = 0;
    for (size_t m = 0; m < names->count; m++)
        if (c->mode[m].known > 1)
            series[count++] = (struct dp_plot_series){.name = names->name[m],
                                                      .colour = names->colour[m],
                                                      .points = DP_COMPARE_CURVE_POINTS,
                                                      .x = c->x,
                                                      .y = c->mode[m].y,
                                                      .low = c->mode[m].low,
                                                      .high = c->mode[m].high};
    return count;
}

void dp_compare_plot_course(struct dp_page_maker *maker, const json_t *root, const char *key,
                            const char *over)
{
    const json_t *target = json_object_get(json_object_get(root, "settings"), "target");
    struct dp_compare_curves *c = dp_compare_curves_make(root, key, over);
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    bool seconds = strcmp(over, "seconds") == 0;
    char caption[96], name[64], level[64];
    double value = dp_training_number(target, "value", NULL);
    if (!c)
        return;
    bool flips = strcmp(key, "accuracy") == 0 && ends_high(c, names.count);
    if (flips)
        dp_compare_curves_flip(c);
    (void)snprintf(name, sizeof name, "%s%.40s", flips ? "1 − " : "", dp_compare_metric_name(key));
    (void)snprintf(level, sizeof level, "target, %.30s %.4g", dp_compare_metric_name(key), value);
    bool has = isfinite(value) && strcmp(dp_training_text(target, "metric"), key) == 0;
    struct dp_plot plot = {.caption = dp_page_caption(name, seconds ? "over time" : "over examples", caption),
                           .x_label =
                               seconds ? "training time, seconds" : "examples behind applied gradients",
                           .x_from_0 = true,
                           .y_log = flips,
                           .series = series,
                           .count = series_of(c, &names, series),
                           .level = flips ? 1 - value : value,
                           .level_name = has ? level : NULL};
    if (plot.count > 0 && c->end > 0)
        dp_page_plot_lines(maker, &plot, name);
    dp_compare_curves_free(c);
}

void dp_compare_plot_to_loss(struct dp_page_maker *maker, const json_t *root)
{
    struct dp_compare_curves *c = dp_compare_curves_to_loss(root);
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    if (!c)
        return;
    struct dp_plot plot = {.caption = "Time to each loss",
                           .x_label = "loss to be reached (log scale)",
                           .x_log = true,
                           .series = series,
                           .count = series_of(c, &names, series)};
    if (plot.count > 0)
        dp_page_plot_lines(maker, &plot, "seconds of training");
    dp_compare_curves_free(c);
}

/* ---- differences */

/* Claims of modes beside the first one, as differences, or, where a ratio says more, as that. */
static void plot_claims(struct dp_page_maker *maker, const json_t *root, const struct dp_claims *claims,
                        enum dp_comparison_quantity quantity, const char *caption, const char *label,
                        bool as_ratio)
{
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    const char *category[MODES_MAX];
    double x[MODES_MAX], y[MODES_MAX], low[MODES_MAX], high[MODES_MAX];
    size_t count = 0;
    for (size_t m = 1; m < names.count; m++) {
        const struct dp_claim claim = dp_claims_find(claims, quantity, m, 0);
        const struct dp_interval *shown = as_ratio ? &claim.ratio : &claim.difference;
        if (shown->n == 0 || !isfinite(shown->low) || !isfinite(shown->high))
            continue;
        x[count] = shown->mean;
        y[count] = (double)count;
        low[count] = shown->low;
        high[count] = shown->high;
        category[count] = names.name[m];
        series[count] = (struct dp_plot_series){.name = names.name[m],
                                                .colour = names.colour[m],
                                                .points = 1,
                                                .x = &x[count],
                                                .y = &y[count],
                                                .low = &low[count],
                                                .high = &high[count]};
        count++;
    }
    const struct dp_plot plot = {.kind = DP_PLOT_FOREST,
                                 .caption = caption,
                                 .x_label = label,
                                 .x_log = as_ratio,
                                 .category = category,
                                 .categories = count,
                                 .series = series,
                                 .count = count,
                                 .level = as_ratio ? 1 : 0,
                                 .level_name = "no difference"};
    if (count > 0)
        dp_page_maker_draw(maker, &plot);
}

void dp_compare_plot_differences(struct dp_page_maker *maker, const json_t *root)
{
    const char *metric = dp_comparison_metric(root), *first = dp_comparison_mode(root, 0);
    char caption[96], difference[96], times[96];
    struct dp_claims claims;
    struct dp_error no_memory;
    if (!metric[0] || dp_claims_of(root, &claims, &no_memory) != DP_OK)
        return;
    (void)snprintf(difference, sizeof difference, "difference from %.40s", first);
    (void)snprintf(times, sizeof times, "times that of %.40s (log scale)", first);
    plot_claims(maker, root, &claims, DP_QUANTITY_METRIC,
                dp_page_caption(dp_compare_metric_name(metric), "at the end, difference", caption),
                difference, false);
    plot_claims(maker, root, &claims, DP_QUANTITY_SECONDS_TO, "Time to the target, ratio", times, true);
    plot_claims(maker, root, &claims, DP_QUANTITY_EXAMPLES_TO, "Examples to the target, ratio", times, true);
    dp_claims_clear(&claims);
}

/* ---- rates */

void dp_compare_plot_rates(struct dp_page_maker *maker, const json_t *root)
{
    const json_t *rates = json_object_get(json_object_get(root, "settings"), "rates");
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    double x[RATES_MAX], y[MODES_MAX][RATES_MAX];
    size_t points = json_array_size(rates) < RATES_MAX ? json_array_size(rates) : RATES_MAX, count = 0;
    for (size_t r = 0; r < points; r++)
        x[r] = json_number_value(json_array_get(rates, r));
    for (size_t i = 1; i < points; i++) /* ascending */
        for (size_t k = i; k > 0 && x[k] < x[k - 1]; k--) {
            double swap = x[k];
            x[k] = x[k - 1];
            x[k - 1] = swap;
        }
    for (size_t m = 0; m < names.count; m++) {
        const json_t *grid = json_object_get(json_array_get(json_object_get(root, "modes"), m), "grid");
        size_t known = 0;
        for (size_t r = 0; r < points; r++) {
            double values[SEEDS_MAX];
            size_t n = 0;
            for (size_t i = 0; i < json_array_size(grid) && n < SEEDS_MAX; i++) {
                const json_t *one = json_array_get(grid, i);
                if (dp_training_number(one, "rate", NULL) == x[r])
                    values[n++] = dp_training_number(one, "metric", NULL);
            }
            y[count][r] = dp_interval_of(values, n, DP_INTERVAL_PLAIN).mean;
            known += isfinite(y[count][r]) != 0;
        }
        if (known > 0) {
            series[count] = (struct dp_plot_series){
                .name = names.name[m], .colour = names.colour[m], .points = points, .x = x, .y = y[count]};
            count++;
        }
    }
    char caption[96];
    const char *metric = dp_compare_metric_name(dp_comparison_grid_metric(root));
    struct dp_plot plot = {.caption = dp_page_caption(metric, "by learning rate", caption),
                           .x_label = "learning rate (log scale)",
                           .x_log = true,
                           .series = series,
                           .count = count};
    if (count > 0 && points > 1)
        dp_page_plot_lines(maker, &plot, metric);
}

/* ---- throughput */

/* A bar of its own for each mode: of a stack whose other parts are not there. */
void dp_compare_plot_throughput(struct dp_page_maker *maker, const json_t *root)
{
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    double y[MODES_MAX][MODES_MAX], low[MODES_MAX][MODES_MAX], high[MODES_MAX][MODES_MAX];
    size_t known = 0;
    for (size_t m = 0; m < names.count; m++) {
        struct dp_interval own = dp_statistics_mode(root, m, DP_QUANTITY_EXAMPLES_S);
        known += isfinite(own.mean) != 0;
        for (size_t i = 0; i < names.count; i++) {
            y[m][i] = i == m ? own.mean : (double)NAN;
            low[m][i] = i == m ? own.low : (double)NAN;
            high[m][i] = i == m ? own.high : (double)NAN;
        }
        series[m] = (struct dp_plot_series){.name = names.name[m],
                                            .colour = names.colour[m],
                                            .points = names.count,
                                            .y = y[m],
                                            .low = low[m],
                                            .high = high[m]};
    }
    const struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                                 .caption = "Throughput",
                                 .x_label = "mode",
                                 .y_label = "applied examples/s",
                                 .category = names.name,
                                 .series = series,
                                 .count = names.count};
    if (known > 0)
        dp_page_maker_draw(maker, &plot);
}

/* ---- staleness */

struct mode_buckets {
    double mean[MODES_MAX][DP_TRAINING_BUCKETS_MAX], low[MODES_MAX][DP_TRAINING_BUCKETS_MAX],
        high[MODES_MAX][DP_TRAINING_BUCKETS_MAX];
    struct dp_training_histogram one[SEEDS_MAX]; /* of the good runs of a mode */
};

/* Buckets are the same in all runs, as far as they reach; *longest has the most of them. Returns of how many runs. */
static size_t take_buckets(struct mode_buckets *b, const json_t *root, size_t mode, bool gap,
                           struct dp_training_histogram *longest)
{
    size_t n = 0;
    for (size_t s = 0; s < seeds_of(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        const json_t *staleness = json_object_get(json_object_get(run, "report"), "staleness");
        if (!dp_comparison_is_good(run) ||
            !dp_page_distribution(staleness, gap ? DP_PAGE_CLOCK_GAP : DP_PAGE_STALENESS, &b->one[n]))
            continue;
        if (b->one[n].count > longest->count)
            *longest = b->one[n];
        n++;
    }
    for (size_t i = 0; i < DP_TRAINING_BUCKETS_MAX; i++) {
        double percent[SEEDS_MAX];
        for (size_t r = 0; r < n; r++)
            percent[r] = i < b->one[r].count ? 100 * b->one[r].counts[i] / b->one[r].total : 0;
        struct dp_interval all = dp_interval_of(percent, n, DP_INTERVAL_PLAIN);
        b->mean[mode][i] = all.mean;
        b->low[mode][i] = isfinite(all.low) ? fmax(all.low, 0) : all.low;
        b->high[mode][i] = isfinite(all.high) ? fmin(all.high, 100) : all.high;
    }
    return n;
}

void dp_compare_plot_staleness(struct dp_page_maker *maker, const json_t *root, bool gap)
{
    struct mode_names names = names_of(root);
    struct mode_buckets *b = calloc(1, sizeof *b);
    struct dp_training_histogram longest = {.count = 0};
    struct dp_plot_series series[MODES_MAX];
    size_t count = 0;
    for (size_t m = 0; b && m < names.count; m++)
        if (take_buckets(b, root, m, gap, &longest) > 0)
            series[count++] = (struct dp_plot_series){.name = names.name[m],
                                                      .colour = names.colour[m],
                                                      .y = b->mean[m],
                                                      .low = b->low[m],
                                                      .high = b->high[m]};
    for (size_t n = 0; n < count; n++)
        series[n].points = longest.count;
    dp_page_plot_distribution(maker, gap ? DP_PAGE_CLOCK_GAP : DP_PAGE_STALENESS, &longest, series, count);
    free(b);
}

/* ---- time */

static bool add_shares(const json_t *root, size_t mode, double sums[DP_SHARES])
{
    bool any = false;
    for (size_t s = 0; s < seeds_of(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        double seconds[DP_SHARES];
        if (!dp_comparison_is_good(run) || !dp_training_shares(json_object_get(run, "report"), seconds))
            continue;
        any = true;
        for (int k = 0; k < DP_SHARES; k++)
            sums[k] += seconds[k];
    }
    return any;
}

void dp_compare_plot_shares(struct dp_page_maker *maker, const json_t *root)
{
    struct mode_names names = names_of(root);
    struct dp_page_shares shares = {.count = 0};
    for (size_t m = 0; m < names.count; m++) {
        shares.name[shares.count] = names.name[m];
        shares.count += add_shares(root, m, shares.seconds[shares.count]);
    }
    dp_page_plot_shares(maker, &shares, "mode", "% of their time", false);
}
