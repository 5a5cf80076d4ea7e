#include "deploy/compare/compare_page.h"

#include "deploy/compare/claims.h"
#include "deploy/compare/compare_words.h"
#include "deploy/pages/page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MAX 32u

/* ---- what was found */

static void put_head(struct dp_page_maker *maker, const struct dp_compare_page *page)
{
    static const struct {
        const char *kind;
        void (*put)(FILE *to, const void *claims);
    } parts[] = {{"warn", dp_compare_put_failed},  {"found", dp_compare_put_answer},
                 {"found", dp_compare_put_target}, {"found", dp_compare_put_end},
                 {"found", dp_compare_put_speed},  {"found", dp_compare_put_efficiency},
                 {"warn", dp_compare_put_machine}, {"note", dp_compare_put_what},
                 {"note", dp_compare_put_brackets}};
    const json_t *root = page->claims.root;
    char title[160], line[DP_PATH_MAX + 160];
    (void)snprintf(title, sizeof title, "Modes of training compared: %.110s",
                   dp_training_text(dp_comparison_settings(root), "model"));
    (void)snprintf(line, sizeof line, "%s, begun %s, in %s",
                   json_is_true(json_object_get(root, "finished")) ? "Finished" : "Not finished",
                   dp_training_text(root, "began"), page->directory);
    dp_page_begin(maker->to, title);
    dp_page_paragraph(maker->to, "sub", line);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        dp_page_maker_text(maker, parts[i].kind, parts[i].put, &page->claims);
}

/* ---- tables */

/* Of how many runs it is, where not of all. */
static void put_interval_cell(FILE *to, const json_t *root, size_t mode, enum dp_comparison_quantity quantity)
{
    struct dp_interval own = dp_statistics_mode(root, mode, quantity);
    char text[DP_COMPARE_INTERVAL_BYTES + 64];
    (void)dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), text);
    size_t good = dp_ending_count(root, mode, DP_COMPARISON_GOOD), runs = dp_comparison_tried(root, mode);
    bool target = quantity == DP_QUANTITY_SECONDS_TO || quantity == DP_QUANTITY_EXAMPLES_TO;
    if (target && good > 0 && own.n == 0)
        (void)snprintf(text, sizeof text, "not reached");
    else if (own.n > 0 && own.n < runs)
        (void)snprintf(text + strlen(text), 64, " (%zu of %zu)", own.n, runs);
    dp_page_text_cell(to, text);
}

static void put_result(FILE *to, const struct dp_claims *claims, size_t mode)
{
    const json_t *root = claims->root;
    static const enum dp_comparison_quantity shown[] = {DP_QUANTITY_METRIC, DP_QUANTITY_LOSS,
                                                        DP_QUANTITY_SECONDS_TO, DP_QUANTITY_EXAMPLES_TO,
                                                        DP_QUANTITY_EXAMPLES_S};
    const struct dp_claim speed = dp_claims_find(claims, DP_QUANTITY_EXAMPLES_S, mode, 0);
    char ratio[DP_COMPARE_INTERVAL_BYTES], share[16];
    dp_page_row(to);
    dp_page_text_cell(to, dp_comparison_mode(root, mode));
    for (size_t q = 0; q < sizeof shown / sizeof shown[0]; q++) {
        if (shown[q] == DP_QUANTITY_SECONDS_TO)
            dp_page_text_cell(to, dp_compare_share_text(
                                      dp_compare_examples_share(root, mode, "applied", "examples"), share));
        put_interval_cell(to, root, mode, shown[q]);
    }
    dp_page_text_cell(to, mode ? dp_compare_ratio_text(&speed.ratio, ratio) : "1");
    put_interval_cell(to, root, mode, DP_QUANTITY_SECONDS);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_GOOD), -1);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_DIVERGED), -1);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_FAILED), -1);
    dp_page_row_end(to);
}

static void put_results(FILE *to, const struct dp_claims *claims)
{
    const json_t *root = claims->root;
    char metric[64], beside[64];
    (void)snprintf(metric, sizeof metric, "%.40s at the end",
                   dp_compare_metric_name(dp_comparison_metric(root)));
    (void)snprintf(beside, sizeof beside, "beside %.40s", dp_comparison_mode(root, 0));
    dp_page_table_begin(to, 9, "mode", metric, "loss at the end", "examples applied", "seconds to the target",
                        "examples to the target", "applied examples/s", beside, "seconds of training",
                        "good runs", "diverged", "failed", NULL);
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        put_result(to, claims, m);
    dp_page_table_end(to);
    dp_page_paragraph(
        to, "note",
        "Of good runs: means over the seeds (geometric ones; of shares such as an accuracy, by their logits) "
        "and, in brackets, 95% intervals of them by Student's t. The column for the difference from the "
        "first mode is paired by seed, and its interval is that of a claim. The target is reached between "
        "the last sample below it and the first at or above it, and the interval covers both. Applied: "
        "examples whose gradients the servers applied.");
}

static void put_promises(struct dp_page_maker *maker, const json_t *root)
{
    const json_t *modes = json_object_get(root, "modes");
    FILE *to = maker->to;
    dp_page_section(to, "Promise of each mode");
    dp_page_table_begin(to, 3, "mode", "promise", "where its rule was the limit", NULL);
    for (size_t m = 0; m < json_array_size(modes); m++) {
        char *limit = dp_page_text(dp_compare_put_limit, &(struct dp_compare_limit){root, m});
        dp_page_row_of(to, "tvv", dp_comparison_mode(root, m),
                       dp_training_text(json_array_get(modes, m), "promise"), limit ? limit : "");
        free(limit);
    }
    dp_page_table_end(to);
}

static void put_rates(struct dp_page_maker *maker, const struct dp_claims *claims)
{
    const json_t *root = claims->root, *modes = json_object_get(root, "modes");
    char at_end[96];
    FILE *to = maker->to;
    char *words = dp_page_text(dp_compare_put_rates, claims);
    if (words && words[0]) {
        dp_page_section(to, "Learning rates");
        dp_page_paragraph(to, NULL, words);
    }
    free(words);
    if (json_array_size(json_object_get(dp_comparison_settings(root), "rates")) == 0)
        return;
    (void)snprintf(at_end, sizeof at_end, "%.64s at the end",
                   dp_compare_metric_name(dp_comparison_grid_metric(root)));
    dp_page_figures_begin(to);
    dp_compare_plot_rates(maker, root);
    dp_page_figures_end(to);
    dp_page_fold_begin(to, "All rates as a table", false);
    dp_page_table_begin(to, 1, "mode", "rate", "seed", at_end, NULL);
    for (size_t m = 0; m < json_array_size(modes); m++) {
        const json_t *mode = json_array_get(modes, m), *grid = json_object_get(mode, "grid");
        double chosen = dp_training_number(mode, "rate", NULL);
        for (size_t i = 0; i < json_array_size(grid); i++) {
            const json_t *one = json_array_get(grid, i);
            double rate = dp_training_number(one, "rate", NULL);
            char name[96], text[32];
            (void)snprintf(name, sizeof name, "%.40s%s", dp_comparison_mode(root, m),
                           rate == chosen ? " (chosen)" : "");
            (void)snprintf(text, sizeof text, "%g", rate);
            dp_page_row_of(to, "tt04", name, text, dp_training_number(one, "seed", NULL),
                           dp_training_number(one, "metric", NULL));
        }
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

static void put_runs(struct dp_page_maker *maker, const json_t *root)
{
    FILE *to = maker->to;
    dp_page_fold_begin(to, "Every run", false);
    dp_page_table_begin(to, 2, "run", "status", dp_compare_metric_name(dp_comparison_metric(root)), "loss",
                        "seconds to the target", "applied examples/s", "seconds of training", "samples",
                        NULL);
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        const char *dir = dp_training_text(run, "dir");
        dp_page_row_of(to, "tt452n2n", dir[0] ? dir : dp_training_text(run, "mode"),
                       dp_ending_status(root, run), dp_comparison_value(root, run, DP_QUANTITY_METRIC),
                       dp_comparison_value(root, run, DP_QUANTITY_LOSS),
                       dp_comparison_value(root, run, DP_QUANTITY_SECONDS_TO),
                       dp_comparison_value(root, run, DP_QUANTITY_EXAMPLES_S),
                       dp_comparison_value(root, run, DP_QUANTITY_SECONDS),
                       (double)json_array_size(json_object_get(run, "samples")));
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

/* ---- tables for other programs (RFC 4180, with \n at the end of a line): a value that is not known is empty */

static void put_csv_text(FILE *to, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, to);
        return;
    }
    fputc('"', to);
    for (; *text; text++)
        fprintf(to, *text == '"' ? "\"\"" : "%c", *text);
    fputc('"', to);
}

static void put_csv_number(FILE *to, double value)
{
    fputc(',', to);
    if (isfinite(value))
        fprintf(to, "%.10g", value);
}

static void put_csv_run(FILE *to, const json_t *run)
{
    put_csv_text(to, dp_training_text(run, "mode"));
    fprintf(to, ",%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(run, "seed")));
}

static bool is_of_time(const char *key)
{
    static const char *const keys[] = {"seconds", "examples", "pushes", "at", "by"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

/* All keys that any sample has, in the order in which they are found. */
static size_t metrics_of(const json_t *root, const char *metric[METRICS_MAX])
{
    size_t count = 0, s;
    json_t *sample, *value;
    const char *key;
    for (size_t r = 0; r < dp_comparison_runs(root); r++)
        json_array_foreach(json_object_get(dp_comparison_run(root, r), "samples"), s, sample)
            json_object_foreach(sample, key, value)
        {
            bool known = is_of_time(key) || count == METRICS_MAX;
            for (size_t i = 0; i < count; i++)
                known |= strcmp(key, metric[i]) == 0;
            if (!known)
                metric[count++] = key;
        }
    return count;
}

static void put_curves_csv(FILE *to, const void *root)
{
    const char *metric[METRICS_MAX];
    size_t count = metrics_of(root, metric), s;
    json_t *sample;
    fputs("mode,seed,by,seconds,examples,pushes", to);
    for (size_t i = 0; i < count; i++) {
        fputc(',', to);
        put_csv_text(to, metric[i]);
    }
    fputc('\n', to);
    for (size_t r = 0; r < dp_comparison_runs(root); r++)
        json_array_foreach(json_object_get(dp_comparison_run(root, r), "samples"), s, sample)
        {
            put_csv_run(to, dp_comparison_run(root, r));
            fputc(',', to);
            put_csv_text(to, dp_training_text(sample, "by"));
            put_csv_number(to, dp_training_number(sample, "seconds", NULL));
            put_csv_number(to, dp_training_number(sample, "examples", NULL));
            put_csv_number(to, dp_training_number(sample, "pushes", NULL));
            for (size_t i = 0; i < count; i++)
                put_csv_number(to, dp_training_number(sample, metric[i], NULL));
            fputc('\n', to);
        }
}

static void put_runs_csv(FILE *to, const void *root)
{
    const char *metric = dp_comparison_metric(root);
    fputs("mode,seed,status,error,metric", to);
    for (int q = 0; q < DP_QUANTITIES; q++)
        fprintf(to, ",%s",
                q == DP_QUANTITY_METRIC ? "value"
                                        : dp_comparison_quantity_key((enum dp_comparison_quantity)q));
    fputs(",rate,batch,workers,wall_seconds,staleness_mean,staleness_max,dropped_examples\n", to);
    for (size_t r = 0; r < dp_comparison_runs(root); r++) {
        const json_t *run = dp_comparison_run(root, r), *report = json_object_get(run, "report");
        put_csv_run(to, run);
        fputc(',', to);
        put_csv_text(to, dp_ending_status(root, run));
        fputc(',', to);
        put_csv_text(to, dp_training_text(run, "error"));
        fputc(',', to);
        put_csv_text(to, metric);
        for (int q = 0; q < DP_QUANTITIES; q++)
            put_csv_number(to, dp_comparison_value(root, run, (enum dp_comparison_quantity)q));
        put_csv_number(to, dp_training_number(report, "settings", "rate", NULL));
        put_csv_number(to, dp_training_number(report, "settings", "batch", NULL));
        put_csv_number(to, dp_training_number(report, "settings", "workers", NULL));
        put_csv_number(to, dp_training_number(run, "wall_seconds", NULL));
        put_csv_number(to, dp_training_number(report, "staleness", "mean", NULL));
        put_csv_number(to, dp_training_number(report, "staleness", "max", NULL));
        put_csv_number(to, dp_training_number(report, "dropped", "examples", NULL));
        fputc('\n', to);
    }
}

static void put_data_links(struct dp_page_maker *maker, const json_t *root)
{
    bool curves = dp_page_maker_file(maker, "curves.csv", put_curves_csv, root),
         runs = dp_page_maker_file(maker, "runs.csv", put_runs_csv, root);
    if (!curves || !runs)
        return;
    fputs("<p class=\"note\">As files: ", maker->to);
    dp_page_link(maker->to, "curves.csv", "curves.csv");
    fputs("(each sample of each run), ", maker->to);
    dp_page_link(maker->to, "runs.csv", "runs.csv");
    fputs("(each run), report.json (all), figures/ (each plot as SVG).</p>\n", maker->to);
}

/* ---- staleness */

/* A number of a report's staleness: "p50", or "examples" and "p50". */
static const struct {
    const char *heading, *of, *key;
    int digits;
} staleness_columns[] = {
    {"staleness in examples: mean", "examples", "mean", 1},
    {"50%", "examples", "p50", -1},
    {"90%", "examples", "p90", -1},
    {"99%", "examples", "p99", -1},
    {"in pushes: mean", "mean", NULL, 2},
    {"50%", "p50", NULL, 1},
    {"90%", "p90", NULL, 1},
    {"99%", "p99", NULL, 1},
    {"of them the worker's own", "own", "mean", 2},
    {"clock gap: mean", "clock_gap", "mean", 2},
    {"most", "clock_gap", "max", -1},
};
#define STALENESS_COLUMNS (sizeof staleness_columns / sizeof staleness_columns[0])

/* NaN: no good run has it. */
static double staleness_of(const json_t *root, size_t mode, size_t column)
{
    double sum = 0, n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_trained(root, mode, &s));) {
        const json_t *value = json_object_get(json_object_get(run, "report"), "staleness");
        value = json_object_get(value, staleness_columns[column].of);
        value = staleness_columns[column].key ? json_object_get(value, staleness_columns[column].key) : value;
        sum += json_number_value(value);
        n += json_is_number(value);
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* Means over the good runs of each mode. Nothing where no report has any (of older builds). */
static void put_staleness(const json_t *root, FILE *to)
{
    const char *headings[STALENESS_COLUMNS + 1] = {"mode"};
    bool any = false;
    for (size_t c = 0; c < STALENESS_COLUMNS; c++)
        headings[c + 1] = staleness_columns[c].heading;
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        any |= !isnan(staleness_of(root, m, 0));
    if (!any)
        return;
    dp_page_table_of(to, headings, STALENESS_COLUMNS + 1, 1);
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        dp_page_row(to);
        dp_page_text_cell(to, dp_comparison_mode(root, m));
        for (size_t c = 0; c < STALENESS_COLUMNS; c++)
            dp_page_number_cell(to, staleness_of(root, m, c), staleness_columns[c].digits);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
}

/* ---- sections */

static void put_course(struct dp_page_maker *maker, const struct dp_claims *claims)
{
    const json_t *root = claims->root;
    const char *metric = dp_comparison_metric(root);
    FILE *to = maker->to;
    dp_page_section(to, "Results");
    put_results(to, claims);
    dp_page_figures_begin(to);
    if (metric[0] && strcmp(metric, "loss") != 0) {
        dp_compare_plot_course(maker, root, metric, "seconds");
        dp_compare_plot_course(maker, root, metric, "examples");
    }
    dp_compare_plot_differences(maker, claims);
    dp_compare_plot_course(maker, root, "loss", "seconds");
    dp_compare_plot_course(maker, root, "loss", "examples");
    dp_compare_plot_to_loss(maker, root);
    dp_page_figures_end(to);
    dp_page_paragraph(
        to, "note",
        "Lines are means over the seeds of good runs, on the scored set; bands and error bars are "
        "95% intervals of them. A line through a dot is the interval of a claim. A sample's time is "
        "training time since the first push.");
    put_runs(maker, root);
    put_data_links(maker, root);
}

static void put_work(struct dp_page_maker *maker, const json_t *root)
{
    static const char *const parts[][2] = {
        {"applied", "examples"}, {"dropped", "late"}, {"dropped", "not_computed"}};
    FILE *to = maker->to;
    dp_page_table_begin(to, 1, "mode", "examples applied", "came too late", "not computed",
                        "least seconds by the delays", "speed reached of theirs", NULL);
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        char text[16];
        dp_page_row(to);
        dp_page_text_cell(to, dp_comparison_mode(root, m));
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
            dp_page_text_cell(to, dp_compare_share_text(
                                      dp_compare_examples_share(root, m, parts[i][0], parts[i][1]), text));
        dp_page_number_cell(to, dp_compare_mode_mean(root, m, "least_seconds"), 2);
        dp_page_text_cell(to, dp_compare_share_text(dp_compare_mode_mean(root, m, "efficiency"), text));
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
    dp_page_paragraph(to, "note",
                      "Examples are shares of the examples of all epochs. A gradient that comes too late for "
                      "its step is dropped. A slow worker does not compute the gradients of steps that are "
                      "over. The least seconds are a run's time if only its injected delays take time.");
}

static void put_time(struct dp_page_maker *maker, const json_t *root)
{
    FILE *to = maker->to;
    dp_page_section(to, "Throughput, staleness and time");
    dp_page_figures_begin(to);
    dp_compare_plot_throughput(maker, root);
    dp_compare_plot_shares(maker, root);
    dp_compare_plot_staleness(maker, root, false);
    dp_compare_plot_staleness(maker, root, true);
    dp_page_figures_end(to);
    put_work(maker, root);
    dp_page_paragraph(to, "note", DP_PAGE_STALENESS_NOTE);
    put_staleness(root, to);
}

/* ---- settings */

/* The report of its first run that was trained to its end; NULL: there is none. */
static const json_t *report_of(const json_t *root, size_t mode)
{
    size_t first = 0;
    return json_object_get(dp_comparison_next_trained(root, mode, &first), "report");
}

static bool is_of_run(const char *key)
{
    return strcmp(key, "seed") == 0 || strcmp(key, "run") == 0;
}

/* Of the comparison, and what the reports of all runs have in common: there an optimizer has all its numbers. */
static json_t *common_settings(const json_t *root)
{
    static const char *const parts[] = {"settings", "data"};
    json_t *all = json_deep_copy(dp_comparison_settings(root)), *value;
    const char *key;
    for (size_t p = 0; p < 2; p++)
        for (size_t m = 0; m < dp_comparison_modes(root); m++)
            json_object_foreach(json_object_get(report_of(root, m), parts[p]), key, value)
            {
                const json_t *common = dp_comparison_common(root, parts[p], key);
                if (common && !is_of_run(key) && (json_is_object(common) || !json_object_get(all, key)))
                    (void)json_object_set(all, key, (json_t *)(uintptr_t)common);
            }
    return all;
}

/* Settings that are not the same in all runs, a column for each mode. */
static void put_own_settings(struct dp_page_maker *maker, const json_t *root)
{
    const char *headings[DP_COLOUR_MODES_MAX + 1] = {"setting that differs"}, *key;
    const json_t *settings[DP_COLOUR_MODES_MAX], *longest = NULL;
    json_t *value;
    size_t count = 0, rows = 0;
    for (size_t m = 0; m < dp_comparison_modes(root) && count < DP_COLOUR_MODES_MAX; m++) {
        settings[count] = json_object_get(report_of(root, m), "settings");
        if (json_object_size(settings[count]) > json_object_size(longest))
            longest = settings[count];
        if (settings[count])
            headings[++count] = dp_comparison_mode(root, m);
    }
    json_object_foreach((json_t *)(uintptr_t)longest, key, value)
    {
        if (is_of_run(key) || dp_comparison_common(root, "settings", key))
            continue;
        if (rows++ == 0)
            dp_page_table_of(maker->to, headings, count + 1, count + 1);
        dp_page_maker_setting_of(maker, key, settings, count);
    }
    if (rows > 0)
        dp_page_table_end(maker->to);
}

static void put_settings(struct dp_page_maker *maker, const json_t *root)
{
    FILE *to = maker->to;
    json_t *all = common_settings(root);
    dp_page_section(to, "Settings");
    put_own_settings(maker, root);
    dp_page_fold_begin(to, "All settings that the modes have in common", true);
    dp_page_table_begin(to, 2, "setting", "value", NULL);
    dp_page_maker_settings(maker, all);
    dp_page_table_end(to);
    dp_page_fold_end(to);
    json_decref(all);
}

void dp_compare_page_write(struct dp_page_maker *maker, const void *context)
{
    const struct dp_compare_page *page = context;
    const json_t *root = page->claims.root;
    put_head(maker, page);
    put_course(maker, &page->claims);
    put_time(maker, root);
    put_promises(maker, root);
    put_rates(maker, &page->claims);
    dp_page_maker_again(maker, root, page->directory);
    put_settings(maker, root);
    dp_page_maker_end(maker);
}

enum dp_status dp_compare_make_page(const char *dir, const char *out, struct dp_error *err)
{
    struct dp_comparison comparison = {.root = NULL};
    struct dp_compare_page page = {.directory = comparison.directory};
    enum dp_status st = dp_comparison_read(dir, &comparison, err);
    const struct dp_page_source source = {.directory = comparison.directory,
                                          .report = comparison.path,
                                          .files = true,
                                          .write = dp_compare_page_write,
                                          .context = &page};
    if (st == DP_OK)
        st = dp_claims_of(comparison.root, &page.claims, err);
    if (st == DP_OK)
        st = dp_page_make(&source, out, err);
    dp_claims_clear(&page.claims);
    dp_comparison_clear(&comparison);
    return st;
}
