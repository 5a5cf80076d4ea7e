#include "deploy/compare/compare_job.h"

#include "common/base/deadline.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/env/directory.h"
#include "common/env/installed.h"
#include "deploy/cli/path.h"
#include "deploy/run/failure.h"
#include "deploy/run/folder.h"
#include "deploy/supervise/local.h"
#include "deploy/supervise/log_tail.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS  500u
#define STOP_MS  150000u /* a run stops its workers and servers, which close their stores */
#define TAIL     4096
#define KINDS    8 /* user, nice, system, idle, iowait, irq, softirq, steal; guests are in the first two */
#define ARGS_MAX (2u * DP_COMPARE_FLAGS_MAX + 32u)

/* A child's arguments; texts that are made lie in `made`. */
struct args {
    const char *of[ARGS_MAX];
    size_t count;
    char made[8][DP_PATH_MAX + 64];
    size_t texts;
};

static void add(struct args *args, const char *word)
{
    DP_ASSERT(args->count + 1 < ARGS_MAX);
    args->of[args->count++] = word;
}

/* Words up to NULL. */
static void add_all(struct args *args, ...)
{
    va_list words;
    va_start(words, args);
    for (const char *word = va_arg(words, const char *); word; word = va_arg(words, const char *))
        add(args, word);
    va_end(words);
}

static void add_number(struct args *args, const char *flag, uint64_t value, const char *unit)
{
    DP_ASSERT(args->texts < sizeof args->made / sizeof args->made[0]);
    char *text = args->made[args->texts++];
    (void)snprintf(text, sizeof args->made[0], "%" PRIu64 "%s", value, unit);
    add_all(args, flag, text, NULL);
}

/* DIR/RUN/name; the plan's directory leaves room. */
static void path_of(const struct dp_compare_job *job, const char *name, char out[DP_PATH_MAX + 64])
{
    (void)snprintf(out, DP_PATH_MAX + 64, "%.*s/%s%s%s", (int)(DP_PATH_MAX - sizeof job->dir), job->plan->dir,
                   job->dir, name[0] ? "/" : "", name);
}

/* The last bytes of a file as a text; "" where there is none. */
static void tail_of(const char *path, char out[TAIL + 1])
{
    FILE *file = fopen(path, "re");
    size_t n = 0;
    if (file && (fseek(file, -TAIL, SEEK_END) == 0 || fseek(file, 0, SEEK_SET) == 0))
        n = fread(out, 1, TAIL, file);
    if (file)
        (void)fclose(file);
    out[n] = '\0';
}

/* How far a child is: the last line of its log, whose lines may end in \r. */
static void show(const struct dp_compare_job *job, const char *log, uint64_t begun_ms)
{
    char tail[TAIL + 1], text[320];
    if (!job->line || !job->line->moving)
        return;
    tail_of(log, tail);
    size_t len = strlen(tail);
    while (len > 0 && strchr("\r\n", tail[len - 1]))
        tail[--len] = '\0';
    const char *last = tail + len;
    while (last > tail && !strchr("\r\n", last[-1]))
        last--;
    dp_text_clean(tail + (last - tail));
    (void)snprintf(text, sizeof text, "%s  %" PRIu64 " s  %.90s", job->title, (dp_now_ms() - begun_ms) / 1000,
                   last);
    dp_cli_line_show(job->line, text, dp_now_ms());
}

/* What the command, or a worker, said last of why it failed: "downpour: CAUSE", but not where its log is. */
static bool said_why(const char *log, char *out, size_t size)
{
    static const char mark[] = "downpour: ", place[] = "its log is ";
    char tail[TAIL + 1];
    bool found = false;
    tail_of(log, tail);
    for (char *line = tail, *next; line; line = next) {
        next = strpbrk(line, "\r\n");
        if (next)
            *next++ = '\0';
        if (strncmp(line, mark, sizeof mark - 1) != 0 ||
            strncmp(line + sizeof mark - 1, place, sizeof place - 1) == 0)
            continue;
        (void)snprintf(out, size, "%s", line + sizeof mark - 1);
        found = true;
    }
    dp_text_clean(out);
    return found;
}

static enum dp_status wait_for(struct dp_compare_job *job, struct dp_local *local, const char *log,
                               uint64_t begun_ms, struct dp_error *err)
{
    while (dp_local_running(local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(local, LOOK_MS);
        job->signal = dp_local_signal(local);
        if (job->signal) {
            (void)dp_local_stop(local, DP_LOCAL_WORKER, STOP_MS);
            return dp_fail(err, DP_STOPPING, "stopped by signal %d", job->signal);
        }
        show(job, log, begun_ms);
    }
    return DP_OK;
}

/* Runs a child to its end. *why: "" after a good one. */
static enum dp_status run_child(struct dp_compare_job *job, struct args *args, const char *name,
                                char why[sizeof((struct dp_error *)0)->text], struct dp_error *err)
{
    const size_t size = sizeof err->text;
    struct dp_local *local = NULL;
    char log[DP_PATH_MAX + 64], file[48];
    uint64_t begun_ms = dp_now_ms();
    (void)snprintf(file, sizeof file, "%s.log", name);
    path_of(job, file, log);
    args->of[args->count] = NULL;
    why[0] = '\0';
    enum dp_status st = dp_local_open(&local, err);
    if (st == DP_OK)
        st = dp_local_start(local, DP_LOCAL_WORKER, name, args->of, log, -1, err);
    if (st == DP_OK)
        st = wait_for(job, local, log, begun_ms, err);
    if (st == DP_OK && dp_local_failed(local) && !said_why(log, why, size) &&
        !dp_local_log_tail(local, why, size))
        (void)snprintf(why, size, "%s failed; its log: %.150s", name, log);
    dp_local_close(&local);
    return st;
}

/* ---- downpour run */

/* As which flag of `run` one of compare goes on; NULL: as none. */
static const char *passed_name(const struct dp_compare_job *job, const char *flag)
{
    static const char *const scored[][2] = {{"--test", "--score"},
                                            {"--test labels", "--score labels"},
                                            {"--test negatives", "--score negatives"}};
    static const char *const set_here[] = {"--seed", "--workers", "--cache"};
    for (size_t i = 0; i < sizeof scored / sizeof scored[0]; i++)
        if (strcmp(flag, scored[i][0]) == 0)
            return job->is_try ? NULL : scored[i][1];
    for (size_t i = 0; i < sizeof set_here / sizeof set_here[0]; i++)
        if (strcmp(flag, set_here[i]) == 0)
            return NULL;
    bool left_out = (job->rate && strcmp(flag, "--rate") == 0) ||
                    (job->mode->kind == DP_COMPARE_HOGWILD && strcmp(flag, "--inject straggler") == 0);
    return left_out || !dp_compare_is_of_run(flag) ? NULL : flag;
}

/* As a person writes it: a suboption "--inject pace" is --inject pace=VALUE. value: NULL: a switch. */
static void add_flag(struct args *args, const char *name, const char *value)
{
    const char *space = strchr(name, ' ');
    char flag[64], text[DP_PATH_MAX + 64];
    (void)snprintf(flag, sizeof flag, "%.*s", (int)strcspn(name, " "), name);
    (void)snprintf(text, sizeof text, "%s=%.*s", space ? space + 1 : "", DP_PATH_MAX, value ? value : "");
    const char *kept[2] = {space ? dp_options_keep(flag) : name, space ? dp_options_keep(text) : value};
    if (kept[0])
        add(args, kept[0]);
    if (kept[1])
        add(args, kept[1]);
}

/* Those of the flags, and of the mode's own, that a run takes as they were given. */
static void add_given(const struct dp_compare_job *job, struct args *args)
{
    const struct dp_command *command = dp_compare_command();
    const char *values[DP_COMPARE_FLAGS_MAX];
    dp_compare_plan_values(job->plan, job->mode, values);
    for (size_t i = 0; i < command->count; i++) {
        const struct dp_option *option = &command->options[i];
        const char *name = option->name && values[i] ? passed_name(job, option->name) : NULL;
        if (!name)
            continue;
        add_flag(args, name, option->argument ? values[i] : NULL);
    }
}

static const char *cache_of(const struct dp_compare_job *job, struct args *args)
{
    DP_ASSERT(args->texts < sizeof args->made / sizeof args->made[0]);
    const char *given = dp_compare_plan_flag(job->plan, "--cache");
    char *text = args->made[args->texts++];
    (void)snprintf(text, sizeof args->made[0], "%s/cache", job->plan->dir);
    return given ? given : text;
}

/* What the run says of its failure to programs; else `why` stays, which its log says. */
static void take_failure(struct dp_compare_job *job, const char *dir, char *why, size_t size, bool *diverged)
{
    struct dp_failure failure;
    if (!why[0] || !dp_failure_read(dir, &failure))
        return;
    (void)snprintf(why, size, "%.*s", (int)size - 1, failure.error);
    job->refused = failure.refused;
    *diverged = failure.diverged;
}

static enum dp_status run_servers(struct dp_compare_job *job, const char *program, const char *dir, char *why,
                                  struct dp_error *err)
{
    struct args args = {.count = 0};
    bool threads = job->mode->kind == DP_COMPARE_HOGWILD;
    add_all(&args, program, "run", "--dir", dir, NULL);
    add_given(job, &args);
    add_all(&args, "--cache", cache_of(job, &args), "--consistency", job->mode->consistency, "--work",
            job->mode->leased ? "leased" : "fixed", NULL);
    add_number(&args, "--workers", threads ? 1 : job->mode->workers, "");
    add_number(&args, "--threads", threads ? job->mode->workers : 1, "");
    add_number(&args, "--seed", job->seed, "");
    add_number(&args, "--sample-every", job->plan->sample_ms, "ms");
    if (job->rate)
        add_all(&args, "--rate", job->rate, NULL);
    if (!job->mode->prefetch)
        add(&args, "--no-overlap");
    if (job->is_try)
        add_all(&args, "--validation", "share=" DP_COMPARE_TRY_SHARE, "--score", "validation", "--keep",
                "last", NULL);
    return run_child(job, &args, "run", why, err);
}

/* ---- allreduce */

/* The path of mpirun; false: it is not installed. */
static bool find_mpirun(char out[DP_PATH_MAX + 1])
{
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t len = strcspn(at, ":");
        if (len > 0 && snprintf(out, DP_PATH_MAX + 1, "%.*s/mpirun", (int)len, at) <= DP_PATH_MAX &&
            access(out, X_OK) == 0)
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

/* What the ranks do not train on is what is scored. */
static enum dp_status hold_back(struct dp_cluster *c, struct dp_error *err)
{
    c->data.test[0] = c->data.test_labels[0] = c->data.test_negatives[0] = '\0';
    c->data.holdout_evaluated = false;
    enum dp_status st =
        dp_cluster_set(c, "data.validation_share", DP_COMPARE_TRY_SHARE, "--validation share", err);
    return st == DP_OK ? dp_cluster_set(c, "training.keep", "last", "--keep", err) : st;
}

/* The cluster files of the ranks, which evaluate nothing, and of the scoring. */
static enum dp_status write_files(const struct dp_compare_job *job, const char *conf, const char *scored,
                                  struct dp_error *err)
{
    struct dp_cluster *c = NULL;
    char path[DP_PATH_MAX + 64];
    enum dp_status st = dp_compare_plan_cluster(job->plan, job->mode, job->seed, job->rate, &c, err);
    path_of(job, "report.json", path);
    if (st == DP_OK && job->is_try)
        st = hold_back(c, err);
    if (st == DP_OK)
        st = dp_cluster_set(c, "training.report", path, "--dir", err);
    (void)snprintf(path, sizeof path, "%s/cache", job->plan->dir);
    if (st == DP_OK && !dp_compare_plan_flag(job->plan, "--cache"))
        st = dp_cluster_set(c, "data.cache", path, "--dir", err);
    if (st == DP_OK)
        st = dp_cluster_write(c, scored, err);
    if (st == DP_OK) {
        c->data.test[0] = c->data.test_labels[0] = c->data.test_negatives[0] = '\0';
        st = dp_cluster_write(c, conf, err);
    }
    dp_cluster_free(&c);
    return st;
}

struct allreduce_paths {
    char mpirun[DP_PATH_MAX + 1], ranks[DP_PATH_MAX + 1], worker[DP_PATH_MAX + 1];
    char conf[DP_PATH_MAX + 64], scored[DP_PATH_MAX + 64], keys[DP_PATH_MAX + 64], samples[DP_PATH_MAX + 64],
        out[DP_PATH_MAX + 64];
};

/* The first rank that says why it ends; else `why` stays. */
static void take_words_of_ranks(const struct dp_compare_job *job, char *why, size_t size)
{
    char log[DP_PATH_MAX + 64], name[24], text[TAIL];
    path_of(job, "mpirun.log", log);
    for (uint32_t rank = 0; rank < job->mode->workers; rank++) {
        (void)snprintf(name, sizeof name, "rank %" PRIu32, rank);
        if (!dp_end_of_log(log, 0, name, text, sizeof text))
            continue;
        (void)snprintf(why, size, "%.*s", (int)size - 1, text);
        dp_text_clean(why);
        return;
    }
}

static enum dp_status run_ranks(struct dp_compare_job *job, const struct allreduce_paths *p, char *why,
                                struct dp_error *err)
{
    struct args args = {.count = 0};
    add(&args, p->mpirun);
    add_number(&args, "-n", job->mode->workers, "");
    add_all(&args, "--oversubscribe", "--bind-to", "none", NULL);
    if (geteuid() == 0)
        add(&args, "--allow-run-as-root");
    add_all(&args, p->ranks, "--cluster", p->conf, "--observe", p->samples, "--keys", p->keys, NULL);
    add_number(&args, "--sample-every", job->plan->sample_ms, "");
    enum dp_status st = run_child(job, &args, "mpirun", why, err);
    if (st == DP_OK && why[0])
        take_words_of_ranks(job, why, sizeof err->text);
    return st;
}

static enum dp_status run_allreduce(struct dp_compare_job *job, char *why, struct dp_error *err)
{
    struct allreduce_paths p;
    struct args keys = {.count = 0}, score = {.count = 0};
    struct dp_error missing = {0};
    path_of(job, "cluster.conf", p.conf);
    path_of(job, "score.conf", p.scored);
    path_of(job, "keys", p.keys);
    path_of(job, "samples", p.samples);
    path_of(job, "samples.json", p.out);
    if (!find_mpirun(p.mpirun) ||
        dp_installed_program("downpour-allreduce", p.ranks, sizeof p.ranks, &missing) != DP_OK) {
        (void)snprintf(why, sizeof err->text, "%s",
                       missing.text[0]
                           ? "this build has no downpour-allreduce, as there was no MPI: install it "
                             "(Debian: apt-get install libopenmpi-dev openmpi-bin) and build again"
                           : "mpirun is not installed (Debian: apt-get install openmpi-bin)");
        return DP_OK;
    }
    enum dp_status st = dp_installed_program("downpour-worker", p.worker, sizeof p.worker, err);
    if (st == DP_OK)
        st = write_files(job, p.conf, p.scored, err);
    add_all(&keys, p.worker, "--cluster", p.scored, "--score-keys", p.keys, NULL);
    if (st == DP_OK)
        st = run_child(job, &keys, "keys", why, err);
    if (st == DP_OK && !why[0])
        st = run_ranks(job, &p, why, err);
    add_all(&score, p.worker, "--cluster", p.scored, "--score-samples", p.samples, "--keys", p.keys, "--out",
            p.out, NULL);
    if (st == DP_OK && !why[0])
        st = run_child(job, &score, "score", why, err);
    if (st == DP_OK) {
        (void)remove(p.samples);
        (void)remove(p.keys);
    }
    return st;
}

/* ---- the machine's other load, from /proc (Linux); unreadable values are left out */

struct machine {
    double load;         /* the mean of a minute, at begin; NaN: unknown */
    double total, steal; /* processor time since the machine's start, in ticks; NaN: unknown */
};

static void read_ticks(double *total, double *steal)
{
    double ticks[KINDS];
    FILE *file = fopen("/proc/stat", "re");
    *total = *steal = NAN;
    int n = file ? fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &ticks[0], &ticks[1], &ticks[2],
                          &ticks[3], &ticks[4], &ticks[5], &ticks[6], &ticks[7])
                 : 0;
    if (file)
        (void)fclose(file);
    if (n != KINDS)
        return;
    *total = 0;
    for (int i = 0; i < KINDS; i++)
        *total += ticks[i];
    *steal = ticks[KINDS - 1];
}

static struct machine machine_begin(void)
{
    struct machine begun = {.load = NAN};
    if (getloadavg(&begun.load, 1) != 1)
        begun.load = NAN;
    read_ticks(&begun.total, &begun.steal);
    return begun;
}

/* {"load", "steal_share"}: the load when the run began, the share of the processor time that the machine's host gave to others. */
static json_t *machine_end(const struct machine *begun)
{
    double total, steal;
    json_t *out = json_object();
    read_ticks(&total, &steal);
    dp_json_set_real(out, "load", begun->load);
    if (total > begun->total)
        dp_json_set_real(out, "steal_share", (steal - begun->steal) / (total - begun->total));
    return out;
}

/* ---- what it left */

static json_t *load(const struct dp_compare_job *job, const char *name)
{
    char path[DP_PATH_MAX + 64];
    path_of(job, name, path);
    return json_load_file(path, JSON_DECODE_ANY, NULL);
}

static void take_samples(const struct dp_compare_job *job, json_t *run)
{
    json_t *scored = load(job, "samples.json");
    json_t *samples = json_object_get(scored, "samples");
    const char *error = json_string_value(json_object_get(scored, "error"));
    json_t *count = json_object_get(scored, "examples");
    if (count)
        (void)json_object_set(run, "scored_examples", count);
    if (json_is_array(samples) && json_array_size(samples) > 0)
        (void)json_object_set(run, "samples", samples);
    else if (json_string_length(json_object_get(run, "error")) == 0)
        (void)json_object_set_new(
            run, "error",
            json_sprintf("its weights were not scored: %s", error ? error : "no sample was taken"));
    json_decref(scored);
}

/* By its report (worker/telemetry/divergence.h), or as its last weights give no finite loss (worker/observe/scoring.h). */
static bool ends_diverged(const json_t *run)
{
    const json_t *of = json_object_get(json_object_get(run, "report"), "diverged");
    const json_t *samples = json_object_get(run, "samples");
    const char *why = json_string_value(json_object_get(of, "why"));
    size_t count = json_array_size(samples);
    return (why && strcmp(why, "not_finite") == 0) ||
           (count > 0 && json_is_true(json_object_get(json_array_get(samples, count - 1), "diverged")));
}

/* A run is good by its own report: it is finished, and has the settings that were asked for. One that failed or was stopped has left a
 * report, too. */
static bool is_good(const struct dp_compare_job *job, const json_t *report, char *why, size_t size)
{
    if (why[0])
        return false;
    if (json_is_true(json_object_get(report, "finished")))
        return dp_compare_settings_match(job, report, why, size);
    (void)snprintf(why, size, "it left no report of a finished training");
    return false;
}

static void take_report(const struct dp_compare_job *job, json_t *run, char *why, size_t size)
{
    json_t *report = load(job, "report.json");
    bool good = is_good(job, report, why, size);
    (void)json_object_set_new(run, "status", json_string(good ? "ok" : "failed"));
    (void)json_object_set_new(run, "error", json_string(why));
    if (report)
        (void)json_object_set_new(run, "report", report);
}

/* Weights take disk space, and the next run does not need them. */
static void drop_store(const char *dir)
{
    struct dp_folder folder = {.lock = -1};
    struct dp_error why = {0};
    enum dp_status st = dp_folder_open(dir, &folder, &why);
    if (st == DP_OK)
        st = dp_folder_clear_store(&folder, &why);
    if (st != DP_OK)
        fprintf(stderr, "downpour: compare: the store of a run stays: %s\n", why.text);
    dp_folder_close(&folder);
}

enum dp_status dp_compare_job_run(struct dp_compare_job *job, json_t **out, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], dir[DP_PATH_MAX + 64], why[sizeof err->text] = "";
    const struct machine machine = machine_begin();
    uint64_t begun_ms = dp_now_ms();
    bool diverged = false;
    *out = NULL;
    job->refused = false;
    path_of(job, "", dir);
    enum dp_status st = dp_directory_make(dir, err);
    if (st == DP_OK)
        st = dp_installed_program("downpour", program, sizeof program, err);
    if (st == DP_OK)
        st = job->mode->kind == DP_COMPARE_ALLREDUCE ? run_allreduce(job, why, err)
                                                     : run_servers(job, program, dir, why, err);
    if (st != DP_OK)
        return st;
    json_t *run = *out =
        json_pack("{s:s, s:I, s:s}", "mode", job->mode->name, "seed", (json_int_t)job->seed, "dir", job->dir);
    if (!run)
        return dp_fail(err, DP_NOMEM, "no memory for the result of a run");
    dp_json_set_real(run, "wall_seconds", (double)(dp_now_ms() - begun_ms) / 1e3);
    (void)json_object_set_new(run, "machine", machine_end(&machine));
    take_failure(job, dir, why, sizeof why, &diverged);
    take_report(job, run, why, sizeof why);
    dp_efficiency_add(run);
    take_samples(job, run);
    if (diverged || ends_diverged(run))
        (void)json_object_set_new(run, "diverged", json_true());
    if (job->mode->kind != DP_COMPARE_ALLREDUCE && !dp_compare_plan_flag(job->plan, "--keep-stores"))
        drop_store(dir);
    return DP_OK;
}
