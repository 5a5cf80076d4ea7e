#include "deploy/compare/compare_page.h"

#include "common/base/text.h"
#include "common/env/atomic_file.h"
#include "deploy/cli/path.h"
#include "deploy/cli/run_origin.h"
#include "deploy/compare/claims.h"
#include "deploy/compare/compare_answer.h"
#include "deploy/compare/compare_words.h"
#include "deploy/compare/compare_work.h"
#include "deploy/compare/ending.h"
#include "deploy/compare/page.h"
#include "deploy/compare/training.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLOT_MS 20000u

static void put_text(FILE *to, const char *kind, char *text)
{
    if (text && text[0])
        dp_page_paragraph(to, kind, text);
    free(text);
}

/* ---- what was found */

static void put_head(const struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    char title[160], line[DP_PATH_MAX + 160];
    (void)snprintf(title, sizeof title, "Modes of training compared: %.110s",
                   dp_training_text(json_object_get(root, "settings"), "model"));
    (void)snprintf(line, sizeof line, "%s, begun %s, in %s",
                   json_is_true(json_object_get(root, "finished")) ? "Finished" : "Not finished",
                   dp_training_text(root, "began"), page->comparison->directory);
    dp_page_begin(to, title);
    dp_page_paragraph(to, "sub", line);
    put_text(to, "warn", dp_compare_words_failed(root));
    put_text(to, "found", dp_compare_answer(root));
    put_text(to, "found", dp_compare_words_target(root));
    put_text(to, "found", dp_compare_words_end(root));
    put_text(to, "found", dp_compare_words_speed(root));
    put_text(to, "found", dp_compare_words_efficiency(root));
    put_text(to, "warn", dp_compare_words_machine(root));
    put_text(to, "note", dp_compare_words_what(root));
    put_text(to, "note", dp_compare_words_brackets(root));
}

/* ---- tables */

/* Of how many runs it is, where not of all. */
static void put_interval_cell(const struct dp_compare_page *page, size_t mode,
                              enum dp_comparison_quantity quantity)
{
    const json_t *root = page->comparison->root;
    struct dp_interval own = dp_statistics_mode(root, mode, quantity);
    char text[DP_COMPARE_INTERVAL_BYTES + 64];
    (void)dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), text);
    size_t good = dp_ending_count(root, mode, DP_COMPARISON_GOOD), runs = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++)
        runs += dp_comparison_run_of(root, mode, s) != NULL;
    bool target = quantity == DP_QUANTITY_SECONDS_TO || quantity == DP_QUANTITY_EXAMPLES_TO;
    if (target && good > 0 && own.n == 0)
        (void)snprintf(text, sizeof text, "not reached");
    else if (own.n > 0 && own.n < runs)
        (void)snprintf(text + strlen(text), 64, " (%zu of %zu)", own.n, runs);
    dp_page_text_cell(page->plots.to, text);
}

static void put_result(const struct dp_compare_page *page, const struct dp_claims *claims, size_t mode)
{
    static const enum dp_comparison_quantity shown[] = {DP_QUANTITY_METRIC, DP_QUANTITY_LOSS,
                                                        DP_QUANTITY_SECONDS_TO, DP_QUANTITY_EXAMPLES_TO,
                                                        DP_QUANTITY_EXAMPLES_S};
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    const struct dp_claim speed = dp_claims_find(claims, DP_QUANTITY_EXAMPLES_S, mode, 0);
    char ratio[DP_COMPARE_INTERVAL_BYTES], share[16];
    dp_page_row(to);
    dp_page_text_cell(to, dp_comparison_mode(root, mode));
    for (size_t q = 0; q < sizeof shown / sizeof shown[0]; q++) {
        if (shown[q] == DP_QUANTITY_SECONDS_TO)
            dp_page_text_cell(to, dp_compare_share_text(
                                      dp_compare_examples_share(root, mode, "applied", "examples"), share));
        put_interval_cell(page, mode, shown[q]);
    }
    dp_page_text_cell(to, mode ? dp_compare_ratio_text(&speed.ratio, ratio) : "1");
    put_interval_cell(page, mode, DP_QUANTITY_SECONDS);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_GOOD), -1);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_DIVERGED), -1);
    dp_page_number_cell(to, (double)dp_ending_count(root, mode, DP_COMPARISON_FAILED), -1);
    dp_page_row_end(to);
}

static void put_results(const struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    char metric[64], beside[64];
    struct dp_claims claims;
    struct dp_error no_memory;
    (void)snprintf(metric, sizeof metric, "%.40s at the end",
                   dp_compare_metric_name(dp_comparison_metric(root)));
    (void)snprintf(beside, sizeof beside, "beside %.40s", dp_comparison_mode(root, 0));
    const char *const headings[] = {"mode",
                                    metric,
                                    "loss at the end",
                                    "examples applied",
                                    "seconds to the target",
                                    "examples to the target",
                                    "applied examples/s",
                                    beside,
                                    "seconds of training",
                                    "good runs",
                                    "diverged",
                                    "failed"};
    if (dp_claims_of(root, &claims, &no_memory) != DP_OK)
        return;
    dp_page_table_begin(to, headings, sizeof headings / sizeof headings[0], 9);
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        put_result(page, &claims, m);
    dp_page_table_end(to);
    dp_claims_clear(&claims);
    dp_page_paragraph(to, "note",
                      "Of good runs: means over the seeds (geometric ones; of shares such as an accuracy, by "
                      "their logits) and, "
                      "in brackets, 95% intervals of them by Student's t. The column beside the first mode "
                      "is paired by seed, and "
                      "its interval is that of a claim. The target is reached between the last sample of the "
                      "weights below it "
                      "and the first that is there, and the interval covers both. Applied: examples whose "
                      "gradients the servers "
                      "applied.");
}

static void put_promises(const struct dp_compare_page *page)
{
    static const char *const headings[] = {"mode", "what it promises", "where its rule was the limit"};
    const json_t *root = page->comparison->root, *modes = json_object_get(root, "modes");
    FILE *to = page->plots.to;
    dp_page_section(to, "What each mode promises");
    dp_page_table_begin(to, headings, 3, 3);
    for (size_t m = 0; m < json_array_size(modes); m++) {
        char *limit = dp_compare_words_limit(root, m);
        dp_page_row(to);
        dp_page_text_cell(to, dp_comparison_mode(root, m));
        dp_page_long_cell(to, dp_training_text(json_array_get(modes, m), "promise"));
        dp_page_long_cell(to, limit ? limit : "");
        dp_page_row_end(to);
        free(limit);
    }
    dp_page_table_end(to);
}

static void put_rates(const struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root, *modes = json_object_get(root, "modes");
    char at_end[96], *words = dp_compare_words_rates(root);
    const char *const headings[] = {"mode", "rate", "seed", at_end};
    FILE *to = page->plots.to;
    if (words && words[0]) {
        dp_page_section(to, "Learning rates");
        dp_page_paragraph(to, NULL, words);
    }
    free(words);
    if (json_array_size(json_object_get(json_object_get(root, "settings"), "rates")) == 0)
        return;
    (void)snprintf(at_end, sizeof at_end, "%.64s at the end",
                   dp_compare_metric_name(dp_comparison_metric(root)));
    dp_page_table_begin(to, headings, 4, 1);
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
            dp_page_row(to);
            dp_page_text_cell(to, name);
            dp_page_text_cell(to, text);
            dp_page_number_cell(to, dp_training_number(one, "seed", NULL), 0);
            dp_page_number_cell(to, dp_training_number(one, "metric", NULL), 4);
            dp_page_row_end(to);
        }
    }
    dp_page_table_end(to);
}

static void put_runs(const struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    const char *const headings[] = {"run",
                                    "status",
                                    dp_compare_metric_name(dp_comparison_metric(root)),
                                    "loss",
                                    "seconds to the target",
                                    "used examples/s",
                                    "seconds of training",
                                    "samples"};
    dp_page_fold_begin(to, "Every run", page->plots.no_plots);
    dp_page_table_begin(to, headings, sizeof headings / sizeof headings[0], 2);
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        const char *dir = dp_training_text(run, "dir");
        dp_page_row(to);
        dp_page_text_cell(to, dir[0] ? dir : dp_training_text(run, "mode"));
        dp_page_text_cell(to, dp_training_text(run, "status"));
        dp_page_number_cell(to, dp_comparison_value(root, run, DP_QUANTITY_METRIC), 4);
        dp_page_number_cell(to, dp_comparison_value(root, run, DP_QUANTITY_LOSS), 5);
        dp_page_number_cell(to, dp_comparison_value(root, run, DP_QUANTITY_SECONDS_TO), 2);
        dp_page_number_cell(to, dp_comparison_value(root, run, DP_QUANTITY_EXAMPLES_S), -1);
        dp_page_number_cell(to, dp_comparison_value(root, run, DP_QUANTITY_SECONDS), 2);
        dp_page_number_cell(to, (double)json_array_size(json_object_get(run, "samples")), -1);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

/* ---- sections */

static void put_course(struct dp_compare_page *page)
{
    const char *metric = dp_comparison_metric(page->comparison->root);
    FILE *to = page->plots.to;
    dp_page_section(to, "Results");
    put_results(page);
    dp_page_figures_begin(to);
    if (metric[0] && strcmp(metric, "loss") != 0) {
        dp_compare_plot_course(&page->plots, metric, "seconds");
        dp_compare_plot_course(&page->plots, metric, "examples");
    }
    dp_compare_plot_course(&page->plots, "loss", "seconds");
    dp_compare_plot_course(&page->plots, "loss", "examples");
    dp_page_figures_end(to);
    if (!page->plots.no_plots)
        dp_page_paragraph(to, "note",
                          "Lines are means over the seeds, bands reach from the least to the greatest of "
                          "them, on the scored set. A "
                          "sample's time is that of training without what came before the first push.");
    put_runs(page);
}

static void put_work(const struct dp_compare_page *page)
{
    static const char *const headings[] = {"mode",
                                           "examples applied",
                                           "came too late",
                                           "not computed",
                                           "least seconds by the delays",
                                           "speed reached of theirs"};
    static const char *const parts[][2] = {
        {"applied", "examples"}, {"dropped", "late"}, {"dropped", "not_computed"}};
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    dp_page_table_begin(to, headings, sizeof headings / sizeof headings[0], 1);
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
    dp_page_paragraph(
        to, "note",
        "Examples are shares of those of all epochs. A gradient that comes too late for its step "
        "is dropped. A worker that is behind does not compute those of steps that are over. The "
        "least seconds are what a run takes if nothing but its injected delays takes time.");
}

static void put_time(struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root;
    FILE *to = page->plots.to;
    dp_page_section(to, "Throughput, staleness and time");
    dp_page_figures_begin(to);
    dp_compare_plot_throughput(&page->plots);
    dp_compare_plot_shares(&page->plots);
    if (dp_compare_has_staleness(root, false))
        dp_compare_plot_staleness(&page->plots, false);
    if (dp_compare_has_staleness(root, true))
        dp_compare_plot_staleness(&page->plots, true);
    dp_page_figures_end(to);
    put_work(page);
    dp_page_paragraph(to, "note",
                      "Staleness is how many pushes the servers applied between a worker's pull and its "
                      "push. The clock gap is how "
                      "many steps a worker was ahead of the slowest one.");
}

static void put_again(const struct dp_compare_page *page)
{
    const json_t *root = page->comparison->root, *machine = json_object_get(root, "machine");
    const char *directory = dp_training_text(root, "directory");
    FILE *to = page->plots.to;
    char *command = dp_run_origin_command(root), *text = NULL, quoted[DP_PATH_QUOTED], line[512];
    size_t size = 0;
    dp_page_section(to, "How to make it again");
    FILE *all = command ? open_memstream(&text, &size) : NULL;
    if (all) {
        if (directory[0] && strlen(directory) <= DP_PATH_MAX)
            fprintf(all, "cd %s && ", dp_path_quote(directory, quoted));
        fputs(command, all);
    }
    if (all && fclose(all) == 0)
        dp_page_command(to, text);
    free(text);
    free(command);
    double cores = dp_training_number(machine, "cores", NULL),
           memory = dp_training_number(machine, "memory_bytes", NULL);
    (void)snprintf(line, sizeof line, "The report does not keep on which machine it was made.");
    if (isfinite(cores) && isfinite(memory))
        (void)snprintf(
            line, sizeof line,
            "Made with version %.40s on %.0f processors (%.100s), %.1f GiB of memory, %.100s, in %.0f s.",
            dp_training_text(root, "version"), cores, dp_training_text(machine, "processor"),
            memory / (double)(UINT64_C(1) << 30), dp_training_text(machine, "system"),
            fmax(dp_training_number(root, "seconds", NULL), 0));
    dp_page_paragraph(to, NULL, line);
}

static void put_settings(const struct dp_compare_page *page)
{
    static const char *const headings[] = {"setting", "value"};
    const json_t *settings = json_object_get(page->comparison->root, "settings");
    FILE *to = page->plots.to;
    const char *key;
    json_t *value;
    dp_page_section(to, "Settings");
    dp_page_table_begin(to, headings, 2, 2);
    json_object_foreach((json_t *)settings, key, value)
    {
        char *text =
            json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));
        if (json_is_null(value) || (json_is_array(value) && json_array_size(value) == 0)) {
            free(text);
            continue;
        }
        dp_page_row(to);
        dp_page_text_cell(to, key);
        dp_page_long_cell(to, json_is_string(value) ? json_string_value(value) : text ? text : "");
        dp_page_row_end(to);
        free(text);
    }
    dp_page_table_end(to);
}

void dp_compare_page_write(struct dp_compare_page *page)
{
    char with[700];
    put_head(page);
    put_course(page);
    put_time(page);
    put_promises(page);
    put_rates(page);
    put_settings(page);
    put_again(page);
    (void)snprintf(with, sizeof with, "Made by downpour compare, version %s%s%.500s%s", page->version,
                   page->plots.no_plots ? ". There are no plots, as " : ", plots by gnuplot.",
                   page->plots.no_plots ? page->plots.why.text : "",
                   page->plots.no_plots ? "; the numbers of the runs are in the tables." : "");
    dp_page_end(page->plots.to, with);
}

static enum dp_status page_path(const struct dp_comparison *comparison, const char *out, char *path,
                                struct dp_error *err)
{
    if (out && strlen(out) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--out: the name is too long");
    if (!out && snprintf(path, DP_PATH_MAX + 1, "%s/report.html", comparison->directory) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "the path of the page would be too long: name a shorter one with --out");
    if (out)
        (void)snprintf(path, DP_PATH_MAX + 1, "%s", strcmp(out, "-") == 0 ? "/dev/stdout" : out);
    return dp_path_same(path, comparison->path)
               ? dp_fail(err, DP_ARGUMENT, "--out: '%s' is the report itself: name another file", out)
               : DP_OK;
}

static enum dp_status make(const struct dp_comparison *comparison, const char *out, struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    char path[DP_PATH_MAX + 1];
    enum dp_status st = page_path(comparison, out, path, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    bool to_file = file.temp != NULL;
    struct dp_compare_page page = {
        .plots = {.to = file.stream, .root = comparison->root, .timeout_ms = PLOT_MS},
        .version = DOWNPOUR_VERSION,
        .comparison = comparison};
    dp_compare_page_write(&page);
    st = dp_atomic_file_commit(&file, err);
    dp_text_clean(page.plots.why.text);
    if (st == DP_OK && page.plots.no_plots)
        fprintf(stderr, "downpour: the page has tables instead of plots: %s\n", page.plots.why.text);
    if (st == DP_OK && to_file)
        printf("Page:      %s\n", path);
    return st;
}

enum dp_status dp_compare_make_page(const char *dir, const char *out, struct dp_error *err)
{
    struct dp_comparison comparison = {.root = NULL};
    enum dp_status st = dp_comparison_read(dir, &comparison, err);
    if (st == DP_OK)
        st = make(&comparison, out, err);
    dp_comparison_clear(&comparison);
    return st;
}
