#include "deploy/pages/page.h"
#include "deploy/pages/page_maker.h"
#include "deploy/pages/summary.h"
#include "deploy/pages/training.h"
#include "deploy/run/epoch_choice.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPOCHS_MAX  200u
#define COLUMNS_MAX (3 + 3 * DP_TRAINING_METRICS_MAX)

static const struct {
    const char *key, *name, *title;
    enum dp_colour colour;
} sets[] = {{"train", "training", "training set", DP_COLOUR_BLUE},
            {"validation", "validation", "validation set", DP_COLOUR_VERMILLION},
            {"test", "test", "test set", DP_COLOUR_GREEN}};
#define SETS 3u

/* ---- tables: the numbers of plots are folded away */

static void table_final(const struct dp_training *training, FILE *to)
{
    const json_t *final = json_object_get(training->report, "final"),
                 *constant = json_object_get(training->report, "constant");
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    size_t count = dp_training_metrics(training, metric);
    if (!final)
        return;
    fputs("<div>", to);
    dp_page_table_begin(to, 1, "metric, at the end", "validation set", "test set", "best constant", NULL);
    for (size_t i = 0; i < count; i++) {
        if (isnan(dp_training_metric(final, "validation", metric[i].key)) &&
            isnan(dp_training_metric(final, "test", metric[i].key)))
            continue;
        dp_page_row(to);
        dp_page_text_cell(to, metric[i].name);
        dp_page_number_cell(to, dp_training_metric(final, "validation", metric[i].key), metric[i].digits);
        dp_page_number_cell(to, dp_training_metric(final, "test", metric[i].key), metric[i].digits);
        dp_page_number_cell(to, dp_training_number(constant, metric[i].key, NULL), metric[i].digits);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
    const char *set = dp_training_text(constant, "set");
    char line[160];
    (void)snprintf(line, sizeof line,
                   "The best constant says the same of every example; here on the %.16s set.", set);
    if (set[0])
        dp_page_paragraph(to, "note", line);
    fputs("</div>\n", to);
}

struct epoch_columns {
    size_t count;
    char heading[COLUMNS_MAX][64];
    const char *set[COLUMNS_MAX];
    const struct dp_training_metric *metric[COLUMNS_MAX];
};

static bool has_column(const struct dp_training *training, const char *set, const char *key)
{
    for (size_t i = 0; i < training->count; i++)
        if (!isnan(dp_training_metric(json_array_get(training->epochs, i), set, key)))
            return true;
    return false;
}

static void choose_columns(const struct dp_training *training, const struct dp_training_metric *metric,
                           size_t count, struct epoch_columns *out)
{
    out->count = 0;
    for (size_t s = 0; s < SETS; s++)
        for (size_t m = 0; m < count; m++) {
            if (!has_column(training, sets[s].key, metric[m].key))
                continue;
            (void)snprintf(out->heading[out->count], sizeof out->heading[0], "%s %s", sets[s].name,
                           metric[m].name);
            out->set[out->count] = sets[s].key;
            out->metric[out->count++] = &metric[m];
        }
}

static void put_epoch(const struct dp_training *training, size_t i, const struct epoch_columns *columns,
                      FILE *to)
{
    const json_t *epoch = json_array_get(training->epochs, i);
    dp_page_row(to);
    dp_page_number_cell(to, training->number[i], -1);
    for (size_t c = 0; c < columns->count; c++)
        dp_page_number_cell(to, dp_training_metric(epoch, columns->set[c], columns->metric[c]->key),
                            columns->metric[c]->digits);
    dp_page_number_cell(to, dp_training_number(epoch, "seconds", NULL), 2);
    dp_page_number_cell(to, dp_training_number(epoch, "examples_per_s", NULL), -1);
    dp_page_row_end(to);
}

static void table_epochs(const struct dp_training *training, bool open, FILE *to)
{
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    struct epoch_columns columns;
    const char *headings[COLUMNS_MAX] = {"epoch"};
    size_t best = dp_epoch_best(training->epochs), shown = 0;
    char line[120];
    if (training->count == 0)
        return;
    choose_columns(training, metric, dp_training_metrics(training, metric), &columns);
    for (size_t c = 0; c < columns.count; c++)
        headings[c + 1] = columns.heading[c];
    headings[columns.count + 1] = "seconds";
    headings[columns.count + 2] = "examples/s";
    dp_page_fold_begin(to, "All epochs as a table", open);
    dp_page_table_of(to, headings, columns.count + 3, 0);
    for (size_t i = 0; i < training->count; i++) {
        if (i != best && !dp_epoch_chosen(i, training->count, EPOCHS_MAX))
            continue;
        put_epoch(training, i, &columns, to);
        shown++;
    }
    dp_page_table_end(to);
    (void)snprintf(line, sizeof line, "%zu of %zu epochs; report.json has all.", shown, training->count);
    if (shown < training->count)
        dp_page_paragraph(to, "note", line);
    dp_page_fold_end(to);
}

/* ---- distributions and time */

static void table_histogram(const struct dp_training_histogram *histogram, const char *what,
                            const char *bucket, FILE *to)
{
    char title[80];
    (void)snprintf(title, sizeof title, "%s as a table", what);
    dp_page_fold_begin(to, title, false);
    dp_page_table_begin(to, 1, bucket, "pushes", "% of the pushes", NULL);
    for (size_t b = 0; b < histogram->count; b++) {
        dp_page_row_of(to, "tn1", histogram->label[b], histogram->counts[b],
                       100 * histogram->counts[b] / histogram->total);
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

static void put_shares(const char *name, const json_t *of, FILE *to)
{
    double seconds[DP_SHARES];
    if (!dp_training_shares(of, seconds))
        return;
    dp_page_row(to);
    dp_page_text_cell(to, name);
    for (int k = 0; k < DP_SHARES; k++)
        dp_page_number_cell(to, seconds[k], 2);
    dp_page_row_end(to);
}

static void table_shares(const struct dp_training *training, FILE *to)
{
    const json_t *workers = json_object_get(training->report, "workers");
    const char *headings[DP_SHARES + 1] = {"worker, seconds"};
    char name[24];
    for (int k = 0; k < DP_SHARES; k++)
        headings[k + 1] = dp_training_share_name((enum dp_training_share)k);
    dp_page_fold_begin(to, "Seconds of each kind as a table", false);
    dp_page_table_of(to, headings, DP_SHARES + 1, 1);
    put_shares("all", training->report, to);
    for (size_t w = 0; w < json_array_size(workers); w++) {
        (void)snprintf(name, sizeof name, "%zu", w);
        put_shares(name, json_array_get(workers, w), to);
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

static void table_workers(const struct dp_training *training, FILE *to)
{
    const json_t *workers = json_object_get(training->report, "workers");
    char name[24];
    if (json_array_size(workers) == 0)
        return;
    dp_page_table_begin(to, 2, "worker", "device", "examples", "seconds", "examples/s", "pushes",
                        "mean staleness", "max staleness", NULL);
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *one = json_array_get(workers, w);
        (void)snprintf(name, sizeof name, "%zu", w);
        dp_page_row_of(
            to, "ttn2nn2n", name, dp_training_text(one, "device"), dp_training_number(one, "examples", NULL),
            dp_training_number(one, "seconds", NULL), dp_training_number(one, "examples_per_s", NULL),
            dp_training_number(one, "pushes", NULL), dp_training_number(one, "staleness", "mean", NULL),
            dp_training_number(one, "staleness", "max", NULL));
    }
    dp_page_table_end(to);
}

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
    struct dp_plot_series series[SETS], timed[SETS];
    double *values = calloc(SETS * t->count + 1, sizeof *values);
    char over_epochs[96], over_time[96];
    size_t count = 0;
    for (size_t s = 0; values && s < SETS; s++) {
        double *y = values + s * t->count;
        for (size_t i = 0; i < t->count; i++)
            y[i] = dp_training_metric(json_array_get(t->epochs, i), sets[s].key, metric->key);
        if (finite(y, t->count) < 2)
            continue;
        series[count] = (struct dp_plot_series){
            .name = sets[s].title, .colour = sets[s].colour, .points = t->count, .x = t->number, .y = y};
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
                              enum dp_page_distribution which, enum dp_colour colour)
{
    double percent[DP_TRAINING_BUCKETS_MAX];
    for (size_t b = 0; b < h->count; b++)
        percent[b] = 100 * h->counts[b] / h->total;
    const struct dp_plot_series series = {
        .name = "pushes", .colour = colour, .points = h->count, .y = percent};
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
    dp_page_maker_text(maker, "warn", dp_summary_put_warnings, t);
    dp_page_maker_text(maker, "found", dp_summary_put_text, t);
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
    table_final(t, maker->to);
    dp_page_figures_end(maker->to);
    table_epochs(t, t->count < 2, maker->to);
}

static void put_distributions(struct dp_page_maker *maker, const struct dp_training *t)
{
    static const struct {
        const char *title, *bucket;
        enum dp_colour colour;
    } kinds[DP_PAGE_DISTRIBUTIONS] = {{"Staleness", "pushes between pull and push", DP_COLOUR_BLUE},
                                      {"Clock gap", "steps ahead", DP_COLOUR_PURPLE},
                                      {"Changed rows", "share of its rows, %", DP_COLOUR_ORANGE}};
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
            draw_distribution(maker, &one[d], (enum dp_page_distribution)d, kinds[d].colour);
    dp_page_figures_end(maker->to);
    for (int d = 0; d < DP_PAGE_DISTRIBUTIONS; d++)
        if (has[d])
            table_histogram(&one[d], kinds[d].title, kinds[d].bucket, maker->to);
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
    table_shares(t, maker->to);
    table_workers(t, maker->to);
}

static void put_settings(struct dp_page_maker *maker, const struct dp_training *t)
{
    dp_page_section(maker->to, "Settings and data");
    dp_page_columns_begin(maker->to);
    dp_page_table_begin(maker->to, 2, "setting", "value", NULL);
    dp_page_maker_settings(maker, json_object_get(t->report, "settings"));
    dp_page_table_end(maker->to);
    dp_page_table_begin(maker->to, 2, "data", "value", NULL);
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
    dp_page_maker_again(maker, t->origin, t->directory);
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
