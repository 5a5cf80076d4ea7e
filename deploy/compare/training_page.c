#include "deploy/compare/training_page.h"

#include "deploy/cli/epoch_choice.h"
#include "deploy/cli/path.h"
#include "deploy/cli/run_origin.h"
#include "deploy/compare/gnuplot.h"
#include "deploy/compare/page.h"
#include "deploy/compare/summary.h"
#include "deploy/compare/training_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_WHOLE 8u  /* buckets whose names have both their ends */
#define BARS_MAX     13u /* workers in the plot of shares of time */

/* ---- plots */

/* Nothing, once one could not be drawn: the tables stand for all of them. */
static void draw(struct dp_training_page *page, const struct dp_plot *plot)
{
    char *svg = NULL;
    if (page->no_plots)
        return;
    if (dp_gnuplot_draw(plot, page->timeout_ms, &svg, &page->why) == DP_OK)
        dp_page_figure(page->to, plot, svg);
    else
        page->no_plots = true;
    free(svg);
}

static size_t finite(const double *values, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += isfinite(values[i]) != 0;
    return n;
}

/* A metric of all sets over epochs, and over time where that is known. */
static void draw_metric(struct dp_training_page *page, const struct dp_training_metric *metric)
{
    static const struct {
        const char *set, *name;
        enum dp_colour colour;
    } sets[] = {{"train", "training set", DP_COLOUR_BLUE},
                {"validation", "validation set", DP_COLOUR_VERMILLION},
                {"test", "test set", DP_COLOUR_GREEN}};
    const struct dp_training *t = page->training;
    struct dp_plot_series series[3], timed[3];
    double *values = calloc(3 * t->count + 1, sizeof *values);
    char over_epochs[80], over_time[96], label[64];
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
    (void)snprintf(over_epochs, sizeof over_epochs, "%c%s by epoch", metric->name[0] & ~0x20,
                   metric->name + 1);
    (void)snprintf(over_time, sizeof over_time, "%c%s over time", metric->name[0] & ~0x20, metric->name + 1);
    struct dp_plot plot = {.caption = over_epochs,
                           .x_label = "epoch",
                           .x_whole = true,
                           .y_label = label,
                           .series = series,
                           .count = count};
    (void)snprintf(label, sizeof label, "%s%s", metric->name, dp_plot_is_log(&plot) ? " (log scale)" : "");
    if (count > 0)
        draw(page, &plot);
    plot.caption = over_time;
    plot.x_label = "training time, seconds";
    plot.x_whole = false;
    plot.x_from_0 = true;
    plot.series = timed;
    if (count > 0 && finite(t->time, t->count) == t->count)
        draw(page, &plot);
    free(values);
}

static void draw_throughput(struct dp_training_page *page)
{
    const struct dp_training *t = page->training;
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
        draw(page, &plot);
    free(y);
}

static void draw_histogram(struct dp_training_page *page, const struct dp_training_histogram *h,
                           const char *caption, const char *x_label, enum dp_colour colour)
{
    const char *category[DP_TRAINING_BUCKETS_MAX];
    char from[DP_TRAINING_BUCKETS_MAX][48];
    double percent[DP_TRAINING_BUCKETS_MAX];
    for (size_t b = 0; b < h->count; b++) {
        /* "4–7"; of many buckets "4+": from 4 on, up to the next. */
        size_t digits = strspn(h->label[b], "0123456789.");
        (void)snprintf(from[b], sizeof from[b], "%.*s%s", (int)digits, h->label[b],
                       h->label[b][digits] ? "+" : "");
        category[b] = h->count > LABELS_WHOLE ? from[b] : h->label[b];
        percent[b] = 100 * h->counts[b] / h->total;
    }
    const struct dp_plot_series series = {
        .name = "pushes", .colour = colour, .points = h->count, .y = percent};
    const struct dp_plot plot = {.kind = DP_PLOT_BARS,
                                 .caption = caption,
                                 .x_label = x_label,
                                 .y_label = "% of the pushes",
                                 .ordered = true,
                                 .category = category,
                                 .series = &series,
                                 .count = 1};
    draw(page, &plot);
}

static void draw_shares(struct dp_training_page *page)
{
    static const enum dp_colour colours[DP_SHARES] = {
        [DP_SHARE_COMPUTE] = DP_COLOUR_BLUE, [DP_SHARE_DEVICE] = DP_COLOUR_SKY,
        [DP_SHARE_READ] = DP_COLOUR_YELLOW,  [DP_SHARE_REQUESTS] = DP_COLOUR_GREEN,
        [DP_SHARE_PULL] = DP_COLOUR_ORANGE,  [DP_SHARE_PUSH] = DP_COLOUR_VERMILLION,
        [DP_SHARE_RULE] = DP_COLOUR_PURPLE,  [DP_SHARE_INJECTED] = DP_COLOUR_INK,
        [DP_SHARE_OTHER] = DP_COLOUR_GREY};
    const json_t *workers = json_object_get(page->training->report, "workers");
    double percent[DP_SHARES][BARS_MAX] = {{0}};
    char label[BARS_MAX][16];
    const char *category[BARS_MAX];
    bool alone = json_array_size(workers) == 1;
    size_t bars = 0, count = 0;
    struct dp_plot_series series[DP_SHARES];
    for (size_t w = 0; w <= json_array_size(workers) && bars < BARS_MAX; w++) {
        double s[DP_SHARES], sum = 0;
        if (!dp_training_shares(w ? json_array_get(workers, w - 1) : page->training->report, s))
            continue;
        if (w == 1 && alone) /* it is all */
            break;
        for (int k = 0; k < DP_SHARES; k++)
            sum += s[k];
        for (int k = 0; k < DP_SHARES; k++)
            percent[k][bars] = 100 * s[k] / sum;
        (void)snprintf(label[bars], sizeof label[bars], w || alone ? "%zu" : "all", w ? w - 1 : w);
        category[bars] = label[bars];
        bars++;
    }
    for (int k = 0; k < DP_SHARES; k++) {
        double most = 0;
        for (size_t b = 0; b < bars; b++)
            most = fmax(most, percent[k][b]);
        if (most >= 0.05)
            series[count++] =
                (struct dp_plot_series){.name = dp_training_share_name((enum dp_training_share)k),
                                        .colour = colours[k],
                                        .points = bars,
                                        .y = percent[k]};
    }
    const struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                                 .caption = "Shares of the workers' time",
                                 .x_label = "worker",
                                 .y_label = "% of its time",
                                 .ordered = true,
                                 .category = category,
                                 .series = series,
                                 .count = count};
    if (bars > 0 && count > 0)
        draw(page, &plot);
}

/* ---- sections */

static void put_text(struct dp_training_page *page, const char *kind, char *text)
{
    if (text && text[0])
        dp_page_paragraph(page->to, kind, text);
    free(text);
}

static void put_head(struct dp_training_page *page)
{
    const struct dp_training *t = page->training;
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
    dp_page_begin(page->to, title);
    dp_page_paragraph(page->to, "sub", run >= 1 ? line : line + 1);
    put_text(page, "warn", dp_summary_warnings(t));
    put_text(page, "found", dp_summary_text(t));
    const json_t *advice = json_object_get(t->report, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++)
        if (json_string_value(json_array_get(advice, i)))
            dp_page_paragraph(page->to, "note", json_string_value(json_array_get(advice, i)));
    const char *stop = dp_training_text(json_object_get(t->report, "stop"), "text");
    if (stop[0])
        dp_page_paragraph(page->to, "note", stop);
}

static void put_course(struct dp_training_page *page)
{
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    size_t count = dp_training_metrics(page->training, metric);
    dp_page_section(page->to, "Loss and metrics");
    if (page->training->count == 0)
        dp_page_paragraph(page->to, NULL, "No epoch has ended yet.");
    dp_page_figures_begin(page->to);
    for (size_t i = 0; i < count; i++)
        draw_metric(page, &metric[i]);
    draw_throughput(page);
    dp_training_table_final(page->training, page->to);
    dp_page_figures_end(page->to);
    dp_training_table_epochs(page->training, page->no_plots || page->training->count < 2, page->to);
}

static void put_distributions(struct dp_training_page *page)
{
    const json_t *staleness = json_object_get(page->training->report, "staleness");
    struct dp_training_histogram stale, gap, changed;
    bool has_stale = dp_training_staleness(staleness, &stale),
         has_gap = dp_training_histogram(
             json_object_get(json_object_get(staleness, "clock_gap"), "histogram"), false, &gap),
         has_changed = dp_training_histogram(json_object_get(staleness, "changed_histogram"), true, &changed);
    dp_page_section(page->to, "Staleness");
    if (!has_stale && !has_gap && !has_changed) {
        dp_page_paragraph(page->to, NULL, "The report has no staleness: none was measured.");
        return;
    }
    dp_page_paragraph(
        page->to, "note",
        "Staleness is how many pushes the servers applied between a worker's pull and its push. The clock "
        "gap is how many steps a worker was ahead of the slowest one.");
    dp_page_figures_begin(page->to);
    if (has_stale)
        draw_histogram(page, &stale, "Staleness of a push", "pushes between pull and push", DP_COLOUR_BLUE);
    if (has_gap)
        draw_histogram(page, &gap, "Clock gap of a push", "steps ahead of the slowest worker",
                       DP_COLOUR_PURPLE);
    if (has_changed)
        draw_histogram(page, &changed, "Rows of a push that had changed since its pull",
                       "share of its rows, %", DP_COLOUR_ORANGE);
    dp_page_figures_end(page->to);
    if (has_stale)
        dp_training_table_histogram(&stale, "Staleness", "pushes between pull and push", page->no_plots,
                                    page->to);
    if (has_gap)
        dp_training_table_histogram(&gap, "Clock gap", "steps ahead", page->no_plots, page->to);
    if (has_changed)
        dp_training_table_histogram(&changed, "Changed rows", "share of its rows, %", page->no_plots,
                                    page->to);
}

static void put_time(struct dp_training_page *page)
{
    const json_t *workers = json_object_get(page->training->report, "workers");
    dp_page_section(page->to, "Where the time went");
    dp_page_figures_begin(page->to);
    draw_shares(page);
    dp_page_figures_end(page->to);
    if (json_array_size(workers) >= BARS_MAX)
        dp_page_paragraph(page->to, "note", "The plot has the first workers; the table has all.");
    dp_training_table_shares(page->training, page->no_plots, page->to);
    dp_training_table_workers(page->training, page->to);
}

static void put_again(struct dp_training_page *page)
{
    const json_t *origin = page->training->origin;
    const char *directory = dp_training_text(origin, "directory");
    char *command = dp_run_origin_command(origin), quoted[DP_PATH_QUOTED];
    dp_page_section(page->to, "How to make it again");
    if (command) {
        char *text = malloc(strlen(command) + sizeof quoted + 16);
        bool moves = directory[0] && strlen(directory) <= DP_PATH_MAX;
        if (text)
            (void)sprintf(text, "%s%s%s%s", moves ? "cd " : "", moves ? dp_path_quote(directory, quoted) : "",
                          moves ? " && " : "", command);
        dp_page_command(page->to, text ? text : command);
        free(text);
    } else {
        dp_page_paragraph(
            page->to, NULL,
            "The directory does not keep the command: the run is of an older version, or its processes "
            "were started by hand. Its settings are below and in cluster.conf.");
    }
    free(command);
    put_text(page, NULL, dp_summary_origin(page->training));
}

void dp_training_page_write(struct dp_training_page *page)
{
    char with[700];
    put_head(page);
    put_course(page);
    put_distributions(page);
    put_time(page);
    put_again(page);
    dp_page_section(page->to, "Settings and data");
    dp_training_table_settings(page->training, page->to);
    (void)snprintf(with, sizeof with, "Made by downpour report, version %s%s%.500s%s", page->version,
                   page->no_plots ? ". There are no plots, as " : ", plots by gnuplot.",
                   page->no_plots ? page->why.text : "",
                   page->no_plots ? "; their numbers are in the tables." : "");
    dp_page_end(page->to, with);
}
