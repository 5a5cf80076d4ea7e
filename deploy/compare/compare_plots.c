#include "deploy/compare/compare_page.h"

#include "deploy/compare/claims.h"
#include "deploy/compare/compare_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODES_MAX DP_COLOUR_MODES_MAX
#define RATES_MAX 32u
#define POINTS    200u /* of a curve */
#define HIGH      0.9  /* an accuracy */

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

/* Of mode m. */
static struct dp_plot_series series_of(const struct mode_names *names, size_t m, size_t points,
                                       const double *x, const double *y, const double *low,
                                       const double *high)
{
    return (struct dp_plot_series){names->name[m], names->colour[m], points, x, y, low, high};
}

/* ---- curves: a metric of each mode's runs over time or examples, on points that all modes have in common */

struct curves {
    double end; /* where the last run of all ends; 0: there is none */
    double x[POINTS];
    struct {
        size_t known; /* points that are numbers */
        double y[POINTS], low[POINTS], high[POINTS];
    } mode[MODES_MAX];
};

/* The samples of one run that are in its curve. */
struct course {
    size_t count;
    double *x, *y;
};

static void take_course(struct course *to, const json_t *samples, const char *key, const char *over)
{
    size_t count = json_array_size(samples);
    bool by_examples = strcmp(over, "examples") == 0;
    *to = (struct course){.x = calloc(2 * count + 1, sizeof *to->x)};
    to->y = to->x + count;
    for (size_t i = 0; to->x && i < count; i++) {
        const json_t *sample = json_array_get(samples, i);
        if (by_examples && dp_comparison_is_left_out(samples, i))
            continue;
        to->x[to->count] = dp_training_number(sample, over, NULL);
        to->y[to->count++] = dp_training_number(sample, key, NULL);
    }
}

/* On the straight line between the samples around x; past the last one, its value. NaN: before the first one, or where one is none. */
static double value_at(const struct course *c, double x)
{
    size_t i = 0;
    while (i < c->count && !(c->x[i] > x))
        i++;
    if (i == 0)
        return (double)NAN;
    double before = c->y[i - 1];
    return i < c->count ? before + (c->y[i] - before) * (x - c->x[i - 1]) / (c->x[i] - c->x[i - 1]) : before;
}

static void set_point(struct curves *c, size_t mode, size_t point, const struct dp_interval *all)
{
    c->mode[mode].y[point] = all->mean;
    c->mode[mode].low[point] = all->low;
    c->mode[mode].high[point] = all->high;
    c->mode[mode].known += isfinite(all->mean) != 0;
}

static void fill_mode(struct curves *c, size_t mode, const struct course *course, size_t runs,
                      const struct dp_scale *scale, double end)
{
    for (size_t i = 0; i < POINTS; i++) {
        struct dp_comparison_span at[DP_COMPARISON_SEEDS_MAX];
        bool past = c->x[i] > end && i > 0 && c->x[i - 1] >= end;
        for (size_t r = 0; r < runs; r++) {
            double value = past ? (double)NAN : value_at(&course[r], c->x[i]);
            at[r] = (struct dp_comparison_span){.low = value, .at = value, .high = value};
        }
        struct dp_interval all = dp_interval_on(scale, at, runs);
        set_point(c, mode, i, &all);
    }
}

/* Of the good runs of a mode; returns of how many. end: of the longest. */
static size_t take_courses(struct course *course, const json_t *root, size_t mode, const char *key,
                           const char *over, double *end)
{
    size_t runs = 0;
    *end = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_good(root, mode, &s));) {
        struct course *one = &course[runs++];
        take_course(one, json_object_get(run, "samples"), key, over);
        if (one->count > 0 && isfinite(one->x[one->count - 1]))
            *end = fmax(*end, one->x[one->count - 1]);
    }
    return runs;
}

/* y: the mean over the good runs (comparison.h) that have a value there, by the metric's scale; low, high: its 95% interval, as tables have them. NaN after the mode's last run, and where no run has a
 * value. over: "seconds" or "examples". NULL: no memory. */
static struct curves *curves_of(const json_t *root, const char *key, const char *over)
{
    struct curves *c = calloc(1, sizeof *c);
    struct course(*courses)[DP_COMPARISON_SEEDS_MAX] = calloc(MODES_MAX, sizeof *courses);
    const struct dp_scale scale = dp_scale_of_metric(root, key);
    double end[MODES_MAX];
    size_t runs[MODES_MAX], modes = dp_comparison_modes(root);
    modes = c && courses ? (modes < MODES_MAX ? modes : MODES_MAX) : 0;
    for (size_t m = 0; m < modes; m++) {
        runs[m] = take_courses(courses[m], root, m, key, over, &end[m]);
        c->end = fmax(c->end, end[m]);
    }
    for (size_t i = 0; modes > 0 && i < POINTS;
         i++) /* by the formula the last may be rounded to below the last sample */
        c->x[i] = i + 1 < POINTS ? c->end * (double)i / (POINTS - 1) : c->end;
    for (size_t m = 0; m < modes; m++) {
        fill_mode(c, m, courses[m], runs[m], &scale, end[m]);
        for (size_t r = 0; r < runs[m]; r++)
            free(courses[m][r].x);
    }
    free(courses);
    return c;
}

/* Known where all good runs reached it, and none before its second sample: when is not known then. */
static void fill_to_loss(struct curves *c, const json_t *root, size_t mode, size_t point)
{
    const struct dp_scale scale = {.examples = NAN};
    struct dp_comparison_span to[DP_COMPARISON_SEEDS_MAX];
    size_t n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_good(root, mode, &s));) {
        to[n] = dp_comparison_seconds_to_loss(run, c->x[point]);
        to[n].at = to[n].low > 0 ? to[n].at : (double)NAN;
        n++;
    }
    struct dp_interval all = dp_interval_on(&scale, to, n);
    set_point(c, mode, point,
              all.n == n ? &all : &(struct dp_interval){.mean = NAN, .low = NAN, .high = NAN});
}

/* x: losses from the least of all means up to `end`, the first of them; y: seconds to each, where all good runs of the mode reached it
 * after their second sample. */
static struct curves *curves_to_loss(const json_t *root)
{
    struct curves *c = curves_of(root, "loss", "seconds");
    double least = INFINITY;
    if (!c)
        return NULL;
    c->end = INFINITY;
    for (size_t m = 0; m < MODES_MAX; m++) {
        for (size_t i = 0; c->mode[m].known > 0 && i < POINTS; i++)
            least = fmin(least, c->mode[m].y[i]);
        c->end = c->mode[m].known > 0 ? fmin(c->end, c->mode[m].y[0]) : c->end;
        c->mode[m].known = 0;
    }
    for (size_t i = 0; least < c->end && i < POINTS; i++) {
        c->x[i] = least * pow(c->end / least, (double)i / POINTS); /* below the end */
        for (size_t m = 0; m < dp_comparison_modes(root) && m < MODES_MAX; m++)
            fill_to_loss(c, root, m, i);
    }
    return c;
}

/* 1 - accuracy in its place. */
static void flip(struct curves *curves)
{
    for (size_t m = 0; m < MODES_MAX; m++)
        for (size_t i = 0; i < POINTS; i++) {
            double low = curves->mode[m].low[i];
            curves->mode[m].y[i] = 1 - curves->mode[m].y[i];
            curves->mode[m].low[i] = 1 - curves->mode[m].high[i];
            curves->mode[m].high[i] = 1 - low;
        }
}

/* ---- course */

/* Some mode ends above: its accuracies differ by little on a linear scale. */
static bool ends_high(const struct curves *curves, size_t modes)
{
    bool high = false;
    for (size_t m = 0; m < modes; m++) {
        size_t i = POINTS;
        while (i > 0 && !isfinite(curves->mode[m].y[i - 1]))
            i--;
        high |= i > 0 && curves->mode[m].y[i - 1] > HIGH;
    }
    return high;
}

static size_t series_of_curves(const struct curves *c, const struct mode_names *names,
                               struct dp_plot_series series[MODES_MAX])
{
    size_t count = 0;
    for (size_t m = 0; m < names->count; m++)
        if (c->mode[m].known > 1)
            series[count++] =
                series_of(names, m, POINTS, c->x, c->mode[m].y, c->mode[m].low, c->mode[m].high);
    return count;
}

void dp_compare_plot_course(struct dp_page_maker *maker, const json_t *root, const char *key,
                            const char *over)
{
    const json_t *target = json_object_get(dp_comparison_settings(root), "target");
    struct curves *c = curves_of(root, key, over);
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    bool seconds = strcmp(over, "seconds") == 0;
    char caption[96], name[64], level[64];
    double value = dp_training_number(target, "value", NULL);
    if (!c)
        return;
    bool flips = strcmp(key, "accuracy") == 0 && ends_high(c, names.count);
    if (flips)
        flip(c);
    (void)snprintf(name, sizeof name, "%s%.40s", flips ? "1 − " : "", dp_compare_metric_name(key));
    (void)snprintf(level, sizeof level, "target, %.30s %.4g", dp_compare_metric_name(key), value);
    bool has = isfinite(value) && strcmp(dp_training_text(target, "metric"), key) == 0;
    struct dp_plot plot = {.caption = dp_page_caption(name, seconds ? "over time" : "over examples", caption),
                           .x_label = seconds ? "training time, seconds" : "examples of applied gradients",
                           .x_from_0 = true,
                           .y_log = flips,
                           .series = series,
                           .count = series_of_curves(c, &names, series),
                           .level = flips ? 1 - value : value,
                           .level_name = has ? level : NULL};
    if (plot.count > 0 && c->end > 0)
        dp_page_plot_lines(maker, &plot, name);
    free(c);
}

void dp_compare_plot_to_loss(struct dp_page_maker *maker, const json_t *root)
{
    struct curves *c = curves_to_loss(root);
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    if (!c)
        return;
    struct dp_plot plot = {.caption = "Time to each loss",
                           .x_label = "loss to be reached (log scale)",
                           .x_log = true,
                           .series = series,
                           .count = series_of_curves(c, &names, series)};
    if (plot.count > 0)
        dp_page_plot_lines(maker, &plot, "seconds of training");
    free(c);
}

/* ---- differences */

/* Claims of modes against the first one, as differences, or, where a ratio says more, as that. */
static void plot_claims(struct dp_page_maker *maker, const struct dp_claims *claims,
                        enum dp_comparison_quantity quantity, const char *caption, const char *label,
                        bool as_ratio)
{
    struct mode_names names = names_of(claims->root);
    struct dp_plot_series series[MODES_MAX];
    struct dp_interval at[MODES_MAX];
    size_t count = 0;
    for (size_t m = 1; m < names.count; m++) {
        const struct dp_claim claim = dp_claims_find(claims, quantity, m, 0);
        struct dp_interval *shown = &at[count];
        *shown = as_ratio ? claim.ratio : claim.difference;
        if (shown->n > 0 && isfinite(shown->low) && isfinite(shown->high))
            series[count++] = series_of(&names, m, 1, &shown->mean, NULL, &shown->low, &shown->high);
    }
    const struct dp_plot plot = {.kind = DP_PLOT_FOREST,
                                 .caption = caption,
                                 .x_label = label,
                                 .x_log = as_ratio,
                                 .series = series,
                                 .count = count,
                                 .level = as_ratio ? 1 : 0,
                                 .level_name = "no difference"};
    if (count > 0)
        dp_page_maker_draw(maker, &plot);
}

void dp_compare_plot_differences(struct dp_page_maker *maker, const struct dp_claims *claims)
{
    const json_t *root = claims->root;
    const char *metric = dp_comparison_metric(root), *first = dp_comparison_mode(root, 0);
    char caption[96], difference[96], times[96];
    if (!metric[0])
        return;
    (void)snprintf(difference, sizeof difference, "difference from %.40s", first);
    (void)snprintf(times, sizeof times, "times that of %.40s (log scale)", first);
    plot_claims(maker, claims, DP_QUANTITY_METRIC,
                dp_page_caption(dp_compare_metric_name(metric), "at the end, difference", caption),
                difference, false);
    plot_claims(maker, claims, DP_QUANTITY_SECONDS_TO, "Time to the target, ratio", times, true);
    plot_claims(maker, claims, DP_QUANTITY_EXAMPLES_TO, "Examples to the target, ratio", times, true);
}

/* ---- rates */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void dp_compare_plot_rates(struct dp_page_maker *maker, const json_t *root)
{
    const json_t *rates = json_object_get(dp_comparison_settings(root), "rates");
    struct mode_names names = names_of(root);
    struct dp_plot_series series[MODES_MAX];
    double x[RATES_MAX], y[MODES_MAX][RATES_MAX];
    size_t points = json_array_size(rates) < RATES_MAX ? json_array_size(rates) : RATES_MAX, count = 0;
    for (size_t r = 0; r < points; r++)
        x[r] = json_number_value(json_array_get(rates, r));
    qsort(x, points, sizeof x[0], by_value);
    for (size_t m = 0; m < names.count; m++) {
        size_t known = 0;
        for (size_t r = 0; r < points; r++) {
            y[count][r] = dp_comparison_grid_mean(root, m, x[r]);
            known += isfinite(y[count][r]) != 0;
        }
        if (known > 0) {
            series[count] = series_of(&names, m, points, x, y[count], NULL, NULL);
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
        series[m] = series_of(&names, m, names.count, NULL, y[m], low[m], high[m]);
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
    struct dp_training_histogram one[DP_COMPARISON_SEEDS_MAX]; /* of the good runs of a mode */
};

/* Buckets are the same in all runs, as far as they reach; *longest has the most of them. Returns of how many runs. */
static size_t take_buckets(struct mode_buckets *b, const json_t *root, size_t mode, bool gap,
                           struct dp_training_histogram *longest)
{
    size_t n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_trained(root, mode, &s));) {
        const json_t *staleness = json_object_get(json_object_get(run, "report"), "staleness");
        if (!dp_page_distribution(staleness, gap ? DP_PAGE_CLOCK_GAP : DP_PAGE_STALENESS, &b->one[n]))
            continue;
        if (b->one[n].count > longest->count)
            *longest = b->one[n];
        n++;
    }
    for (size_t i = 0; i < DP_TRAINING_BUCKETS_MAX; i++) {
        double percent[DP_COMPARISON_SEEDS_MAX];
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
            series[count++] = series_of(&names, m, 0, NULL, b->mean[m], b->low[m], b->high[m]);
    for (size_t n = 0; n < count; n++)
        series[n].points = longest.count;
    dp_page_plot_distribution(maker, gap ? DP_PAGE_CLOCK_GAP : DP_PAGE_STALENESS, &longest, series, count);
    free(b);
}

/* ---- time */

void dp_compare_plot_shares(struct dp_page_maker *maker, const json_t *root)
{
    struct mode_names names = names_of(root);
    struct dp_page_shares shares = {.count = 0};
    for (size_t m = 0; m < names.count; m++) {
        shares.name[shares.count] = names.name[m];
        shares.count += dp_compare_add_shares(root, m, shares.seconds[shares.count]);
    }
    dp_page_plot_shares(maker, &shares, "mode", "% of their time", false);
}
