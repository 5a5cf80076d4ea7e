/* predict: the scores of a file, or the best items of users, by a model that a run trained.
 *     served.h: directory's lock, shared -> its cluster on free ports -> servers that only read -> one worker -> scores ->
 *     stopped -> what goes to a pipe or a device is copied there
 * Promise   Nothing in the run's directory is written (served.h). */
#include "deploy/cli/file_copy.h"
#include "deploy/cli/options_words.h"
#include "deploy/run/servers.h"
#include "deploy/weights/served.h"
#include "deploy/weights/weights_commands.h"

#include "common/base/parse.h"
#include "deploy/run/spool.h"
#include "deploy/run/status_view.h"

#include "common/env/atomic_file.h"
#include "common/env/installed.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#define TOP_MAX 100000u

static const struct dp_option options[] = {
    {"--from", "DIR", NULL,
     "directory of the run, its --dir, or a checkpoint, or a directory of checkpoints: its last one "
     "(required)"},
    {"--cluster", "FILE", NULL,
     "cluster file of running servers, instead of --from: they are asked, and 'dir' has the columns and "
     "names"},
    {"--data", "FILE", NULL, "examples in the format of the training data (required, unless --top is given)"},
    {"--data labels", "FILE", NULL, "labels of idx images; default: found by the name of the images"},
    {"--encoding", "NAME", "data.encoding",
     "encoding of --data, as utf-8 or latin1; default: that of the training"},
    {"--out", "FILE", NULL,
     "file for the scores, a line for each example; it appears once it is complete; default: standard "
     "output"},
    {"--model", "MODEL", NULL, "refuse if the run trained another model"},
    {"--top", "N", NULL,
     "mf and neumf: write the N best items of each user, lines of USER, ITEM and SCORE, separated by tabs, "
     "without items that the user met in the training file"},
    {"--user", "ID", NULL, "with --top: this user, by id or name in the training file; may be repeated"},
    {"--users", "FILE", NULL, "with --top: the users in this file, one per line"},
    {"--items", "A,B,...", NULL,
     "with --top: a user that is new to the model, with these items (mf); the user is 'new' in the output"},
    {"--history", "FILE", NULL,
     "with --top: the users in this file of interactions, which are new to the model, by their items (mf); "
     "items that the training file lacks are left out and counted"},
    {"--with-seen", NULL, NULL,
     "with --top: include items that the user met in the training file, which may then be missing"},
    {"--device", "NAME", "training.device",
     "where the worker computes: cpu, cuda:N (that GPU; cuda:each: the first) or auto (the first GPU where "
     "there is one); default: that of the training"},
    {"--new-columns", "refuse|ignore", "data.new_columns",
     "CSV: columns that the training file lacks; default refuse"},
    {"--missing-columns", "refuse|empty", "data.missing_columns",
     "CSV: columns of the training file that FILE lacks; empty: empty cells; default refuse"},
    {"--precision", "KIND", "training.precision",
     "precision of a GPU's matrix products: f32, tf32 or bf16; default: that of the training"},
};
#define OPTIONS (sizeof options / sizeof options[0])
static const struct dp_option_alias aliases[] = {{"--data-labels", "--data labels"}, {NULL, NULL}};

static const struct dp_command command = {
    .name = "predict",
    .usage = "--from DIR | --cluster FILE (--data FILE | --top N (--user ID | --items A,B,...)) [--out FILE]",
    .summary = "Writes one line of scores for each example in a file: the probability of 1, the "
               "probabilities of all\nclasses, or the value. For lstm a line has, for each window of bytes "
               "(the first begins with the first byte,\nthe next with the second), the probability that each "
               "byte 0 .. 255 follows. With --top it writes the best\nitems of users. For words and their "
               "vectors see 'downpour neighbours' and 'downpour export'.",
    .options = options,
    .count = OPTIONS,
    .aliases = aliases,
};

struct predict {
    const char *values[OPTIONS];
    struct dp_words words; /* --user */
    struct dp_served served;
    char data[DP_PATH_MAX + 1], labels[DP_PATH_MAX + 1], out[DP_PATH_MAX + 1];
    char users[DP_PATH_MAX + 1], top[24];                  /* "": --data */
    char history[DP_PATH_MAX + 1], notes[DP_PATH_MAX + 1]; /* of new users, in place of users; or "" */
    struct dp_spools spools;
    bool copy;                    /* out is a file of ours, whose bytes go to standard output or `direct` */
    struct dp_atomic_file direct; /* --out that is no file: a pipe, a device */
};

static const char *flag(const struct predict *p, const char *name)
{
    return dp_options_value(&command, p->values, name);
}

static const char *from(const struct predict *p)
{
    return flag(p, "--from") ? flag(p, "--from") : flag(p, "--cluster");
}

static enum dp_status settle_input(const char *name, const char *path, char *out, struct dp_error *err)
{
    if (dp_spool_is_stream(path) && strlen(path) <= DP_PATH_MAX) {
        memcpy(out, path, strlen(path) + 1);
        return DP_OK;
    }
    if (access(path, R_OK) != 0)
        return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", name, path, strerror(errno));
    return dp_path_absolute(path, out, err);
}

/* That it can be written is seen before servers are started. A file is then the worker's, what is not one (a pipe, a device) gets
 * its bytes from here, as standard output does. */
static enum dp_status settle_output(struct predict *p, struct dp_error *err)
{
    const char *out = flag(p, "--out");
    enum dp_status st = DP_OK;
    if (out && (dp_path_same(out, p->data) || (p->labels[0] && dp_path_same(out, p->labels))))
        return dp_fail(err, DP_ARGUMENT, "--out: '%s' is the %s file itself: name another", out,
                       dp_path_same(out, p->data) ? "data" : "labels");
    if (out && dp_path_same(out, p->served.folder.conf))
        return dp_fail(err, DP_ARGUMENT, "--out: '%s' is the run's cluster file: name another", out);
    if (out)
        st = dp_atomic_file_open(out, &p->direct, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "--out");
    p->copy = !out || !p->direct.temp;
    if (!p->copy)
        dp_atomic_file_drop(&p->direct);
    return p->copy ? dp_folder_path(&p->served.scratch, p->out, err, "scores")
                   : dp_path_absolute(out, p->out, err);
}

/* Whose scores look like something else. */
static void tell_meaning(const struct predict *p)
{
    const char *model = p->served.cluster->model;
    if (strncmp(model, "skipgram", 8) == 0)
        fprintf(
            stderr,
            "downpour: skipgram scores each pair of near words in the file; words most similar to "
            "another: 'downpour neighbours %s WORD'; vectors: 'downpour export --from %s --to vectors.txt'\n",
            from(p), from(p));
    if (strncmp(model, "lstm", 4) == 0)
        fprintf(stderr,
                "downpour: a line has the probability that each byte, 0 to the last, follows one window of "
                "the file's bytes; the next line is for the window that begins one byte later\n");
}

/* A file with a user in each line. */
static void print_users(const struct predict *p, FILE *file)
{
    for (size_t i = 0; i < p->words.values; i++)
        (void)fprintf(file, "%s\n", p->words.value[i]);
}

/* A file with an interaction in each line. */
static void print_items(const struct predict *p, FILE *file)
{
    for (const char *at = flag(p, "--items"); *at;) {
        int len = (int)strcspn(at, ",");
        if (len > 0)
            (void)fprintf(file, "new\t%.*s\n", len, at);
        at += len + (at[len] == ',');
    }
}

static enum dp_status write_scratch(struct predict *p, const char *name, char path[DP_PATH_MAX + 1],
                                    void (*print)(const struct predict *p, FILE *file), struct dp_error *err)
{
    struct dp_atomic_file file;
    enum dp_status st = dp_folder_path(&p->served.scratch, path, err, "%s", name);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    print(p, file.stream);
    return dp_atomic_file_commit(&file, err);
}

static enum dp_status settle_users(struct predict *p, struct dp_error *err)
{
    uint64_t count = 0;
    const char *users = flag(p, "--users"), *history = flag(p, "--history"), *items = flag(p, "--items");
    int ways = (p->words.values > 0) + (users != NULL) + (history != NULL) + (items != NULL);
    if (!flag(p, "--top"))
        return ways > 0 || flag(p, "--with-seen")
                   ? dp_fail(err, DP_ARGUMENT,
                             "--user, --users, --items, --history and --with-seen go with --top N")
                   : DP_OK;
    if (flag(p, "--data") || ways != 1)
        return dp_fail(err, DP_ARGUMENT,
                       flag(p, "--data") ? "--top takes users (--user ID, --users FILE), not --data"
                       : ways > 1        ? "--user, --users, --items and --history: give one of them"
                                  : "--top N needs --user ID, --users FILE with an id in each line, or "
                                    "for users that are new --items A,B,... or --history FILE");
    if (items && items[strspn(items, ",")] == '\0')
        return dp_fail(err, DP_ARGUMENT, "--items '%s': expected ids of items, separated by commas", items);
    enum dp_status st = dp_parse_u64(flag(p, "--top"), 1, TOP_MAX, "--top", &count, err);
    (void)snprintf(p->top, sizeof p->top, "%" PRIu64, count);
    if (st == DP_OK && users)
        st = settle_input("--users", users, p->users, err);
    return st == DP_OK && history ? settle_input("--history", history, p->history, err) : st;
}

static enum dp_status settle_inputs(struct predict *p, struct dp_error *err)
{
    if (!from(p) || (!flag(p, "--data") && !flag(p, "--top")))
        return dp_fail(err, DP_ARGUMENT, "%s is required; 'downpour predict --help' lists all flags",
                       from(p) ? "--data FILE, or --top N with --user ID," : "--from DIR");
    if (flag(p, "--from") && flag(p, "--cluster"))
        return dp_fail(err, DP_ARGUMENT, "give either --from DIR or --cluster FILE");
    enum dp_status st = settle_users(p, err);
    if (st == DP_OK && flag(p, "--data"))
        st = settle_input("--data", flag(p, "--data"), p->data, err);
    if (st == DP_OK && flag(p, "--data labels"))
        st = settle_input("--data labels", flag(p, "--data labels"), p->labels, err);
    return st;
}

static enum dp_status settle(struct predict *p, struct dp_error *err)
{
    enum dp_status st = settle_inputs(p, err);
    if (st == DP_OK)
        st = flag(p, "--cluster") ? dp_served_open_live(flag(p, "--cluster"), &p->served, err)
                                  : dp_served_open(flag(p, "--from"), false, &p->served, err);
    if (st == DP_OK && flag(p, "--model") && strcmp(flag(p, "--model"), p->served.cluster->model) != 0)
        st = dp_fail(err, DP_EXISTS, "'%s' has the model '%s', not '%s': omit --model", p->served.folder.path,
                     p->served.cluster->model, flag(p, "--model"));
    if (st == DP_OK) { /* accepted for the training's own files only */
        struct dp_cluster_data *data = &p->served.cluster->data;
        data->new_columns = data->missing_columns = DP_UNMATCHED_REFUSE;
        st = dp_options_apply(&command, p->values, p->served.cluster, err);
    }
    const struct dp_options_given given = {&command, p->values, false};
    const struct dp_setting_names names = dp_options_names(&given);
    if (st == DP_OK)
        st = dp_cluster_check_settings(p->served.cluster, &names, err);
    if (st == DP_OK)
        st = dp_cluster_check(p->served.cluster, err);
    if (st == DP_OK)
        st = settle_output(p, err);
    if (st == DP_OK)
        st = dp_spool_plan(&p->spools, "--data", p->data, p->served.scratch.path, 0, err);
    if (st == DP_OK)
        st = dp_spool_plan(&p->spools, "--data labels", p->labels, p->served.scratch.path, 0, err);
    if (st == DP_OK)
        st = dp_spool_plan(&p->spools, "--history", p->history, p->served.scratch.path, 0, err);
    if (st == DP_OK)
        st = dp_spool_fill(&p->spools, stderr, err);
    if (st == DP_OK && p->words.values > 0)
        st = write_scratch(p, "users", p->users, print_users, err);
    if (st == DP_OK && flag(p, "--items"))
        st = write_scratch(p, "history", p->history, print_items, err);
    if (st == DP_OK && p->history[0])
        st = dp_folder_path(&p->served.scratch, p->notes, err, "notes");
    if (st == DP_OK)
        tell_meaning(p);
    return st;
}

static enum dp_status start_worker(struct predict *p, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 1];
    enum dp_status st = dp_installed_program("downpour-worker", program, sizeof program, err);
    if (st == DP_OK)
        st = dp_folder_path(&p->served.scratch, log, err, "log/worker.log");
    if (st != DP_OK)
        return st;
    const char *const inputs[][2] = {{"--predict", p->data},    {"--labels", p->labels},
                                     {"--top", p->top},         {"--users", p->users},
                                     {"--history", p->history}, {"--notes", p->notes}};
    const char *argv[20] = {program, "--cluster", p->served.scratch.conf, "--out", p->out};
    size_t n = 5;
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (inputs[i][1][0]) {
            argv[n++] = inputs[i][0];
            argv[n++] = inputs[i][1];
        }
    if (flag(p, "--with-seen"))
        argv[n++] = "--with-seen";
    return dp_local_start(p->served.local, DP_LOCAL_WORKER, "worker", argv, log, -1, err);
}

/* "12.3%"; never 0% or 100% of a part. */
static const char *share_text(uint64_t part, uint64_t of, char out[16])
{
    double percent = 100.0 * (double)part / (double)of;
    if (percent < 0.05)
        return "<0.1%";
    if (percent >= 99.95 && part < of)
        return ">99.9%";
    (void)snprintf(out, 16, "%.1f%%", percent);
    return out;
}

/* By the counters of this command's own servers, which answer nobody else. */
static void tell_untrained(const struct predict *p)
{
    uint64_t pulled = 0, initial = 0;
    char text[16];
    struct dp_error unheard = {0};
    for (uint32_t i = 0; i < dp_client_shards(p->served.client); i++) {
        struct dp_status_report *report = NULL;
        if (dp_client_status(p->served.client, i, p->served.cluster->training.timeout_ms, &report,
                             &unheard) != DP_OK)
            return;
        pulled += dp_status_view_counter(report, "pull_rows");
        initial += dp_status_view_counter(report, "pull_rows_initial");
        dp_client_status_free(&report);
    }
    if (initial > 0)
        fprintf(stderr,
                "downpour: %" PRIu64 " of the %" PRIu64
                " weights that were looked up (%s) were never trained: users, items, categories and "
                "features that are new to the training are scored with initial weights\n",
                initial, pulled, share_text(initial, pulled, text));
}

static enum dp_status score(struct predict *p, struct dp_error *err)
{
    enum dp_status st = dp_served_start(&p->served, err);
    if (st == DP_OK)
        st = start_worker(p, err);
    if (st == DP_OK)
        st = dp_served_await_workers(&p->served, err);
    if (st == DP_OK && !p->top[0] && !p->served.live)
        tell_untrained(p);
    return st;
}

static enum dp_status copy_out(struct predict *p, struct dp_error *err)
{
    const char *name = flag(p, "--out") ? flag(p, "--out") : "standard output";
    enum dp_status st = dp_file_copy(p->out, true, p->direct.path ? p->direct.stream : stdout, name, err);
    return st == DP_OK && p->direct.path ? dp_atomic_file_commit(&p->direct, err) : st;
}

/* What the worker left out. */
static void tell_notes(const struct predict *p)
{
    char line[600];
    FILE *notes = p->notes[0] ? fopen(p->notes, "re") : NULL;
    if (!notes)
        return;
    while (fgets(line, sizeof line, notes))
        fprintf(stderr, "downpour: %s", line);
    (void)fclose(notes);
    (void)unlink(p->notes);
}

static int finish(struct predict *p, enum dp_status st, struct dp_error *err)
{
    int code = dp_served_end(&p->served, st, err);
    if (code == 0 && p->copy && copy_out(p, err) != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    if (p->copy && p->out[0])
        (void)unlink(p->out);
    tell_notes(p);
    for (uint32_t i = 0; i < p->spools.count; i++)
        (void)unlink(p->spools.of[i].to);
    dp_atomic_file_drop(&p->direct);
    dp_served_clear(&p->served);
    dp_words_clear(&p->words);
    return code;
}

int dp_weight_predict(int argc, char *const *argv)
{
    struct predict predict = {.served = {.folder.lock = -1, .scratch.lock = -1}};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st =
        dp_words_parse(&command, "--user", argc, argv, &predict.words, predict.values, &help, &err);
    if (st == DP_OK && !help && predict.words.words > 0)
        st = dp_options_unknown(&command, predict.words.word[0], &err);
    if (st == DP_OK && help) {
        dp_words_clear(&predict.words);
        return dp_options_show_help(&command);
    }
    if (st == DP_OK)
        st = settle(&predict, &err);
    if (st == DP_OK)
        st = score(&predict, &err);
    return finish(&predict, st, &err);
}
