#include "deploy/run/observed.h"

#include "common/base/deadline.h"
#include "common/base/parse.h"
#include "common/env/installed.h"
#include "common/env/json_file.h"
#include "deploy/cli/path.h"
#include "deploy/run/run_flags.h"
#include "deploy/run/servers.h"
#include "deploy/run/spool.h"
#include "deploy/supervise/log_tail.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EVERY_MAX_NS (UINT64_C(3600) * 1000000000)
#define LOOK_MS      500u
#define LAST_MS      60000u /* for the last sample */
#define READY_MS     10000u /* until it is connected */
#define READY_LOOK   20u
#define SAMPLES      "samples.json"

/* ---- flags */

static enum dp_status settle_file(const char *const *values, const char *flag, char out[DP_PATH_MAX + 1],
                                  struct dp_error *err)
{
    const char *path = dp_options_value(&dp_run_command, values, flag);
    if (!path)
        return DP_OK;
    if (dp_spool_is_stream(path))
        return dp_fail(err, DP_ARGUMENT,
                       "%s: '%.300s' is no file, and it is read three times: write it to one", flag, path);
    if (access(path, R_OK) != 0)
        return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", flag, path, strerror(errno));
    return dp_path_absolute(path, out, err);
}

static enum dp_status check_set(const struct dp_observed *observed, const struct dp_cluster *cluster,
                                struct dp_error *err)
{
    const struct dp_cluster_data *data = &cluster->data;
    bool has_validation = data->validation[0] || data->validation_share > 0;
    bool has = data->test[0] || data->holdout[0] || has_validation;
    if (observed->validation && !has_validation)
        return dp_fail(err, DP_ARGUMENT,
                       "--score validation: there is no validation set: give --validation FILE or "
                       "--validation share=X");
    if (observed->score[0] && data->holdout[0])
        return dp_fail(err, DP_ARGUMENT,
                       "--score and --holdout: the samples are scored on what is held out; omit --score");
    if (!observed->score[0] && (observed->labels[0] || observed->negatives[0]))
        return dp_fail(err, DP_ARGUMENT, "--score labels and --score negatives belong to --score FILE");
    return observed->score[0] || observed->validation || has
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT,
                         "--sample-every: there is nothing to score the samples on: give --score FILE");
}

enum dp_status dp_observed_plan(const char *const *values, struct dp_cluster *cluster, bool resumes,
                                struct dp_observed *out, struct dp_error *err)
{
    static const char *const parts[] = {"--score", "--score labels", "--score negatives"};
    const char *every = dp_options_value(&dp_run_command, values, "--sample-every");
    uint64_t every_ns = 0;
    *out = (struct dp_observed){0};
    for (size_t i = 0; !every && i < sizeof parts / sizeof parts[0]; i++)
        if (dp_options_value(&dp_run_command, values, parts[i]))
            return dp_fail(err, DP_ARGUMENT, "%s needs --sample-every TIME", parts[i]);
    if (!every)
        return DP_OK;
    enum dp_status st = dp_parse_time(every, EVERY_MAX_NS, "--sample-every", &every_ns, err);
    out->every_ms = (uint32_t)(every_ns / 1000000);
    if (st == DP_OK && out->every_ms == 0)
        st = dp_fail(err, DP_ARGUMENT, "--sample-every is '%.40s', but must be 1ms or more", every);
    const char *score = dp_options_value(&dp_run_command, values, parts[0]);
    out->validation = score && strcmp(score, "validation") == 0;
    if (st == DP_OK && !out->validation)
        st = settle_file(values, parts[0], out->score, err);
    if (st == DP_OK)
        st = settle_file(values, parts[1], out->labels, err);
    if (st == DP_OK)
        st = settle_file(values, parts[2], out->negatives, err);
    if (st == DP_OK)
        st = check_set(out, cluster, err);
    if (st == DP_OK && !resumes && cluster->data.holdout[0])
        cluster->data.holdout_evaluated = false;
    return st;
}

/* ---- what it leaves */

struct observed_paths {
    char conf[DP_PATH_MAX + 1], keys[DP_PATH_MAX + 1], samples[DP_PATH_MAX + 1], json[DP_PATH_MAX + 1];
};

static enum dp_status paths_of(const struct dp_folder *folder, struct observed_paths *out,
                               struct dp_error *err)
{
    enum dp_status st = dp_folder_path(folder, out->conf, err, "score.conf");
    if (st == DP_OK)
        st = dp_folder_path(folder, out->keys, err, "score.keys");
    if (st == DP_OK)
        st = dp_folder_path(folder, out->samples, err, "samples");
    return st == DP_OK ? dp_folder_path(folder, out->json, err, SAMPLES) : st;
}

static void leave_error(const struct dp_folder *folder, const char *why)
{
    struct observed_paths paths;
    struct dp_error unheard = {0};
    json_t *root = json_pack("{s:s}", "error", why);
    if (paths_of(folder, &paths, &unheard) == DP_OK)
        unheard.status = dp_json_file_write(paths.json, &root, 10, &unheard);
    dp_folder_show(folder, SAMPLES);
    json_decref(root);
}

/* Once: what follows does not happen. */
static void fail(struct dp_observed *observed, const struct dp_folder *folder, const char *what,
                 const char *why)
{
    observed->failed = true;
    fprintf(stderr, "downpour: %s: %s\n", what, why);
    leave_error(folder, why);
}

/* ---- processes */

/* argv: behind the program; NULL ends it. */
static enum dp_status start(struct dp_local *local, const struct dp_folder *folder, const char *name,
                            const char *const *argv, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 1];
    const char *all[16] = {program};
    for (size_t i = 0; argv[i]; i++)
        all[i + 1] = argv[i];
    enum dp_status st = dp_installed_program("downpour-worker", program, sizeof program, err);
    if (st == DP_OK)
        st = dp_folder_path(folder, log, err, "log/%s.log", name);
    return st == DP_OK ? dp_local_start(local, DP_LOCAL_OBSERVER, name, all, log, -1, err) : st;
}

/* Where this run's part of a log begins. */
static long log_end(const char *log)
{
    struct stat is;
    return stat(log, &is) == 0 ? (long)is.st_size : 0;
}

/* Runs it to its end; it has succeeded if it has left `file`. */
static enum dp_status run_to_end(struct dp_local *local, const struct dp_folder *folder, const char *name,
                                 const char *const *argv, const char *file, struct dp_error *err)
{
    char log[DP_PATH_MAX + 1], words[160];
    enum dp_status st = dp_folder_path(folder, log, err, "log/%s.log", name);
    long from = st == DP_OK ? log_end(log) : 0;
    (void)unlink(file);
    if (st == DP_OK)
        st = start(local, folder, name, argv, err);
    while (st == DP_OK && dp_local_running(local, DP_LOCAL_OBSERVER) > 0 && !dp_local_signal(local))
        dp_local_wait(local, LOOK_MS);
    if (st == DP_OK && dp_local_signal(local)) {
        (void)dp_local_stop(local, DP_LOCAL_OBSERVER, LOOK_MS);
        return dp_fail(err, DP_STOPPING, "stopped by a signal");
    }
    if (st != DP_OK || access(file, F_OK) == 0)
        return st;
    if (!dp_end_of_log(log, from, name, words, sizeof words))
        return dp_fail(err, DP_INTERNAL, "the process ended without a word; its log: %s", log);
    return dp_fail(err, DP_INTERNAL, "%s", words);
}

/* The run's cluster file, with what is scored as its test set. */
static enum dp_status write_conf(const struct dp_observed *observed, const struct dp_cluster *cluster,
                                 const char *path, struct dp_error *err)
{
    struct dp_cluster *scored = malloc(sizeof *scored);
    if (!scored)
        return dp_fail(err, DP_NOMEM, "no memory for a cluster file");
    *scored = *cluster; /* its servers are lent */
    struct dp_cluster_data *data = &scored->data;
    data->holdout_evaluated = !observed->validation;
    if (observed->validation)
        data->test[0] = data->test_labels[0] = data->test_negatives[0] = '\0';
    if (observed->score[0]) {
        memcpy(data->test, observed->score, sizeof data->test);
        memcpy(data->test_labels, observed->labels, sizeof data->test_labels);
        memcpy(data->test_negatives, observed->negatives, sizeof data->test_negatives);
    }
    enum dp_status st = dp_cluster_write(scored, path, err);
    free(scored);
    return st;
}

void dp_observed_prepare(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder,
                         const struct dp_cluster *cluster)
{
    struct observed_paths paths;
    struct dp_error err = {0};
    enum dp_status st = paths_of(folder, &paths, &err);
    if (st == DP_OK) { /* of a run that is resumed */
        (void)unlink(paths.json);
        (void)unlink(paths.samples);
    }
    if (observed->every_ms == 0)
        return;
    if (st == DP_OK) {
        st = write_conf(observed, cluster, paths.conf, &err);
    }
    const char *const argv[] = {"--cluster", paths.conf, "--score-keys", paths.keys, NULL};
    if (st == DP_OK)
        st = run_to_end(local, folder, "keys", argv, paths.keys, &err);
    if (st != DP_OK)
        fail(observed, folder, "the weights are not sampled", err.text);
}

void dp_observed_start(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder)
{
    struct observed_paths paths;
    struct dp_error err = {0};
    char every[16], log[DP_PATH_MAX + 1];
    if (observed->every_ms == 0 || observed->failed)
        return;
    (void)snprintf(every, sizeof every, "%" PRIu32, observed->every_ms);
    enum dp_status st = paths_of(folder, &paths, &err);
    const char *const argv[] = {"--cluster", paths.conf,       "--observe", paths.samples, "--keys",
                                paths.keys,  "--sample-every", every,       NULL};
    if (st == DP_OK)
        st = dp_folder_path(folder, log, &err, "log/observer.log");
    observed->log_from = st == DP_OK ? log_end(log) : 0;
    if (st == DP_OK)
        st = start(local, folder, "observer", argv, &err);
    observed->started = st == DP_OK;
    if (st != DP_OK)
        fail(observed, folder, "the weights are not sampled", err.text);
    /* So that it sees the first push; the run goes on without that, too. */
    const uint64_t until_ms = dp_now_ms() + READY_MS;
    while (observed->started && access(paths.samples, F_OK) != 0 && dp_now_ms() < until_ms &&
           dp_local_running(local, DP_LOCAL_OBSERVER) > 0 && !dp_local_signal(local))
        dp_local_wait(local, READY_LOOK);
}

void dp_observed_stop(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder,
                      bool answered)
{
    char log[DP_PATH_MAX + 1], words[160];
    struct dp_error err = {0};
    if (!observed->started)
        return;
    bool there = dp_local_running(local, DP_LOCAL_OBSERVER) > 0;
    enum dp_status st = dp_local_stop(local, DP_LOCAL_OBSERVER, answered ? LAST_MS : 0);
    /* Without the last sample, what comes last is not what the run has reached. */
    bool said = dp_folder_path(folder, log, &err, "log/observer.log") == DP_OK &&
                dp_end_of_log(log, observed->log_from, "observer", words, sizeof words);
    if (answered && (said || !there || st != DP_OK))
        fail(observed, folder, "the weights were not sampled to the end",
             said ? words : "the observer was killed");
}

void dp_observed_score(struct dp_observed *observed, struct dp_local *local, const struct dp_folder *folder)
{
    struct observed_paths paths;
    struct dp_error err = {0};
    char log[DP_PATH_MAX + 1], words[160];
    if (!observed->started || observed->failed)
        return;
    enum dp_status st = paths_of(folder, &paths, &err);
    if (st == DP_OK)
        st = dp_folder_path(folder, log, &err, "log/observer.log");
    const char *const argv[] = {"--cluster", paths.conf, "--score-samples", paths.samples, "--keys",
                                paths.keys,  "--out",    paths.json,        NULL};
    if (st == DP_OK && access(paths.samples, F_OK) != 0)
        st = dp_fail(&err, DP_INTERNAL, "%s",
                     dp_end_of_log(log, observed->log_from, "observer", words, sizeof words)
                         ? words
                         : "no sample was taken");
    if (st == DP_OK)
        st = run_to_end(local, folder, "scoring", argv, paths.json, &err);
    observed->scored = st == DP_OK;
    if (st != DP_OK) {
        fail(observed, folder, "the samples are not scored", err.text);
        return;
    }
    dp_folder_show(folder, SAMPLES);
    (void)unlink(paths.samples);
    (void)unlink(paths.keys);
}
