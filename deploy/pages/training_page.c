#include "deploy/pages/training_page.h"

#include "deploy/pages/again.h"
#include "deploy/pages/page.h"
#include "deploy/pages/page_plots.h"
#include "deploy/pages/summary.h"
#include "deploy/pages/training_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- plots */

static size_t finite(const double *values, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += isfinite(values[i]) != 0;
    return n;
}

/* A metric of all sets over epochs, and over time where that is known. */
static void draw_metric(struct dp_page_maker *maker, const struct dp_training *t,
                        const struct dp_training_metric *metric)
{
    static const struct {
        const char *set, *name;
        enum dp_colour colour;
    } sets[] = {{"train", "training set", DP_COLOUR_BLUE},
                {"validation", "validation set", DP_COLOUR_VERMILLION},
                {"test", "test set", DP_COLOUR_GREEN}};
    struct dp_plot_series series[3], timed[3];
    double *values = calloc(3 * t->count + 1, sizeof *values);
    char over_epochs[96], over_time[96];
    size_t count = 0;
    for (size_t s = 0; values && s < 3; s++) {
        double *y = values + s * t->count;
        for (size_t i = 0; i < t->count; i++)
            y[i] = dp_training_metric(json_array_get(t->epochs, i), sets[s].set, metric->key);
        if (finite(y, t->count) < 2)
            continue;
        series[count] = (struct dp_plot_series){
            .name = sets[s].name, .colour = sets[s].colour, .points = t->count, .x = t->number, .y = y};
        timed[count] = series[count];
        timed[count++].x = t->time;
    }
    struct dp_plot plot = {.caption = dp_page_caption(metric->name, "by epoch", over_epochs),
                           .x_label = "epoch",
                           .x_whole = true,
                           .series = series,
                           .count = count};
    if (count > 0)
        dp_page_plot_lines(maker, &plot, metric->name);
    plot.caption = dp_page_caption(metric->name, "over time", over_time);
    plot.x_label = "training time, seconds";
    plot.x_whole = false;
    plot.x_from_0 = true;
    plot.series = timed;
    if (count > 0 && finite(t->time, t->count) == t->count)
        dp_page_plot_lines(maker, &plot, metric->name);
    free(values);
}

static void draw_throughput(struct dp_page_maker *maker, const struct dp_training *t)
{
    double *y = calloc(t->count + 1, sizeof *y), most = 0;
    for (size_t i = 0; y && i < t->count; i++) {
        y[i] = dp_training_number(json_array_get(t->epochs, i), "examples_per_s", NULL);
        most = fmax(most, y[i]);
    }
    double unit = most >= 1e7 ? 1e6 : most >= 1e4 ? 1e3 : 1;
    for (size_t i = 0; y && i < t->count; i++)
        y[i] /= unit;
    const struct dp_plot_series series = {
        .name = "throughput", .colour = DP_COLOUR_BLUE, .points = t->count, .x = t->number, .y = y};
    const struct dp_plot plot = {.caption = "Throughput by epoch",
                                 .x_label = "epoch",
                                 .x_whole = true,
                                 .y_from_0 = true,
                                 .y_label = unit == 1e6   ? "million examples/s"
                                            : unit == 1e3 ? "thousand examples/s"
                                                          : "examples/s",
                                 .series = &series,
                                 .count = 1};
    if (y && finite(y, t->count) > 1)
        dp_page_maker_draw(maker, &plot);
    free(y);
}

static void draw_distribution(struct dp_page_maker *maker, const struct dp_training_histogram *h,
                              enum dp_page_distribution which)
{
    static const enum dp_colour colours[DP_PAGE_DISTRIBUTIONS] = {DP_COLOUR_BLUE, DP_COLOUR_PURPLE,
                                                                  DP_COLOUR_ORANGE};
    double percent[DP_TRAINING_BUCKETS_MAX];
    for (size_t b = 0; b < h->count; b++)
        percent[b] = 100 * h->counts[b] / h->total;
    const struct dp_plot_series series = {
        .name = "pushes", .colour = colours[which], .points = h->count, .y = percent};
    dp_page_plot_distribution(maker, which, h, &series, 1);
}

static void draw_shares(struct dp_page_maker *maker, const struct dp_training *t)
{
    const json_t *workers = json_object_get(t->report, "workers");
    struct dp_page_shares shares = {.count = 0};
    char label[DP_PAGE_BARS_MAX][16];
    bool alone = json_array_size(workers) == 1;
    for (size_t w = 0; w <= json_array_size(workers) && shares.count < DP_PAGE_BARS_MAX; w++) {
        if (!dp_training_shares(w ? json_array_get(workers, w - 1) : t->report, shares.seconds[shares.count]))
            continue;
        if (w == 1 && alone) /* it is all */
            break;
        (void)snprintf(label[shares.count], sizeof label[0], w || alone ? "%zu" : "all", w ? w - 1 : w);
        shares.name[shares.count] = label[shares.count];
        shares.count++;
    }
    dp_page_plot_shares(maker, &shares, "worker", "% of its time", true);
}

/* ---- sections */

static void put_head(struct dp_page_maker *maker, const struct dp_training *t)
{
    const char *model = dp_training_text(t->report, "model");
    double run = dp_training_number(t->report, "settings", "run", NULL);
    char title[160], line[DP_PATH_MAX + 160], when[40] = "";
    struct tm utc;
    (void)snprintf(title, sizeof title, "Training of %.120s", model[0] ? model : "a model");
    if (gmtime_r(&t->written, &utc))
        (void)strftime(when, sizeof when, ", report of %Y-%m-%d %H:%M UTC", &utc);
    (void)snprintf(line, sizeof line, "%s%.0f%s%s, in %s", run >= 1 ? "Run " : "", run >= 1 ? run : 0,
                   json_is_true(json_object_get(t->report, "finished")) ? ", finished" : ", not finished",
                   when, t->directory);
    dp_page_begin(maker->to, title);
    dp_page_paragraph(maker->to, "sub", run >= 1 ? line : line + 1);
    dp_page_maker_text(maker, "warn", dp_summary_warnings(t));
    dp_page_maker_text(maker, "found", dp_summary_text(t));
    const json_t *advice = json_object_get(t->report, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++)
        if (json_string_value(json_array_get(advice, i)))
            dp_page_paragraph(maker->to, "note", json_string_value(json_array_get(advice, i)));
    const char *stop = dp_training_text(json_object_get(t->report, "stop"), "text");
    if (stop[0])
        dp_page_paragraph(maker->to, "note", stop);
}

static void put_course(struct dp_page_maker *maker, const struct dp_training *t)
{
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    size_t count = dp_training_metrics(t, metric);
    dp_page_section(maker->to, "Loss and metrics");
    if (t->count == 0)
        dp_page_paragraph(maker->to, NULL, "No epoch has ended yet.");
    dp_page_figures_begin(maker->to);
    for (size_t i = 0; i < count; i++)
        draw_metric(maker, t, &metric[i]);
    draw_throughput(maker, t);
    dp_training_table_final(t, maker->to);
    dp_page_figures_end(maker->to);
    dp_training_table_epochs(t, t->count < 2, maker->to);
}

static void put_distributions(struct dp_page_maker *maker, const struct dp_training *t)
{
    static const char *const titles[DP_PAGE_DISTRIBUTIONS] = {"Staleness", "Clock gap", "Changed rows"},
                             *const buckets[DP_PAGE_DISTRIBUTIONS] = {"pushes between pull and push",
                                                                      "steps ahead", "share of its rows, %"};
    const json_t *staleness = json_object_get(t->report, "staleness");
    struct dp_training_histogram one[DP_PAGE_DISTRIBUTIONS];
    bool has[DP_PAGE_DISTRIBUTIONS], any = false;
    for (int d = 0; d < DP_PAGE_DISTRIBUTIONS; d++) {
        has[d] = dp_page_distribution(staleness, (enum dp_page_distribution)d, &one[d]);
        any |= has[d];
    }
    dp_page_section(maker->to, "Staleness");
    dp_page_paragraph(maker->to, any ? "note" : NULL,
                      any ? DP_PAGE_STALENESS_NOTE : "The report has no staleness: none was measured.");
    dp_page_figures_begin(maker->to);
    for (int d = 0; d < DP_PAGE_DISTRIBUTIONS; d++)
        if (has[d])
            draw_distribution(maker, &one[d], (enum dp_page_distribution)d);
    dp_page_figures_end(maker->to);
    for (int d = 0; d < DP_PAGE_DISTRIBUTIONS; d++)
        if (has[d])
            dp_training_table_histogram(&one[d], titles[d], buckets[d], maker->to);
}

static void put_time(struct dp_page_maker *maker, const struct dp_training *t)
{
    const json_t *workers = json_object_get(t->report, "workers");
    dp_page_section(maker->to, "Where the time went");
    dp_page_figures_begin(maker->to);
    draw_shares(maker, t);
    dp_page_figures_end(maker->to);
    if (json_array_size(workers) >= DP_PAGE_BARS_MAX)
        dp_page_paragraph(maker->to, "note", "The plot has the first workers; the table has all.");
    dp_training_table_shares(t, maker->to);
    dp_training_table_workers(t, maker->to);
}

static void put_settings(struct dp_page_maker *maker, const struct dp_training *t)
{
    static const char *const settings[] = {"setting", "value"}, *const data[] = {"data", "value"};
    dp_page_section(maker->to, "Settings and data");
    dp_page_columns_begin(maker->to);
    dp_page_table_begin(maker->to, settings, 2, 2);
    dp_page_maker_settings(maker, json_object_get(t->report, "settings"));
    dp_page_table_end(maker->to);
    dp_page_table_begin(maker->to, data, 2, 2);
    dp_page_maker_settings(maker, json_object_get(t->report, "data"));
    dp_page_table_end(maker->to);
    dp_page_figures_end(maker->to);
}

static void put_all(struct dp_page_maker *maker, const void *training)
{
    const struct dp_training *t = training;
    put_head(maker, t);
    put_course(maker, t);
    put_distributions(maker, t);
    put_time(maker, t);
    dp_page_again(maker, t->origin, t->directory);
    put_settings(maker, t);
    dp_page_maker_end(maker);
}

enum dp_status dp_training_make_page(const char *directory, const char *out, struct dp_error *err)
{
    struct dp_training training = {0};
    enum dp_status st = dp_training_read(directory, &training, err);
    const struct dp_page_source source = {
        .directory = training.directory, .report = training.path, .write = put_all, .context = &training};
    if (st == DP_OK)
        st = dp_page_make(&source, out, err);
    dp_training_clear(&training);
    return st;
}
