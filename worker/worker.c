#include "worker/worker.h"

#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/env/directory.h"
#include "common/env/limits.h"
#include "worker/context/defaults.h"
#include "worker/context/run_failure.h"
#include "worker/context/shape.h"
#include "worker/context/stop_signal.h"
#include "worker/coordinate/run_number.h"
#include "worker/coordinate/training_plan.h"
#include "worker/loop/train.h"
#include "worker/observe/observe.h"
#include "worker/observe/scoring.h"
#include "worker/score/predict.h"
#include "worker/score/sets.h"
#include "worker/score/top.h"
#include "worker/telemetry/progress.h"

#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: downpour-worker --cluster FILE --worker N [--resume] [--device NAME] [--precision KIND]\n       "
    "downpour-worker --cluster FILE --predict DATA [--labels FILE] --out FILE\n       downpour-worker "
    "--cluster FILE --top N (--users FILE | --history FILE --notes FILE) [--with-seen] --out FILE\n       "
    "downpour-worker --cluster FILE "
    "--score-keys KEYS\n       downpour-worker --cluster FILE --observe SAMPLES --keys KEYS --sample-every "
    "MS\n  "
    "     downpour-worker --cluster FILE --score-samples SAMPLES [--keys KEYS] --out FILE\n\n  --cluster "
    "FILE   "
    "cluster file that all servers and workers read\n  --worker N       train as worker N: 0 .. "
    "training.workers - 1\n  --first HOST[:PORT]  the first server, where the file only counts the servers\n "
    " --resume         this worker was killed or stopped before: finish its run; a "
    "run "
    "that is already complete is\n                   no error\n  --device NAME    cpu, cuda:N, cuda:each or "
    "auto, instead of training.device\n  --precision KIND f32, tf32 or bf16, instead of training.precision\n "
    " "
    "--predict DATA   write a line of scores for each example of DATA\n  --labels FILE    labels of an idx "
    "file, if they cannot be found by its name\n  --top N          write the N best items of each user, "
    "lines "
    "of USER, ITEM, SCORE (tabs)\n  --users FILE     with --top: file with a user per line\n  --history FILE "
    "  with --top: "
    "interactions of users that the training did not have\n  --notes FILE     with --history: file for a "
    "line "
    "about what is left out\n  --with-seen    "
    "  "
    "with --top: include items that the user met in the training file\n  --out FILE       file for the "
    "scores; with --score-samples for the metrics (JSON)\n  --score-keys KEYS        write which rows an "
    "evaluation of the test set reads; without servers\n  --observe SAMPLES        sample these rows "
    "(--keys) "
    "of the training on the servers every MS milliseconds,\n                           until a signal comes "
    "or "
    "the servers stop\n  --score-samples SAMPLES  compute the metrics of each sample on the test set; "
    "without "
    "servers\n";

struct flags {
    const char *top, *users, *history, *notes;
    const char *cluster, *first, *worker, *predict, *labels, *out, *device, *precision;
    const char *score_keys, *observe, *keys, *every, *score_samples;
    bool help, resume, with_seen;
};

/* What belongs to observing a training. */
static enum dp_status check_observing(const struct flags *flags, struct dp_error *err)
{
    if (flags->observe && (!flags->keys || !flags->every))
        return dp_fail(err, DP_ARGUMENT, "--observe SAMPLES needs --keys KEYS and --sample-every MS");
    if (flags->every && !flags->observe)
        return dp_fail(err, DP_ARGUMENT, "--sample-every needs --observe SAMPLES");
    if (flags->keys && !flags->observe && !flags->score_samples)
        return dp_fail(err, DP_ARGUMENT, "--keys needs --observe SAMPLES or --score-samples SAMPLES");
    if ((flags->observe || flags->score_keys) && flags->out)
        return dp_fail(err, DP_ARGUMENT, "--out needs --predict, --top or --score-samples");
    return DP_OK;
}

static enum dp_status check_flags(int argc, char **argv, const struct flags *flags, struct dp_error *err)
{
    if (optind < argc)
        return dp_fail(err, DP_ARGUMENT, "unexpected argument \"%s\", see --help", argv[optind]);
    if (!flags->cluster)
        return dp_fail(err, DP_ARGUMENT, "--cluster FILE is missing, see --help");
    if ((flags->worker != NULL) + (flags->predict != NULL) + (flags->top != NULL) +
            (flags->score_keys != NULL) + (flags->observe != NULL) + (flags->score_samples != NULL) !=
        1)
        return dp_fail(err, DP_ARGUMENT,
                       "give --worker N to train, --predict DATA to write scores, --top N to write the best "
                       "items, or one of --score-keys, --observe and --score-samples; see --help");
    if ((flags->predict || flags->top || flags->score_samples) && !flags->out)
        return dp_fail(err, DP_ARGUMENT, "%s needs --out FILE",
                       flags->predict ? "--predict"
                       : flags->top   ? "--top"
                                      : "--score-samples");
    if ((flags->top != NULL) != ((flags->users != NULL) + (flags->history != NULL) == 1) ||
        (flags->history != NULL) != (flags->notes != NULL) || (flags->with_seen && !flags->top))
        return dp_fail(
            err, DP_ARGUMENT,
            "--top N needs --users FILE, or --history FILE and --notes FILE; --with-seen needs --top");
    if (flags->worker && (flags->labels || flags->out))
        return dp_fail(err, DP_ARGUMENT,
                       "--labels and --out need --predict; the labels of a training are in the cluster file");
    return check_observing(flags, err);
}

static enum dp_status parse_flags(int argc, char **argv, struct flags *out, struct dp_error *err)
{
    static const struct option options[] = {
        {"cluster", required_argument, NULL, 'c'},
        {"first", required_argument, NULL, 'f'},
        {"worker", required_argument, NULL, 'w'},
        {"predict", required_argument, NULL, 'p'},
        {"labels", required_argument, NULL, 'l'},
        {"out", required_argument, NULL, 'o'},
        {"top", required_argument, NULL, 't'},
        {"users", required_argument, NULL, 'u'},
        {"history", required_argument, NULL, 'H'},
        {"notes", required_argument, NULL, 'n'},
        {"with-seen", no_argument, NULL, 'W'},
        {"device", required_argument, NULL, 'd'},
        {"precision", required_argument, NULL, 'P'},
        {"score-keys", required_argument, NULL, 'K'},
        {"observe", required_argument, NULL, 'O'},
        {"keys", required_argument, NULL, 'k'},
        {"sample-every", required_argument, NULL, 'e'},
        {"score-samples", required_argument, NULL, 'S'},
        {"help", no_argument, NULL, 'h'},
        {"resume", no_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    *out = (struct flags){0};
    const char **const value_of[] = {
        ['f'] = &out->first,        ['c'] = &out->cluster, ['w'] = &out->worker,     ['p'] = &out->predict,
        ['l'] = &out->labels,       ['o'] = &out->out,     ['t'] = &out->top,        ['u'] = &out->users,
        ['P'] = &out->precision,    ['d'] = &out->device,  ['K'] = &out->score_keys, ['O'] = &out->observe,
        ['k'] = &out->keys,         ['H'] = &out->history, ['n'] = &out->notes,      ['e'] = &out->every,
        ['S'] = &out->score_samples};
    bool *const switch_of[] = {['W'] = &out->with_seen, ['r'] = &out->resume, ['h'] = &out->help};
    opterr = 0;
    for (int c; !out->help && (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c == ':')
            return dp_fail(err, DP_ARGUMENT, "%s needs a value, see --help", argv[optind - 1]);
        if (c == '?')
            return dp_fail(err, DP_ARGUMENT, "unknown flag %s, see --help", argv[optind - 1]);
        if (optarg)
            *value_of[c] = optarg;
        else
            *switch_of[c] = true;
    }
    return out->help ? DP_OK : check_flags(argc, argv, out, err);
}

/* Flags override the cluster file, since machines that share it may have different devices. */
static enum dp_status set_device(struct dp_cluster *cluster, const struct flags *flags, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (!flags->worker)
        cluster->training.threads = 1;         /* they train; scores may be computed on any device */
    if (flags->observe || flags->score_keys) { /* they compute nothing that counts */
        (void)snprintf(cluster->training.device, sizeof cluster->training.device, "cpu");
        cluster->training.precision = DP_CLUSTER_F32;
    } else if (flags->device)
        st = dp_cluster_set(cluster, "training.device", flags->device, "--device", err);
    if (st == DP_OK && flags->precision && !flags->observe && !flags->score_keys)
        st = dp_cluster_set(cluster, "training.precision", flags->precision, "--precision", err);
    return st == DP_OK ? dp_cluster_check(cluster, err) : st;
}

/* One process's part of a training ends early, and it may begin anew, as one that was killed and started again with
 * --resume would. */
enum again {
    AGAIN_NOT,
    AGAIN_LEFT, /* the others let it leave */
    AGAIN_RESTORED, /* the servers' rows are of another history: what was under way is refused, and nothing of it counts */
};

/* What the round before this one heard. */
struct round {
    enum again again;
    uint64_t generation, history; /* of the servers */
    struct dp_error why;
};

static enum again comes_again(const struct dp_job *job, bool let_leave, enum dp_status st)
{
    if (dp_job_stopped(job))
        return AGAIN_NOT;
    return let_leave ? AGAIN_LEFT : st == DP_GENERATION ? AGAIN_RESTORED : AGAIN_NOT;
}

/* Servers that are of no other history after all were lost, swapped or mixed up: a person must see to that. */
static enum dp_status check_history(const struct round *before, const struct round *now, struct dp_error *err)
{
    if (before->again != AGAIN_RESTORED || now->generation != before->generation ||
        now->history != before->history)
        return DP_OK;
    *err = before->why;
    return before->why.status;
}

/* A further run on trained weights reads its files as those were read: with `dir` the schema is known. */
static enum dp_status read_by_schema(struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_cluster_training *training = &cluster->training;
    if (!cluster->dir[0] || training->run < 2)
        return DP_OK;
    /* Of a run that the file numbers, the epochs before it are unknown; the schema shows that there were. */
    const bool is_there = access(cluster->data.columns, F_OK) == 0;
    cluster->data.by_columns |= is_there || training->first_epoch > 0;
    return is_there || training->first_epoch == 0
               ? DP_OK
               : dp_fail(err, DP_NOT_FOUND,
                         "run %" PRIu32 " trains on from the weights of %" PRIu32
                         " epochs, and '%s' (dir), which says how their data was read, is not on this "
                         "machine: copy it from worker 0's, or put dir where all workers reach it",
                         training->run, training->first_epoch, cluster->data.columns);
}

/* As `downpour run` does: a run's report and step logs are in a directory of its own, and stay. */
static enum dp_status use_dir_of_run(struct dp_cluster *cluster, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_cluster_dir_of_run(cluster, path, err);
    return st == DP_OK && path[0] ? dp_directory_make(path, err) : st;
}

static enum dp_status train_once(const struct dp_cluster *cluster, uint32_t worker, const struct flags *flags,
                                 bool resumes, struct round *round, struct dp_error *err)
{
    char name[32];
    /* A run that the first server chose is not complete: an earlier process may have begun it. */
    const struct dp_train_options options = {.cluster_file = flags->cluster,
                                             .resumes = resumes || cluster->training.run == 0};
    bool let_leave = false;
    struct dp_job job;
    struct dp_cluster numbered = *cluster;
    struct round before = *round;
    (void)snprintf(name, sizeof name, "worker %" PRIu32, worker);
    *round = (struct round){0};
    enum dp_status st = dp_job_open(cluster, worker, name, dp_stop_signal(), &job, err);
    if (st != DP_OK)
        return st;
    dp_client_generation(job.client, &round->generation, &round->history);
    st = dp_run_number_find(&job, resumes, &numbered.training, err);
    if (st == DP_OK)
        st = read_by_schema(&numbered, err);
    if (st == DP_OK)
        st = use_dir_of_run(&numbered, err);
    job.cluster = &numbered;
    if (st != DP_OK) {
        (void)dp_run_failure_settle(&job, st, true, err);
        dp_job_close(&job);
        return st;
    }
    st = check_history(&before, round, err);
    if (st == DP_OK)
        st = dp_run_failure_check(&job, err);
    bool is_known = st != DP_OK;
    if (st == DP_OK) {
        /* Until here a signal ends the process at once: nothing was pushed. */
        dp_stop_signal_catch();
        st = dp_train(&job, &options, &let_leave, err);
    } else {
        struct dp_progress progress; /* others may wait for this worker */
        dp_progress_init(&progress, &job, 0);
        dp_progress_end(&progress, &job, st);
    }
    round->again = is_known ? AGAIN_NOT : comes_again(&job, let_leave, st);
    round->why = *err;
    dp_job_close(&job);
    return st;
}

static void tell_again(const struct dp_cluster *cluster, const struct round *round)
{
    if (round->again == AGAIN_LEFT)
        dp_log(DP_LOG_WARN,
               "was silent for longer than %" PRIu32
               " s (--worker-timeout, training.worker_timeout), and the others went on without it: it joins "
               "them again",
               cluster->training.worker_timeout);
    else
        dp_log(DP_LOG_WARN,
               "the servers are of another generation than %" PRIu64
               ", at which this worker trained: it drops its unanswered requests, asks for its position and "
               "continues from there (%s)",
               round->generation, round->why.text);
}

static enum dp_status train(const struct dp_cluster *cluster, const struct flags *flags, struct dp_error *err)
{
    struct round round = {0};
    uint64_t worker;
    enum dp_status st =
        dp_parse_u64(flags->worker, 0, cluster->training.workers - 1, "--worker", &worker, err);
    if (st != DP_OK)
        return st;
    if (!cluster->data.train[0])
        return dp_fail(err, DP_ARGUMENT, "the cluster file names no data.train to train on");
    if (cluster->data.by_columns && !cluster->data.columns[0])
        return dp_fail(
            err, DP_ARGUMENT,
            "data.by_columns is true, but data.columns names no file that says how the data of the "
            "weights was read: name the one of the earlier run");
    char name[32];
    (void)snprintf(name, sizeof name, "worker %" PRIu64, worker);
    dp_log_start(name, DP_LOG_INFO);
    st = cluster->dir[0] ? dp_directory_make(cluster->dir, err) : DP_OK;
    if (st != DP_OK)
        return dp_wrap(err, st, "dir");
    st = train_once(cluster, (uint32_t)worker, flags, flags->resume, &round, err);
    /* Each round is of one more silence, or of one more restore. */
    while (round.again != AGAIN_NOT) {
        tell_again(cluster, &round);
        *err = (struct dp_error){0};
        st = train_once(cluster, (uint32_t)worker, flags, true, &round, err);
    }
    return st;
}

/* The training file gives again how it was read, if it is the one that the weights were trained on. */
static enum dp_status score(struct dp_job *job, const struct flags *flags, struct dp_error *err)
{
    struct dp_cluster_training settled = job->cluster->training;
    struct dp_sets sets = {0};
    if (!dp_predict_needs_training_data(job))
        return dp_predict(job, flags->predict, flags->labels, NULL, flags->out, err);
    enum dp_status st = dp_sets_train(job, &settled, &sets, err);
    if (st == DP_OK)
        st = dp_training_plan_check_data(job, sets.train, err);
    st = st == DP_OK
             ? dp_predict(job, flags->predict, flags->labels, dp_dataset_schema(sets.train), flags->out, err)
             : dp_wrap(err, st,
                       "the run kept no columns (data.columns), so its training file (data.train) is needed "
                       "as it was");
    dp_sets_close(&sets);
    return st;
}

static enum dp_status predict(const struct dp_cluster *cluster, const struct flags *flags,
                              struct dp_error *err)
{
    uint64_t count = 0;
    enum dp_status st = flags->top ? dp_parse_u64(flags->top, 1, 100000, "--top", &count, err) : DP_OK;
    if (st != DP_OK)
        return st;
    const struct dp_top_options top = {.count = (uint32_t)count,
                                       .users = flags->users,
                                       .history = flags->history,
                                       .notes = flags->notes,
                                       .with_seen = flags->with_seen,
                                       .out = flags->out};
    struct dp_job job;
    st = dp_job_open(cluster, 0, "predict", dp_stop_signal(), &job, err);
    if (st != DP_OK)
        return st;
    struct dp_cluster numbered = *cluster;
    st = dp_run_number_last(&job, &numbered.training, err);
    job.cluster = &numbered;
    if (st == DP_OK)
        st = dp_job_tables(&job, true, err);
    dp_stop_signal_catch();
    if (st == DP_OK)
        st = dp_training_plan_check_scores(&job, err);
    if (st == DP_OK)
        st = flags->top ? dp_top(&job, &top, err) : score(&job, flags, err);
    dp_job_close(&job);
    return st;
}

static enum dp_status observe(const struct dp_cluster *cluster, const struct flags *flags,
                              struct dp_error *err)
{
    const char *name = flags->observe ? "observer" : flags->score_keys ? "keys" : "scoring";
    dp_log_start(name, DP_LOG_INFO);
    dp_stop_signal_catch();
    if (flags->score_keys)
        return dp_scoring_keys(cluster, dp_stop_signal(), flags->score_keys, err);
    if (flags->score_samples) {
        const struct dp_scoring_options options = {
            .samples = flags->score_samples, .keys = flags->keys, .out = flags->out};
        return dp_scoring_samples(cluster, dp_stop_signal(), &options, err);
    }
    uint64_t every_ms;
    enum dp_status st = dp_parse_u64(flags->every, 1, UINT32_MAX, "--sample-every", &every_ms, err);
    const struct dp_observe_options options = {
        .samples = flags->observe, .keys = flags->keys, .every_ms = (uint32_t)every_ms};
    return st == DP_OK ? dp_observe(cluster, dp_stop_signal(), &options, err) : st;
}

/* Of one with little data: a larger one says what it has no memory for. Connections: common/net/transport.c. */
static enum dp_status check_limits(struct dp_error *err)
{
    const struct dp_limits_need need = {.threads = 5, .memory_bytes = (uint64_t)192 << 20};
    return dp_limits_check("a worker", &need, err);
}

/* `downpour run` writes the model in full. A cluster file's must be the same for all days and processes. */
static void tell_shape(const struct dp_cluster *cluster, enum dp_status st)
{
    char full[sizeof cluster->model];
    struct dp_error unheard = {0};
    if ((st == DP_ARGUMENT || st == DP_DATA) && !cluster->data.by_columns &&
        dp_shape_measure(cluster, full, sizeof full, &unheard) == DP_OK && strcmp(full, cluster->model) != 0)
        dp_log(DP_LOG_WARN,
               "a cluster file needs the model in full: for the columns of '%s' that is model = \"%s\"",
               cluster->data.train, full);
}

int dp_worker_main(int argc, char **argv)
{
    struct dp_error err = {0};
    struct flags flags;
    struct dp_cluster *cluster = NULL;
    (void)dp_limits_begin();
    dp_log_start("worker", DP_LOG_INFO);
    /* Frames of a few hundred KB come and go with each step: kept in the heap, not mapped, zeroed and
     * unmapped each time. */
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    enum dp_status st = parse_flags(argc, argv, &flags, &err);
    if (st == DP_OK && flags.help)
        return fputs(usage, stdout) < 0 ? 2 : 0;
    if (st == DP_OK)
        st = dp_cluster_read(flags.cluster, &cluster, &err);
    if (st == DP_OK && flags.first)
        st = dp_cluster_set_first(cluster, flags.first, "--first", &err);
    if (st == DP_OK)
        st = dp_defaults_of_file(flags.cluster, cluster, &err);
    if (st == DP_OK)
        st = check_limits(&err);
    if (st == DP_OK)
        st = set_device(cluster, &flags, &err);
    if (st == DP_OK)
        st = flags.worker                 ? train(cluster, &flags, &err)
             : flags.predict || flags.top ? predict(cluster, &flags, &err)
                                          : observe(cluster, &flags, &err);
    if (cluster && flags.worker)
        tell_shape(cluster, st);
    dp_cluster_free(&cluster);
    if (st == DP_OK)
        return 0;
    dp_log(DP_LOG_ERROR, "%s", err.text[0] ? err.text : dp_status_text((int)st));
    return dp_status_exit(st);
}
