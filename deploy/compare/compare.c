/* compare: runs the same job in several modes, each with several seeds.
 *     plan -> directory -> (--lr-grid: every rate of every mode -> the best of each) -> for each seed: every mode ->
 *     statistics -> report.json -> page
 * Why   Modes take turns seed by seed, and a different mode begins each round. So a drift of the machine's
 *       speed affects all modes alike. */
#include "deploy/compare/compare_commands.h"
#include "deploy/compare/compare_earlier.h"
#include "deploy/compare/compare_job.h"
#include "deploy/compare/compare_page.h"
#include "deploy/compare/compare_record.h"
#include "deploy/compare/compare_words.h"
#include "deploy/pages/page.h"

#include "common/base/text.h"
#include "common/env/directory.h"
#include "deploy/cli/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define WIDTH       100u
#define LONGER      160u /* bytes that names in its directory add to that at most */
#define SEEDS_LEAST 3u   /* that show a difference */

struct comparing {
    struct dp_compare_plan plan;
    struct dp_compare_record record;
    struct dp_compare_earlier earlier; /* --resume, --like */
    struct dp_cli_line line;
    const char *rate[DP_COMPARE_MODES_MAX];  /* of --lr-grid; NULL: that of the flags */
    bool diverged[DP_COMPARE_MODES_MAX];     /* with each of --lr-grid */
    char gave_up[DP_COMPARE_MODES_MAX][300]; /* why a mode is not run any more; "": it is */
    uint32_t done, all, good;
    double took_s;  /* the first run that was made here; 0: none has ended well */
    bool told_left; /* how long the others will take */
    int signal;
    bool refused; /* the first run was, and so would be the others */
};

/* ---- its directory: lock  report.json  report.html  figures/  curves.csv  runs.csv  cache/  runs/MODE/seed-N/  grid/MODE/RATE-seed-N/ */

static enum dp_status take_lock(const char *dir, int *lock, struct dp_error *err)
{
    char path[DP_PATH_MAX + LONGER];
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0)
        return dp_fail(err, DP_IO, "cannot open '%s': %s", path, strerror(errno));
    return flock(*lock, LOCK_EX | LOCK_NB) == 0
               ? DP_OK
               : dp_fail(err, DP_IN_USE,
                         "another comparison is running in '%.300s': wait for its end, or name another --dir",
                         dir);
}

/* But for the lock. */
static bool is_empty(const char *dir)
{
    DIR *open = opendir(dir);
    bool empty = open != NULL;
    for (struct dirent *one; open && empty && (one = readdir(open));)
        empty = strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0 ||
                strcmp(one->d_name, "lock") == 0;
    if (open)
        (void)closedir(open);
    return empty;
}

/* DIR/name, a file or a directory, if it is there. */
static enum dp_status remove_part(const char *dir, const char *name, struct dp_error *err)
{
    char path[DP_PATH_MAX + LONGER];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    if (unlink(path) == 0 || errno == ENOENT)
        return DP_OK;
    enum dp_status st = dp_directory_remove(path, true, 0, err);
    return st == DP_OK ? st : dp_wrap(err, st, "the earlier comparison stays");
}

/* The report last: while it is there, a removal that was cut off can be made again. */
static enum dp_status remove_earlier(const char *dir, struct dp_error *err)
{
    static const char *const names[] = {"runs",       "grid",     "report.html", "figures",
                                        "curves.csv", "runs.csv", "report.json"};
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof names / sizeof names[0]; i++)
        st = remove_part(dir, names[i], err);
    return st;
}

/* All that a comparison has made in it, but the lock. */
static enum dp_status clear_folder(const char *dir, struct dp_error *err)
{
    enum dp_status st = remove_part(dir, "cache", err);
    return st == DP_OK ? remove_earlier(dir, err) : st;
}

/* Makes it, with its parents. A file that is no comparison's is never removed; of a comparison that is removed the cache of decoded data
 * stays. */
static enum dp_status open_folder(const struct comparing *c, int *lock, struct dp_error *err)
{
    const char *dir = c->plan.dir;
    *lock = -1;
    if (strlen(dir) + LONGER > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--dir: the name is too long");
    enum dp_status st = dp_directory_make(dir, err);
    if (st == DP_OK && !is_empty(dir) && !dp_comparison_is(dir))
        return dp_fail(err, DP_EXISTS, "'%.300s' has other files: name another --dir", dir);
    if (st == DP_OK)
        st = take_lock(dir, lock, err);
    if (st != DP_OK || is_empty(dir) || c->earlier.resumes)
        return st;
    if (dp_compare_plan_flag(&c->plan, "--overwrite"))
        return remove_earlier(dir, err);
    return dp_fail(
        err, DP_EXISTS,
        "a comparison is in '%.300s' already: name another --dir, or give --overwrite to replace it, or "
        "--resume to continue an interrupted one ('downpour report' makes its page again)",
        dir);
}

/* ---- its words */

static void tell_start(const struct comparing *c)
{
    const struct dp_compare_plan *plan = &c->plan;
    const char *injected = dp_training_text(c->record.root, "injected");
    fprintf(stderr, "%s %zu mode%s with %" PRIu32 " seed%s each, in %s\n",
            c->earlier.resumes ? "Going on with comparing" : "Comparing", plan->modes,
            plan->modes == 1 ? "" : "s", plan->seeds, plan->seeds == 1 ? "" : "s", plan->dir);
    if (injected[0])
        fprintf(stderr, "Delays are injected, so times are not those of this machine: %s.\n", injected);
    if (plan->modes > 1 && plan->seeds < SEEDS_LEAST)
        fprintf(stderr, "With %s no difference can be shown: that takes three (--seeds).\n",
                plan->seeds == 1 ? "one seed" : "two seeds");
}

/* Once: by the first run, of one mode, so about. */
static void tell_left(struct comparing *c)
{
    double left_s = c->took_s * (c->all - c->done);
    bool minutes = left_s >= 100;
    if (c->told_left || !(left_s > 0))
        return;
    c->told_left = true;
    fprintf(stderr, "     about %.0f %s for the other %" PRIu32 " run%s\n",
            minutes ? ceil(left_s / 60) : fmax(1, ceil(left_s)), minutes ? "min" : "s", c->all - c->done,
            c->all - c->done == 1 ? "" : "s");
}

/* "  3/15  ssp:4, seed 1       12.3 s  accuracy 0.9512  7,123 examples/s" */
static void tell_run(struct comparing *c, const char *title, const json_t *run, const char *metric,
                     double end)
{
    char number[32];
    const char *error = json_string_value(json_object_get(run, "error"));
    const json_t *throughput = json_object_get(json_object_get(run, "report"), "throughput");
    bool good = strcmp(json_string_value(json_object_get(run, "status")), "ok") == 0;
    dp_cli_line_clear(&c->line);
    fprintf(stderr, "%3" PRIu32 "/%" PRIu32 "  %-31s ", c->done, c->all, title);
    if (good) {
        fprintf(stderr, "%8.1f s  ", json_number_value(json_object_get(throughput, "seconds")));
        fprintf(stderr, "%s examples/s",
                dp_cli_number(json_number_value(json_object_get(throughput, "examples_per_s")), number,
                              sizeof number));
        if (metric && isfinite(end))
            fprintf(stderr, "  %s %.4f", metric, end);
    }
    if (error && error[0])
        fprintf(stderr, "%s%s", good ? "  " : "failed: ", error);
    fputc('\n', stderr);
    tell_left(c);
}

static struct dp_compare_job job_of(struct comparing *c, size_t mode, uint64_t seed, const char *rate,
                                    bool is_try)
{
    struct dp_compare_job job = {.plan = &c->plan,
                                 .mode = &c->plan.mode[mode],
                                 .seed = seed,
                                 .rate = rate,
                                 .is_try = is_try,
                                 .line = &c->line};
    char name[DP_COMPARE_NAME];
    const char *in = is_try ? rate : "";
    (void)snprintf(job.dir, sizeof job.dir, "%s/%s/%s%sseed-%" PRIu64, is_try ? "grid" : "runs",
                   dp_compare_mode_path(job.mode, name), in, is_try ? "-" : "", seed);
    (void)snprintf(job.title, sizeof job.title, "%s, seed %" PRIu64 "%s%s", job.mode->name, seed,
                   rate ? ", rate " : "", rate ? rate : "");
    return job;
}

/* *run: the record's or the caller's to release. */
static enum dp_status train(struct comparing *c, struct dp_compare_job *job, json_t **run,
                            struct dp_error *err)
{
    enum dp_status st = c->earlier.resumes ? remove_part(c->plan.dir, job->dir, err) : DP_OK;
    if (st == DP_OK)
        st = dp_compare_job_run(job, run, err);
    c->signal = job->signal;
    if (st != DP_OK)
        return st;
    c->refused = job->refused && c->done == 0;
    c->done++;
    if (c->took_s <= 0 && dp_comparison_is_good(*run))
        c->took_s = json_number_value(json_object_get(*run, "wall_seconds"));
    return c->refused ? dp_fail(err, DP_ARGUMENT, "%s", json_string_value(json_object_get(*run, "error")))
                      : DP_OK;
}

/* ---- --lr-grid */

/* Held-out pairs are ranked among other items, so that their metrics may be others than the test set's. */
static bool has_metrics_of_runs(const struct comparing *c)
{
    return !dp_compare_plan_flag(&c->plan, "--holdout") &&
           !dp_compare_plan_flag(&c->plan, "--test negatives");
}

static enum dp_status try_rate(struct comparing *c, size_t mode, uint64_t seed, const char *rate,
                               struct dp_error *err)
{
    json_t *run = NULL,
           *kept = dp_compare_earlier_try(&c->earlier, c->plan.mode[mode].name, strtod(rate, NULL), seed);
    if (kept) {
        dp_compare_record_keep_try(&c->record, mode, kept);
        c->done++;
        return DP_OK;
    }
    struct dp_compare_job job = job_of(c, mode, seed, rate, true);
    enum dp_status st = train(c, &job, &run, err);
    if (st == DP_OK) {
        double end = dp_compare_record_add_try(&c->record, mode, rate, run);
        tell_run(c, job.title, run, dp_compare_record_grid_metric(&c->record), end);
        st = dp_compare_record_write(&c->record, c->plan.dir, err);
    }
    if (st == DP_OK && has_metrics_of_runs(c))
        st = dp_compare_record_check_target(&c->record, run, err);
    json_decref(run);
    return st;
}

static enum dp_status try_rates(struct comparing *c, size_t mode, uint64_t seed, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t r = 0; st == DP_OK && r < c->plan.rates; r++)
        st = try_rate(c, mode, seed, c->plan.rate[r], err);
    return st;
}

/* The first error of its tries is the cause, if they did not all diverge. */
static void tell_gave_up(struct comparing *c, size_t mode)
{
    const json_t *of = json_array_get(json_object_get(c->record.root, "modes"), mode);
    json_t *one;
    const char *error = "";
    size_t i;
    json_array_foreach(json_object_get(of, "grid"), i, one)
    {
        const char *text = json_string_value(json_object_get(one, "error"));
        error = error[0] || !text ? error : text;
    }
    if (c->diverged[mode] || !error[0])
        (void)snprintf(c->gave_up[mode], sizeof c->gave_up[mode], "%s with each rate that was tried",
                       c->diverged[mode] ? "it diverged" : "no finite metric");
    else
        (void)snprintf(c->gave_up[mode], sizeof c->gave_up[mode],
                       "none of the tried rates has a metric: %.200s", error);
}

static enum dp_status seek_rates(struct comparing *c, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; st == DP_OK && s < c->plan.grid_seeds; s++)
        for (size_t m = 0; st == DP_OK && m < c->plan.modes; m++)
            if (dp_compare_plan_seeks_rate(&c->plan, &c->plan.mode[m]))
                st = try_rates(c, m, c->plan.first_grid_seed + s, err);
    dp_cli_line_clear(&c->line);
    for (size_t m = 0; st == DP_OK && m < c->plan.modes; m++) {
        if (!dp_compare_plan_seeks_rate(&c->plan, &c->plan.mode[m]))
            continue;
        c->rate[m] = dp_compare_record_choose(&c->record, &c->plan, m);
        c->diverged[m] = dp_compare_record_all_diverged(&c->record, m);
        if (!c->rate[m])
            tell_gave_up(c, m);
        fprintf(stderr, "Rate of %s: %s\n", c->plan.mode[m].name, c->rate[m] ? c->rate[m] : c->gave_up[m]);
    }
    return st == DP_OK ? dp_compare_record_write(&c->record, c->plan.dir, err) : st;
}

/* ---- runs */

static json_t *not_run(const struct comparing *c, size_t mode, uint64_t seed)
{
    json_t *run = json_pack("{s:s, s:I, s:s, s:s, s:s}", "mode", c->plan.mode[mode].name, "seed",
                            (json_int_t)seed, "dir", "", "status", "failed", "error", c->gave_up[mode]);
    if (run && c->diverged[mode])
        (void)json_object_set_new(run, "diverged", json_true());
    return run;
}

/* NULL: it is to be made. */
static json_t *kept_run(struct comparing *c, size_t mode, uint64_t seed)
{
    json_t *run = c->gave_up[mode][0] ? not_run(c, mode, seed)
                                      : dp_compare_earlier_run(&c->earlier, c->plan.mode[mode].name, seed);
    c->done += run != NULL;
    return run;
}

static enum dp_status run_one(struct comparing *c, size_t mode, uint64_t seed, struct dp_error *err)
{
    json_t *run = kept_run(c, mode, seed);
    enum dp_status st = DP_OK;
    struct dp_compare_job job = job_of(c, mode, seed, c->rate[mode], false);
    if (!run)
        st = train(c, &job, &run, err);
    if (st != DP_OK) {
        json_decref(run);
        return st;
    }
    double end = dp_compare_record_end(&c->record, run);
    tell_run(c, job.title, run, dp_compare_record_metric(&c->record), end);
    bool good = dp_comparison_is_good(run);
    c->good += good;
    dp_compare_record_add(&c->record, run);
    st = dp_compare_record_write(&c->record, c->plan.dir, err);
    return st == DP_OK && good ? dp_compare_record_check_target(&c->record, run, err) : st;
}

static enum dp_status run_all(struct comparing *c, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    bool goes_on = true;
    for (uint32_t s = 0; st == DP_OK && goes_on && s < c->plan.seeds; s++) {
        for (size_t m = 0; st == DP_OK && m < c->plan.modes; m++)
            st = run_one(c, (m + s) % c->plan.modes, c->plan.first_seed + s, err);
        goes_on = c->good > 0;
    }
    if (st == DP_OK && !goes_on && c->plan.seeds > 1)
        fprintf(stderr, "No mode ended well with the first seed: the others are not tried.\n");
    return st;
}

/* On lines of 100 columns. */
static void put_wrapped(void (*put)(FILE *to, const void *claims), const struct dp_claims *claims)
{
    char *text = dp_page_text(put, claims);
    size_t at = 0;
    for (char *save = NULL, *word = text ? strtok_r(text, " ", &save) : NULL; word;
         word = strtok_r(NULL, " ", &save)) {
        size_t len = strlen(word);
        bool breaks = at > 0 && at + 1 + len > WIDTH;
        printf("%s%s", breaks ? "\n" : at ? " " : "", word);
        at = breaks ? len : at + len + (at > 0);
    }
    if (at > 0)
        printf("\n");
    free(text);
}

static enum dp_status tell_found(const struct comparing *c, struct dp_error *err)
{
    static void (*const puts[])(FILE *, const void *) = {
        dp_compare_put_failed, dp_compare_put_answer,     dp_compare_put_target,  dp_compare_put_end,
        dp_compare_put_speed,  dp_compare_put_efficiency, dp_compare_put_machine, dp_compare_put_brackets};
    struct dp_claims claims;
    enum dp_status st = dp_claims_of(c->record.root, &claims, err);
    for (size_t i = 0; st == DP_OK && i < sizeof puts / sizeof puts[0]; i++)
        if (c->good > 0 || puts[i] != dp_compare_put_brackets)
            put_wrapped(puts[i], &claims);
    dp_claims_clear(&claims);
    return st;
}

static enum dp_status finish(struct comparing *c, struct dp_error *err)
{
    enum dp_status st = dp_compare_record_finish(&c->record, err);
    if (st == DP_OK)
        st = dp_compare_record_write(&c->record, c->plan.dir, err);
    if (st == DP_OK)
        st = tell_found(c, err);
    if (st == DP_OK)
        st = dp_compare_make_page(c->plan.dir, NULL, err);
    if (st == DP_OK && c->good == 0)
        st = dp_fail(err, DP_DATA, "no run of any mode ended well: %.200s/report.json says why for each",
                     c->plan.dir);
    return st;
}

static uint32_t count_all(const struct dp_compare_plan *plan)
{
    size_t all = plan->modes * plan->seeds;
    for (size_t m = 0; m < plan->modes; m++)
        if (dp_compare_plan_seeks_rate(plan, &plan->mode[m]))
            all += plan->rates * plan->grid_seeds;
    return (uint32_t)all;
}

/* So that a command that is mended finds the directory as this one did. */
static void clear_refused(const struct comparing *c)
{
    struct dp_error why = {0};
    if (clear_folder(c->plan.dir, &why) != DP_OK)
        fprintf(stderr, "downpour: compare: %s\n", why.text);
}

static enum dp_status compare(struct comparing *c, int argc, char *const *argv, struct dp_error *err)
{
    int lock = -1;
    enum dp_status st = open_folder(c, &lock, err);
    if (st == DP_OK)
        st = dp_compare_record_open(&c->plan, argc, argv, &c->record, err);
    if (st == DP_OK)
        dp_compare_earlier_hand_over(&c->earlier, &c->record);
    if (st == DP_OK)
        st = dp_compare_record_write(&c->record, c->plan.dir, err);
    if (st == DP_OK) {
        c->all = count_all(&c->plan);
        tell_start(c);
    }
    if (st == DP_OK && c->plan.rates > 0)
        st = seek_rates(c, err);
    if (st == DP_OK)
        st = run_all(c, err);
    dp_cli_line_end(&c->line);
    if (st == DP_OK)
        st = finish(c, err);
    if (c->refused && !c->earlier.resumes)
        clear_refused(c);
    dp_compare_record_close(&c->record);
    if (lock >= 0)
        (void)close(lock);
    return st;
}

/* A flag of `report` that a user looks for here. */
static enum dp_status parse(struct comparing *c, int argc, char *const *argv, bool *help,
                            struct dp_error *err)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--against") == 0 || strncmp(argv[i], "--against=", 10) == 0)
            return dp_fail(err, DP_ARGUMENT,
                           "unknown flag '--against': two finished comparisons are compared with 'downpour "
                           "report DIR --against REPORT'");
    return dp_options_parse(dp_compare_command(), argc, argv, c->plan.values, help, err);
}

int dp_compare_compare(int argc, char *const *argv)
{
    struct comparing *c = calloc(1, sizeof *c);
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = c ? parse(c, argc, argv, &help, &err) : dp_fail(&err, DP_NOMEM, "no memory");
    if (st == DP_OK && help) {
        free(c);
        return dp_options_show_short_help(dp_compare_command(), argc, argv);
    }
    const char *like = st == DP_OK ? dp_compare_plan_flag(&c->plan, "--like") : NULL;
    if (st == DP_OK && dp_compare_plan_flag(&c->plan, "--resume"))
        st = dp_compare_earlier_resume(&c->plan, &c->earlier, &err);
    else if (like)
        st = dp_compare_earlier_like(like, &c->plan, &c->earlier, &err);
    if (st == DP_OK) {
        dp_cli_line_init(&c->line, stderr);
        st = dp_compare_plan_make(&c->plan, &err);
    }
    if (st == DP_OK)
        st = like ? compare(c, c->earlier.count, c->earlier.words, &err) : compare(c, argc, argv, &err);
    if (c)
        dp_compare_earlier_clear(&c->earlier);
    int code = st == DP_OK ? 0 : c && c->signal ? 128 + c->signal : 2;
    dp_text_clean(err.text);
    if (st != DP_OK)
        fprintf(stderr, "downpour: compare: %s\n", err.text);
    if (st != DP_OK && c && c->signal) {
        char quoted[DP_PATH_QUOTED];
        const char *dir = dp_path_quote(c->plan.dir, quoted);
        fprintf(stderr,
                "To continue it:                       downpour compare --dir %s --resume\nA page of the "
                "runs that have ended:   downpour report %s\n",
                dir, dir);
    }
    free(c);
    return code;
}
