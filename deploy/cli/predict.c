/* predict: the scores of a file by a model that a run trained.
 *     directory's lock, shared -> its cluster on free ports -> servers that only read -> one worker -> scores ->
 *     stopped -> what goes to a pipe or a device is copied there
 * Promise   Nothing in the run's directory is written: what is needed beside it lies in a directory of this command's own, which
 *           is removed in the end, unless a process failed: then its logs stay, and are named. */
#include "deploy/cli/commands.h"
#include "deploy/cli/copy.h"
#include "deploy/cli/folder.h"
#include "deploy/cli/local.h"
#include "deploy/cli/options.h"
#include "deploy/cli/ports.h"
#include "deploy/cli/scratch.h"
#include "deploy/cli/servers.h"

#include "common/env/whole.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define WORKER_STOP_MS 10000u
#define SERVER_STOP_MS 120000u
#define LOOK_MS        500u

static const struct dp_option options[] = {
    {"--from", "DIR", "the directory of a run (its --dir) (needed)", NULL, NULL},
    {"--data", "FILE", "examples in the form of the training data (needed)", NULL, NULL},
    {"--data-labels", "FILE", "labels of idx images; default: by the images' name", NULL, NULL},
    {"--out", "FILE", "a line of scores for each example, there when it is whole; default: standard output",
     NULL, NULL},
    {"--model", "MODEL", "refuse unless this is the model that was trained", NULL, NULL},
    {"--device", "NAME",
     "what computes: cpu, cuda:N (that GPU; cuda:each: the first) or auto (the first GPU where there is "
     "one); default: that of the training",
     "training.device", NULL},
    {"--precision", "KIND", "of a GPU's matrix products: f32, tf32 or bf16; default: that of the training",
     "training.precision", NULL},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "predict",
    .usage = "--from DIR --data FILE [--out FILE]",
    .summary = "Writes the scores of the examples in a file, by the model that a run trained: the "
               "probability of 1, the\n"
               "probabilities of all classes, or the value; a line for each example.",
    .options = options,
    .count = OPTIONS,
};

struct predict {
    const char *values[OPTIONS];
    struct dp_cluster *cluster;
    struct dp_folder folder,
        scratch; /* of the run; for cluster file, logs and scores (its lock is the run's) */
    struct dp_local *local;
    struct dp_client *client;
    char data[DP_PATH_MAX + 1], labels[DP_PATH_MAX + 1], out[DP_PATH_MAX + 1];
    bool copy;              /* out is a file of ours, whose bytes go to standard output or `direct` */
    struct dp_whole direct; /* --out that is no file: a pipe, a device */
};

static const char *flag(const struct predict *p, const char *name)
{
    return dp_options_value(&command, p->values, name);
}

static enum dp_status settle_input(const char *name, const char *path, char *out, struct dp_error *err)
{
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
        return dp_fail(err, DP_ARGUMENT, "--out: '%s' is the file of the %s itself: name another", out,
                       dp_path_same(out, p->data) ? "data" : "labels");
    if (out && dp_path_same(out, p->folder.conf))
        return dp_fail(err, DP_ARGUMENT, "--out: '%s' is the run's cluster file: name another", out);
    if (out)
        st = dp_whole_open(out, &p->direct, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "--out");
    p->copy = !out || p->direct.direct;
    if (!p->copy)
        dp_whole_drop(&p->direct);
    return p->copy ? dp_folder_path(&p->scratch, p->out, err, "scores") : dp_path_absolute(out, p->out, err);
}

static enum dp_status settle_scratch(struct predict *p, struct dp_error *err)
{
    enum dp_status st = dp_scratch_make(p->scratch.path, err);
    p->scratch.lock = p->folder.lock;
    return st == DP_OK ? dp_folder_path(&p->scratch, p->scratch.conf, err, "cluster.conf") : st;
}

/* Runs of older builds kept no columns; only CSV files have a label's name. */
static void tell_outside(const struct predict *p)
{
    const struct dp_cluster_data *data = &p->cluster->data;
    if (data->label[0] && !data->columns[0])
        fprintf(stderr,
                "downpour: '%s' is of an older build, which kept nothing of its CSV file's columns: they are "
                "read from '%s', and other columns there would make other scores; a further 'downpour run' "
                "keeps them\n",
                p->folder.path, data->train);
}

static enum dp_status settle(struct predict *p, struct dp_error *err)
{
    if (!flag(p, "--from") || !flag(p, "--data"))
        return dp_fail(err, DP_ARGUMENT, "%s is needed; 'downpour predict --help' lists all flags",
                       flag(p, "--from") ? "--data FILE" : "--from DIR");
    enum dp_status st = settle_input("--data", flag(p, "--data"), p->data, err);
    if (st == DP_OK && flag(p, "--data-labels"))
        st = settle_input("--data-labels", flag(p, "--data-labels"), p->labels, err);
    if (st == DP_OK)
        st = dp_folder_open_to_read(flag(p, "--from"), &p->folder, err);
    if (st == DP_OK)
        st = dp_folder_cluster(&p->folder, &p->cluster, err);
    if (st == DP_OK && flag(p, "--model") && strcmp(flag(p, "--model"), p->cluster->model) != 0)
        st = dp_fail(err, DP_EXISTS, "'%s' holds the model '%s', not '%s': leave --model out", p->folder.path,
                     p->cluster->model, flag(p, "--model"));
    if (st == DP_OK)
        tell_outside(p);
    if (st == DP_OK)
        st = dp_options_apply(&command, p->values, p->cluster, err);
    const struct dp_options_given given = {&command, p->values, false};
    const struct dp_setting_names names = dp_options_names(&given);
    if (st == DP_OK)
        st = dp_cluster_check_settings(p->cluster, &names, err);
    if (st == DP_OK)
        st = dp_cluster_check(p->cluster, err);
    if (st == DP_OK)
        st = settle_scratch(p, err);
    if (st == DP_OK)
        st = settle_output(p, err);
    if (st == DP_OK)
        st = dp_ports_choose(p->cluster, 0, err);
    if (st == DP_OK)
        st = dp_cluster_write(p->cluster, p->scratch.conf, err);
    return st;
}

static enum dp_status start_worker(struct predict *p, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 1];
    enum dp_status st = dp_program_path("downpour-worker", program, err);
    if (st == DP_OK)
        st = dp_folder_path(&p->scratch, log, err, "log/worker.log");
    if (st != DP_OK)
        return st;
    const char *argv[] = {program, "--cluster", p->scratch.conf, "--predict", p->data, "--out", p->out, NULL,
                          NULL,    NULL};
    if (p->labels[0]) {
        argv[7] = "--labels";
        argv[8] = p->labels;
    }
    return dp_local_start(p->local, DP_LOCAL_WORKER, "worker", argv, log, -1, err);
}

static enum dp_status score(struct predict *p, struct dp_error *err)
{
    enum dp_status st =
        dp_servers_start_read_only(p->local, &p->scratch, p->cluster, p->scratch.conf, "server", err);
    if (st == DP_OK)
        st = dp_servers_await(p->local, p->cluster, p->cluster->training.timeout_ms, &p->client, err);
    if (st == DP_OK)
        st = start_worker(p, err);
    while (st == DP_OK && dp_local_running(p->local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(p->local, LOOK_MS);
        dp_client_progress(p->client);
        if (dp_local_signal(p->local) || dp_local_failed(p->local))
            return dp_fail(err, DP_STOPPING, "stopped before the end");
    }
    return st;
}

static enum dp_status copy_out(struct predict *p, struct dp_error *err)
{
    const char *name = flag(p, "--out") ? flag(p, "--out") : "standard output";
    enum dp_status st = dp_copy_file(p->out, true, p->direct.path ? p->direct.stream : stdout, name, err);
    return st == DP_OK && p->direct.path ? dp_whole_commit(&p->direct, err) : st;
}

static int finish(struct predict *p, enum dp_status st, struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    bool failed = p->local && dp_local_failed(p->local);
    if (p->local && !failed && dp_local_signal(p->local)) {
        code = 128 + dp_local_signal(p->local);
        fprintf(stderr, "downpour: stopping, as signal %d asks\n", dp_local_signal(p->local));
    } else if (failed) {
        dp_local_explain(p->local, stderr);
        code = 2;
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
    }
    if (p->local) {
        (void)dp_local_stop(p->local, DP_LOCAL_WORKER, WORKER_STOP_MS);
        dp_client_close(&p->client);
        if (dp_local_stop(p->local, DP_LOCAL_SERVER, SERVER_STOP_MS) != DP_OK && code == 0)
            code = 2;
    }
    bool kept = code == 2 && p->local; /* some process knows why */
    if (kept && !failed)
        fprintf(stderr, "downpour: the logs are in %s/log\n", p->scratch.path);
    if (code == 0 && p->copy && copy_out(p, err) != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    if (p->copy && p->out[0])
        (void)unlink(p->out);
    dp_whole_drop(&p->direct);
    dp_local_close(&p->local);
    if (!kept)
        dp_scratch_remove(p->scratch.path);
    dp_folder_close(&p->folder);
    dp_cluster_free(&p->cluster);
    return code;
}

int dp_command_predict(int argc, char *const *argv)
{
    struct predict predict = {.folder.lock = -1, .scratch.lock = -1};
    struct dp_error err = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, predict.values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = settle(&predict, &err);
    if (st == DP_OK)
        st = dp_local_open(&predict.local, &err);
    if (st == DP_OK)
        st = score(&predict, &err);
    return finish(&predict, st, &err);
}
