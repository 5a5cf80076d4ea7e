/* generate: data from a known model, and the metrics of that model on the data.
 *     rows, one by one -> FILE or standard output;  figures -> standard output, or standard error beside the rows */
#include "deploy/cli/commands.h"
#include "deploy/cli/generate_clicks.h"
#include "deploy/cli/generate_figures.h"
#include "deploy/cli/options.h"

#include "common/base/json.h"
#include "common/env/atomic_file.h"
#include "common/env/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS_MAX   (UINT64_C(1) << 40)
#define LOOK_EVERY 256u /* rows between two looks for a signal */

static const struct dp_option options[] = {
    {"--rows", "N", NULL, "rows to write (required)"},
    {"--features", "N", NULL, "categories in the largest columns, 2 .. 10,000,000; default 100,000"},
    {"--seed", "N", NULL, "seed of the hidden model and of the rows, 0 .. 2^64-1; default 1"},
    {"--first", "N", NULL,
     "number of the first row; default 0. Rows 1,000,000 and up are test data for a model of the first "
     "million"},
    {"--out", "FILE", NULL, "file for the rows; default: standard output"},
    {"--json", NULL, NULL, "print the metrics as JSON; a seed above 2^63-1 is a string"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "generate",
    .usage = "clicks --rows N [--features N] [--seed N] [--first N] [--out FILE] [--json]",
    .summary = "Writes rows in the format of Criteo's click logs (label, 13 integers, 26 categories, "
               "tab-separated)\nfrom a hidden model, and prints that model's logloss and AUC, which no model "
               "can beat by more than\nchance. The same seed gives the same bytes on every "
               "machine.\nExample: downpour generate clicks --rows 1000000 --seed 1 --out clicks.tsv",
    .options = options,
    .count = OPTIONS,
};

struct generate {
    const char *values[OPTIONS];
    uint64_t rows, features, seed, first;
    struct dp_atomic_file out; /* with --out */
    FILE *file;                /* its stream, or standard output */
    bool beside;               /* rows go to standard output, figures to standard error */
    int signal;                /* that asked to stop, or 0 */
    struct dp_clicks *clicks;
    struct dp_truth *truth;
};

static const char *flag(const struct generate *g, const char *name)
{
    return dp_options_value(&command, g->values, name);
}

static enum dp_status settle(struct generate *g, struct dp_error *err)
{
    const struct {
        const char *name;
        uint64_t min, max, otherwise, *to;
    } numbers[] = {{"--rows", 1, ROWS_MAX, 0, &g->rows},
                   {"--features", DP_CLICKS_FEATURES_MIN, DP_CLICKS_FEATURES_MAX, 100000, &g->features},
                   {"--seed", 0, UINT64_MAX, 1, &g->seed},
                   {"--first", 0, ROWS_MAX, 0, &g->first}};
    if (!flag(g, "--rows"))
        return dp_fail(err, DP_ARGUMENT, "--rows N is required; 'downpour generate --help' lists all flags");
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        enum dp_status st = dp_options_u64(&command, g->values, numbers[i].name, numbers[i].min,
                                           numbers[i].max, numbers[i].otherwise, numbers[i].to, err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

static enum dp_status failed(const struct generate *g, struct dp_error *err)
{
    const char *out = flag(g, "--out");
    return dp_fail(err, DP_IO, "cannot write %s%s%s: %s%s", out ? "'" : "to standard output", out ? out : "",
                   out ? "'" : "", errno ? strerror(errno) : "input/output error", dp_limits_remedy(errno));
}

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define SIGNALS (sizeof signals / sizeof signals[0])

static bool is_standard_output(FILE *file)
{
    struct stat a, b;
    return fstat(fileno(file), &a) == 0 && fstat(STDOUT_FILENO, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* A file appears under its name when it is whole; what is no file (a pipe, a device) is written as it is. Where a file may have
 * a name until then, a signal must not end this process before that is gone. */
static enum dp_status open_out(struct generate *g, struct dp_error *err)
{
    const char *out = flag(g, "--out");
    sigset_t set;
    g->file = stdout;
    g->beside = true;
    if (!out)
        return DP_OK;
    enum dp_status st = dp_atomic_file_open(out, &g->out, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "--out");
    g->file = g->out.stream;
    g->beside = is_standard_output(g->file);
    if (!g->out.temp)
        return DP_OK; /* which may wait for its reader without end */
    (void)sigemptyset(&set);
    for (size_t i = 0; i < SIGNALS; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) /* nohup's stays ignored */
            (void)sigaddset(&set, signals[i]);
    }
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return DP_OK;
}

/* Of the blocked ones. */
static int asked_to_stop(void)
{
    sigset_t pending;
    (void)sigemptyset(&pending);
    (void)sigpending(&pending);
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigismember(&pending, signals[i]) == 1)
            return signals[i];
    return 0;
}

static enum dp_status write_rows(struct generate *g, struct dp_error *err)
{
    char line[DP_CLICKS_LINE_BYTES];
    struct dp_clicks_row row;
    errno = 0;
    for (uint64_t n = 0; n < g->rows; n++) {
        if (n % LOOK_EVERY == 0 && (g->signal = asked_to_stop()) != 0)
            return dp_fail(err, DP_STOPPING, "stopping, as signal %d asks; nothing was written to '%s'",
                           g->signal, flag(g, "--out"));
        dp_clicks_draw(g->clicks, g->first + n, &row);
        dp_truth_add(g->truth, row.probability, row.label);
        size_t len = dp_clicks_line(g->clicks, &row, line);
        if (fwrite(line, 1, len, g->file) != len)
            return failed(g, err);
    }
    if (fflush(g->file) != 0)
        return failed(g, err);
    return DP_OK;
}

/* ---- figures */

static void show_json(const struct generate *g, const struct dp_truth_figures *figures, FILE *to)
{
    json_t *root = json_object(), *constant = json_object(), *truth = json_object();
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {{"rows", g->rows},
                   {"first", g->first},
                   {"features", g->features},
                   {"seed", g->seed},
                   {"positives", g->truth->positives}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        dp_json_set_u64(root, numbers[i].key, numbers[i].value);
    dp_json_set_real(root, "base_rate", figures->base_rate);
    dp_json_set_real(constant, "logloss", figures->loss_constant);
    dp_json_set_real(truth, "logloss", figures->loss);
    dp_json_set_real(truth, "auc", figures->auc);
    (void)json_object_set_new(root, "constant", constant);
    (void)json_object_set_new(root, "truth", truth);
    (void)json_dumpf(root, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    fputc('\n', to);
    json_decref(root);
}

static void show_text(const struct generate *g, const struct dp_truth_figures *figures, FILE *to)
{
    fprintf(to,
            "%" PRIu64 " rows, %.2f%% of them clicks; up to %" PRIu64 " categories a column; seed %" PRIu64
            "\n",
            g->rows, 100 * figures->base_rate, g->features, g->seed);
    fprintf(to, "%-24s%12s%12s\n", "", "logloss", "AUC");
    fprintf(to, "%-24s%12.5f%12.5f\n", "constant (base rate)", figures->loss_constant, 0.5);
    fprintf(to, "%-24s%12.5f%12.5f\n", "the true model", figures->loss, figures->auc);
}

static enum dp_status show(const struct generate *g, struct dp_error *err)
{
    FILE *to = g->beside ? stderr : stdout;
    struct dp_truth_figures figures;
    dp_truth_figures(g->truth, &figures);
    if (flag(g, "--json"))
        show_json(g, &figures, to);
    else
        show_text(g, &figures, to);
    return fflush(to) == 0 ? DP_OK : dp_fail(err, DP_IO, "cannot write the metrics: %s", strerror(errno));
}

static enum dp_status generate(struct generate *g, struct dp_error *err)
{
    enum dp_status st = settle(g, err);
    if (st == DP_OK && !(g->truth = calloc(1, sizeof *g->truth)))
        st = dp_fail(err, DP_NOMEM, "no memory");
    if (st == DP_OK)
        st = dp_clicks_new((uint32_t)g->features, g->seed, &g->clicks, err);
    if (st == DP_OK)
        st = open_out(g, err);
    if (st == DP_OK)
        st = write_rows(g, err);
    if (st == DP_OK)
        st = g->out.path ? dp_atomic_file_commit(&g->out, err) : DP_OK;
    if (st == DP_OK)
        st = show(g, err);
    dp_atomic_file_drop(&g->out);
    dp_clicks_free(&g->clicks);
    free(g->truth);
    return st;
}

int dp_command_generate(int argc, char *const *argv)
{
    struct generate g = {0};
    struct dp_error err = {0};
    bool help = false, named = argc > 0 && argv[0][0] != '-',
         clicks = named && strcmp(argv[0], "clicks") == 0;
    enum dp_status st = dp_options_parse(&command, argc - named, argv + named, g.values, &help, &err);
    if (help)
        return dp_options_show_help(&command);
    if (!clicks)
        st = named ? dp_fail(&err, DP_ARGUMENT,
                             "cannot generate '%.60s'; 'downpour generate clicks' generates clicks", argv[0])
                   : dp_fail(&err, DP_ARGUMENT,
                             "give the kind of data, as in 'downpour generate clicks --rows 1000'");
    if (st == DP_OK)
        st = generate(&g, &err);
    if (st != DP_OK)
        fprintf(stderr, "downpour: %s\n", err.text);
    return st == DP_OK ? 0 : g.signal ? 128 + g.signal : 2;
}
