/* report: one training, or a comparison, as a page.
 *     DIR -> training.h | compare_page.h -> page_maker.h */
#include "deploy/compare/compare_commands.h"

#include "deploy/cli/options_words.h"
#include "deploy/compare/agreement.h"
#include "deploy/compare/compare_page.h"
#include "deploy/compare/comparison.h"
#include "deploy/pages/training.h"

#include <unistd.h>

static const struct dp_option options[] = {
    {"--out", "FILE", NULL, "the page; - is standard output; default: report.html in DIR"},
    {"--cluster", "FILE", NULL, "instead of DIR: the 'dir' of this cluster file, on worker 0's machine"},
    {"--against", "REPORT", NULL,
     "instead of a page: whether the comparison in DIR agrees with that of this report.json (or "
     "directory): settings that differ, and results that are in each other's 95% intervals, or not"},
};

static const struct dp_command command = {
    .name = "report",
    .usage = "DIR | --cluster FILE [--out FILE | --against REPORT]",
    .summary =
        "Makes a page (HTML) of one training, or of a comparison, from the report in DIR (the --dir of run "
        "or compare), which may still be in progress:\nthe findings, in words; loss and metrics over epochs "
        "and time, throughput, staleness, where the time went; settings,\nmachine, and the command that "
        "makes it again. The page needs no network.",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

static enum dp_status tell_agreement(const char *dir, const char *report, struct dp_error *err)
{
    struct dp_comparison here = {.root = NULL}, there = {.root = NULL};
    enum dp_status st = dp_comparison_read_report(dir, &here, err);
    if (st == DP_OK)
        st = dp_comparison_read_report(report, &there, err);
    if (st == DP_OK)
        dp_agreement_put(stdout, here.root, there.root);
    dp_comparison_clear(&here);
    dp_comparison_clear(&there);
    return st;
}

static enum dp_status find_dir(const char *file, struct dp_cluster **out, struct dp_error *err)
{
    enum dp_status st = dp_cluster_read(file, out, err);
    if (st == DP_OK && !(*out)->dir[0])
        st = dp_fail(err, DP_ARGUMENT, "--cluster: '%s' names no 'dir', in which worker 0 keeps its report",
                     file);
    if (st == DP_OK && access((*out)->training.report, F_OK) != 0)
        st = dp_fail(err, DP_NOT_FOUND,
                     "there is no '%s' on this machine: worker 0 writes it on its own, after its first epoch",
                     (*out)->training.report);
    return st;
}

static enum dp_status run(int argc, char *const *argv, bool *help, struct dp_error *err)
{
    const char *values[sizeof options / sizeof options[0]];
    struct dp_words words = {0};
    enum dp_status st = dp_words_parse(&command, NULL, argc, argv, &words, values, help, err);
    const char *file = st == DP_OK && !*help ? dp_options_value(&command, values, "--cluster") : NULL;
    if (st == DP_OK && !*help && words.words != !file)
        st = dp_fail(err, DP_ARGUMENT,
                     "give the directory of one run (its --dir): downpour report DIR [--out FILE], or "
                     "--cluster FILE");
    struct dp_cluster *cluster = NULL;
    if (st == DP_OK && file)
        st = find_dir(file, &cluster, err);
    const char *dir = cluster ? cluster->dir : words.words ? words.word[0] : "";
    const char *out = st == DP_OK && !*help ? dp_options_value(&command, values, "--out") : NULL,
               *against = st == DP_OK && !*help ? dp_options_value(&command, values, "--against") : NULL;
    if (out && against)
        st = dp_fail(err, DP_ARGUMENT, "--against makes no page: leave out --out");
    else if (against)
        st = tell_agreement(dir, against, err);
    else if (st == DP_OK && !*help)
        st = dp_comparison_is(dir) ? dp_compare_make_page(dir, out, err)
                                   : dp_training_make_page(dir, out, err);
    dp_words_clear(&words);
    dp_cluster_free(&cluster);
    return st;
}

int dp_compare_report(int argc, char *const *argv)
{
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = run(argc, argv, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    return dp_options_end(&command, st, &err);
}
