#include "deploy/compare/compare_plots.h"

#include "deploy/compare/compare_words.h"
#include "deploy/compare/gnuplot.h"
#include "deploy/compare/page.h"
#include "deploy/compare/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODES_MAX 8u
#define POINTS    200u

/* Yellow cannot be seen as a line. */
static const enum dp_colour colours[MODES_MAX] = {DP_COLOUR_BLUE,   DP_COLOUR_VERMILLION, DP_COLOUR_GREEN,
                                                  DP_COLOUR_PURPLE, DP_COLOUR_ORANGE,     DP_COLOUR_SKY,
                                                  DP_COLOUR_INK,    DP_COLOUR_GREY};

static size_t modes_of(const struct dp_compare_plots *plots)
{
    size_t modes = dp_comparison_modes(plots->root);
    return modes < MODES_MAX ? modes : MODES_MAX;
}

static void draw(struct dp_compare_plots *plots, const struct dp_plot *plot)
{
    char *svg = NULL;
    if (plots->no_plots)
        return;
    if (dp_gnuplot_draw(plot, plots->timeout_ms, &svg, &plots->why) == DP_OK)
        dp_page_figure(plots->to, plot, svg);
    else
        plots->no_plots = true;
    free(svg);
}

/* ---- course */

struct mode_curves {
    const json_t *root;
    const char *key, *over;
    double end[MODES_MAX]; /* where the last run of each mode ends */
    double x[POINTS], y[MODES_MAX][POINTS], low[MODES_MAX][POINTS], high[MODES_MAX][POINTS];
};

static const json_t *samples_of(const json_t *run)
{
    return dp_comparison_is_good(run) ? json_object_get(run, "samples") : NULL;
}

static double end_of(const json_t *samples, const char *over)
{
    size_t n = json_array_size(samples);
    return n > 0 ? dp_training_number(json_array_get(samples, n - 1), over, NULL) : (double)NAN;
}

/* The last sample at x or before; the weights are that, until the next one is seen. NaN: there is none yet. */
static double at(const json_t *samples, const char *key, const char *over, double x)
{
    double value = NAN;
    size_t i;
    json_t *sample;
    json_array_foreach((json_t *)samples, i, sample)
    {
        if (dp_training_number(sample, over, NULL) > x)
            break;
        value = dp_training_number(sample, key, NULL);
    }
    return value;
}

static void fill_point(struct mode_curves *c, size_t mode, size_t i)
{
    double sum = 0, n = 0, low = HUGE_VAL, high = -HUGE_VAL;
    for (size_t s = 0; s < dp_comparison_seeds(c->root); s++) {
        double value = at(samples_of(dp_comparison_run_of(c->root, mode, s)), c->key, c->over, c->x[i]);
        if (!isfinite(value))
            continue;
        sum += value;
        n++;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    bool past = c->x[i] > c->end[mode] && i > 0 && c->x[i - 1] >= c->end[mode];
    c->y[mode][i] = n > 0 && !past ? sum / n : (double)NAN;
    c->low[mode][i] = n > 0 && !past ? low : (double)NAN;
    c->high[mode][i] = n > 0 && !past ? high : (double)NAN;
}

static double settle_ends(struct mode_curves *c, size_t modes)
{
    double end = 0;
    for (size_t m = 0; m < modes; m++) {
        c->end[m] = 0;
        for (size_t s = 0; s < dp_comparison_seeds(c->root); s++) {
            double one = end_of(samples_of(dp_comparison_run_of(c->root, m, s)), c->over);
            c->end[m] = isfinite(one) ? fmax(c->end[m], one) : c->end[m];
        }
        end = fmax(end, c->end[m]);
    }
    return end;
}

void dp_compare_plot_course(struct dp_compare_plots *plots, const char *key, const char *over)
{
    struct dp_plot_series series[MODES_MAX];
    struct mode_curves *c = calloc(1, sizeof *c);
    size_t count = 0, modes = modes_of(plots);
    char caption[96], label[64];
    if (!c)
        return;
    bool seconds = strcmp(over, "seconds") == 0;
    *c = (struct mode_curves){.root = plots->root, .key = key, .over = over};
    double end = settle_ends(c, modes);
    for (size_t i = 0; i + 1 < POINTS; i++)
        c->x[i] = end * (double)i / (POINTS - 1);
    c->x[POINTS - 1] = end; /* by the formula it may be rounded to below the last sample */
    for (size_t m = 0; m < modes; m++) {
        size_t known = 0;
        for (size_t i = 0; i < POINTS; i++) {
            fill_point(c, m, i);
            known += isfinite(c->y[m][i]) != 0;
        }
        if (known > 1)
            series[count++] = (struct dp_plot_series){.name = dp_comparison_mode(plots->root, m),
                                                      .colour = colours[m],
                                                      .points = POINTS,
                                                      .x = c->x,
                                                      .y = c->y[m],
                                                      .low = c->low[m],
                                                      .high = c->high[m]};
    }
    const char *name = dp_compare_metric_name(key);
    (void)snprintf(caption, sizeof caption, "%c%s over %s", name[0] & ~0x20, name + 1,
                   seconds ? "time" : "examples");
    struct dp_plot plot = {.kind = DP_PLOT_LINES,
                           .caption = caption,
                           .x_label =
                               seconds ? "training time, seconds" : "examples behind applied gradients",
                           .x_from_0 = true,
                           .y_label = label,
                           .series = series,
                           .count = count};
    (void)snprintf(label, sizeof label, "%s%s", name, dp_plot_is_log(&plot) ? " (log scale)" : "");
    if (count > 0 && end > 0)
        draw(plots, &plot);
    free(c);
}

/* ---- throughput */

/* A bar of its own for each mode: of a stack whose other parts are not there. */
void dp_compare_plot_throughput(struct dp_compare_plots *plots)
{
    struct dp_plot_series series[MODES_MAX];
    const char *category[MODES_MAX];
    double y[MODES_MAX][MODES_MAX];
    size_t modes = modes_of(plots), known = 0;
    for (size_t m = 0; m < modes; m++) {
        double mean = dp_statistics_mode(plots->root, m, DP_QUANTITY_BATCHES_S).mean;
        known += isfinite(mean) != 0;
        category[m] = dp_comparison_mode(plots->root, m);
        for (size_t i = 0; i < modes; i++)
            y[m][i] = i == m ? mean : (double)NAN;
        series[m] =
            (struct dp_plot_series){.name = category[m], .colour = colours[m], .points = modes, .y = y[m]};
    }
    const struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                                 .caption = "Throughput",
                                 .x_label = "mode",
                                 .y_label = "used minibatches/s",
                                 .category = category,
                                 .series = series,
                                 .count = modes};
    if (known > 0)
        draw(plots, &plot);
}

/* ---- staleness */

static bool histogram_of(const json_t *run, bool gap, struct dp_training_histogram *out)
{
    const json_t *staleness = json_object_get(json_object_get(run, "report"), "staleness");
    if (!dp_comparison_is_good(run))
        return false;
    return gap ? dp_training_histogram(json_object_get(json_object_get(staleness, "clock_gap"), "histogram"),
                                       false, out)
               : dp_training_staleness(staleness, out);
}

bool dp_compare_has_staleness(const json_t *root, bool gap)
{
    struct dp_training_histogram one;
    for (size_t i = 0; i < dp_comparison_runs(root); i++)
        if (histogram_of(dp_comparison_run(root, i), gap, &one))
            return true;
    return false;
}

/* Buckets are the same in all runs, as far as they reach; *longest has the most of them. */
static double add_runs(const json_t *root, size_t mode, bool gap, double sums[DP_TRAINING_BUCKETS_MAX],
                       struct dp_training_histogram *longest)
{
    double total = 0;
    struct dp_training_histogram one;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        if (!histogram_of(dp_comparison_run_of(root, mode, s), gap, &one))
            continue;
        for (size_t b = 0; b < one.count; b++)
            sums[b] += one.counts[b];
        total += one.total;
        if (one.count > longest->count)
            *longest = one;
    }
    return total;
}

void dp_compare_plot_staleness(struct dp_compare_plots *plots, bool gap)
{
    static double percent[MODES_MAX][DP_TRAINING_BUCKETS_MAX];
    static char from[DP_TRAINING_BUCKETS_MAX][48];
    const char *category[DP_TRAINING_BUCKETS_MAX];
    struct dp_training_histogram longest = {.count = 0};
    struct dp_plot_series series[MODES_MAX];
    size_t count = 0;
    memset(percent, 0, sizeof percent);
    for (size_t m = 0; m < modes_of(plots); m++) {
        double total = add_runs(plots->root, m, gap, percent[m], &longest);
        for (size_t b = 0; total > 0 && b < DP_TRAINING_BUCKETS_MAX; b++)
            percent[m][b] *= 100 / total;
        if (total > 0)
            series[count++] = (struct dp_plot_series){
                .name = dp_comparison_mode(plots->root, m), .colour = colours[m], .y = percent[m]};
    }
    for (size_t b = 0; b < longest.count; b++) {
        size_t digits = strspn(longest.label[b], "0123456789.");
        (void)snprintf(from[b], sizeof from[b], "%.*s%s", (int)digits, longest.label[b],
                       longest.label[b][digits] ? "+" : "");
        category[b] = from[b];
    }
    for (size_t n = 0; n < count; n++)
        series[n].points = longest.count;
    const struct dp_plot plot = {.kind = DP_PLOT_BARS,
                                 .caption = gap ? "Clock gap of a push" : "Staleness of a push",
                                 .x_label = gap ? "steps ahead of the slowest worker"
                                                : "pushes between pull and push",
                                 .y_label = "% of the pushes",
                                 .ordered = true,
                                 .category = category,
                                 .series = series,
                                 .count = count};
    if (count > 0)
        draw(plots, &plot);
}

/* ---- time */

static void add_shares(const json_t *root, size_t mode, double sums[DP_SHARES])
{
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        double seconds[DP_SHARES];
        if (!dp_comparison_is_good(run) || !dp_training_shares(json_object_get(run, "report"), seconds))
            continue;
        for (int k = 0; k < DP_SHARES; k++)
            sums[k] += seconds[k];
    }
}

void dp_compare_plot_shares(struct dp_compare_plots *plots)
{
    static const enum dp_colour kinds[DP_SHARES] = {
        [DP_SHARE_COMPUTE] = DP_COLOUR_BLUE, [DP_SHARE_DEVICE] = DP_COLOUR_SKY,
        [DP_SHARE_READ] = DP_COLOUR_YELLOW,  [DP_SHARE_REQUESTS] = DP_COLOUR_GREEN,
        [DP_SHARE_PULL] = DP_COLOUR_ORANGE,  [DP_SHARE_PUSH] = DP_COLOUR_VERMILLION,
        [DP_SHARE_RULE] = DP_COLOUR_PURPLE,  [DP_SHARE_INJECTED] = DP_COLOUR_INK,
        [DP_SHARE_OTHER] = DP_COLOUR_GREY};
    double percent[DP_SHARES][MODES_MAX] = {{0}}, most[DP_SHARES] = {0};
    const char *category[MODES_MAX];
    struct dp_plot_series series[DP_SHARES];
    size_t bars = 0, count = 0;
    for (size_t m = 0; m < modes_of(plots); m++) {
        double sums[DP_SHARES] = {0}, all = 0;
        add_shares(plots->root, m, sums);
        for (int k = 0; k < DP_SHARES; k++)
            all += sums[k];
        for (int k = 0; all > 0 && k < DP_SHARES; k++) {
            percent[k][bars] = 100 * sums[k] / all;
            most[k] = fmax(most[k], percent[k][bars]);
        }
        if (all > 0)
            category[bars++] = dp_comparison_mode(plots->root, m);
    }
    for (int k = 0; k < DP_SHARES; k++)
        if (most[k] >= 0.05)
            series[count++] =
                (struct dp_plot_series){.name = dp_training_share_name((enum dp_training_share)k),
                                        .colour = kinds[k],
                                        .points = bars,
                                        .y = percent[k]};
    const struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                                 .caption = "Shares of the workers' time",
                                 .x_label = "mode",
                                 .y_label = "% of their time",
                                 .category = category,
                                 .series = series,
                                 .count = count};
    if (bars > 0 && count > 0)
        draw(plots, &plot);
}
