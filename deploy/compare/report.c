/* report: one training, or a comparison, as a page.
 *     DIR -> training.h -> training_page.h -> an atomic file
 *     DIR -> comparison.h -> compare_page.h -> an atomic file */
#include "deploy/compare/compare_commands.h"

#include "common/base/text.h"
#include "common/env/atomic_file.h"
#include "deploy/cli/options_words.h"
#include "deploy/cli/path.h"
#include "deploy/compare/compare_page.h"
#include "deploy/compare/training_page.h"

#include <string.h>

#define PLOT_MS 20000u

static const struct dp_option options[] = {
    {"--out", "FILE", "the page; - is standard output; default: report.html in DIR", NULL, NULL},
};

static const struct dp_command command = {
    .name = "report",
    .usage = "DIR [--out FILE]",
    .summary =
        "Makes a page (HTML) of one training, or of a comparison, from the report in DIR (the --dir of run "
        "or compare), which may still "
        "be in "
        "progress:\nwhat was found, in words; loss and metrics over epochs and time, throughput, staleness, "
        "where the "
        "time went; settings,\nmachine, and the command that makes it again. The page needs no network. "
        "Plots are "
        "gnuplot's; where that is not\ninstalled the page has tables (Debian: apt-get install gnuplot-nox).",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static enum dp_status page_path(const struct dp_training *training, const char *out, char *path,
                                struct dp_error *err)
{
    if (!out) {
        if (snprintf(path, DP_PATH_MAX + 1, "%s/report.html", training->directory) > DP_PATH_MAX)
            return dp_fail(err, DP_ARGUMENT,
                           "the path of the page would be too long: name a shorter one with --out");
        return DP_OK;
    }
    if (strlen(out) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--out: the name is too long");
    (void)snprintf(path, DP_PATH_MAX + 1, "%s", strcmp(out, "-") == 0 ? "/dev/stdout" : out);
    return dp_path_same(path, training->path)
               ? dp_fail(err, DP_ARGUMENT, "--out: '%s' is the report itself: name another file", out)
               : DP_OK;
}

static enum dp_status make(const struct dp_training *training, const char *out, struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    char path[DP_PATH_MAX + 1];
    enum dp_status st = page_path(training, out, path, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    bool to_file = file.temp != NULL;
    struct dp_training_page page = {
        .to = file.stream, .version = DOWNPOUR_VERSION, .timeout_ms = PLOT_MS, .training = training};
    dp_training_page_write(&page);
    st = dp_atomic_file_commit(&file, err);
    dp_text_clean(page.why.text);
    if (st == DP_OK && page.no_plots)
        fprintf(stderr, "downpour: report: the page has tables instead of plots: %s\n", page.why.text);
    if (st == DP_OK && to_file)
        printf("Page:      %s\n", path);
    return st;
}

static enum dp_status run(int argc, char *const *argv, bool *help, struct dp_error *err)
{
    const char *values[sizeof options / sizeof options[0]];
    struct dp_words words = {0};
    struct dp_training training = {0};
    enum dp_status st = dp_words_split(&command, NULL, argc, argv, &words, err);
    if (st == DP_OK)
        st = dp_options_parse(&command, words.rest_count, words.rest, values, help, err);
    if (st == DP_OK && !*help && words.words != 1)
        st = dp_fail(err, DP_ARGUMENT,
                     "give the directory of one run (its --dir): downpour report DIR [--out FILE]");
    bool compared = st == DP_OK && !*help && dp_comparison_is(words.word[0]);
    if (compared)
        st = dp_compare_make_page(words.word[0], dp_options_value(&command, values, "--out"), err);
    if (st == DP_OK && !*help && !compared)
        st = dp_training_read(words.word[0], &training, err);
    if (st == DP_OK && !*help && !compared)
        st = make(&training, dp_options_value(&command, values, "--out"), err);
    dp_training_clear(&training);
    dp_words_clear(&words);
    return st;
}

int dp_compare_report(int argc, char *const *argv)
{
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = run(argc, argv, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(&err, DP_IO, "cannot write to standard output");
    if (st == DP_OK)
        return 0;
    dp_text_clean(err.text);
    fprintf(stderr, "downpour: report: %s\n", err.text);
    return 2;
}
