#include "deploy/weights/served.h"

#include "deploy/cli/scratch.h"
#include "deploy/run/ports.h"
#include "deploy/run/restored.h"
#include "deploy/run/run_best.h"
#include "deploy/run/run_state.h"
#include "deploy/run/servers.h"

#include "common/client/checkpoint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORKER_STOP_MS     10000u
#define SERVER_STOP_MS     120000u
#define LOOK_MS            500u
#define ANSWER_MS          2000u /* of servers that somebody else has started */
#define CHECKPOINT_WAIT_MS 10000u

static void tell_poor(const struct dp_served *served, const char *report)
{
    const struct dp_run_report of = dp_run_report_read(report, served->cluster->training.run);
    char quoted[DP_PATH_QUOTED];
    if (!of.poor)
        return;
    fprintf(stderr,
            "downpour: run %" PRIu32 " in '%s' has diverged in epoch %" PRIu32
            " (%s loss %.5g at the end): its weights are of little use.",
            served->cluster->training.run, served->folder.path, of.poor, of.set, of.loss);
    if (of.rate > 0)
        fprintf(stderr, " To train again: downpour run --dir %s --fresh --rate %.3g",
                dp_path_quote(served->folder.path, quoted), of.rate);
    fputc('\n', stderr);
}

/* Of weights of which more was to come, or that are of no use. */
static void tell_state(const struct dp_served *served)
{
    const struct dp_run_state state = dp_run_state_read(&served->folder, served->cluster->training.run);
    char text[DP_RUN_PLACE_BYTES], resume[4 * DP_PATH_MAX + 64], report[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    uint32_t run = served->cluster->training.run;
    if (dp_folder_path(&served->folder, report, &unheard, "report.json") != DP_OK)
        report[0] = '\0';
    if (state.known && state.finished && !state.restored)
        tell_poor(served, report);
    if (!state.known || state.finished)
        return;
    uint32_t diverged = dp_run_diverged(&state, report, run);
    if (diverged) {
        fprintf(stderr,
                "downpour: run %" PRIu32 " in '%s' has diverged in epoch %" PRIu32
                ": these are the weights that did%s\n",
                run, served->folder.path, diverged,
                dp_run_best_find(&served->folder, served->cluster) > 0
                    ? "; those of its best epoch are in the checkpoint " DP_FOLDER_BEST " in it"
                    : "");
        return;
    }
    const struct dp_run_place place = dp_run_place(&served->folder, served->cluster);
    dp_run_place_text(&place, served->cluster, text);
    dp_run_resume_command(&served->folder, resume, sizeof resume);
    fprintf(stderr,
            "downpour: run %" PRIu32
            " in '%s' is not finished: %s; these are its weights so far. To finish it: %s\n",
            run, served->folder.path, text, resume);
}

/* The first server, which makes checkpoints, lacks those that are on worker 0's machine only. */
static void take_side_files(struct dp_served *served)
{
    struct dp_cluster_data *data = &served->cluster->data;
    char *const to[DP_SIDE_FILES] = {data->names, data->columns, data->interactions};
    for (int i = 0; i < DP_SIDE_FILES; i++) {
        const char *from = dp_cluster_side(&served->of->data, i);
        if (!to[i][0] && from[0] && access(from, R_OK) == 0)
            memcpy(to[i], from, strlen(from) + 1);
    }
}

enum dp_status dp_served_open(const char *path, bool named, struct dp_served *out, struct dp_error *err)
{
    bool is_checkpoint = dp_restored_is_checkpoint(path);
    enum dp_status st =
        is_checkpoint ? dp_restored_scratch(path, named && !out->of, out->restored, err) : DP_OK;
    if (st == DP_OK)
        st = dp_folder_open_to_read(is_checkpoint ? out->restored : path, &out->folder, err);
    if (st == DP_OK)
        st = dp_folder_cluster(&out->folder, &out->cluster, err);
    if (st == DP_OK && out->of)
        take_side_files(out);
    if (st == DP_OK)
        st = dp_scratch_make(out->scratch.path, err);
    out->scratch.lock = out->folder.lock;
    if (st == DP_OK)
        tell_state(out);
    return st == DP_OK ? dp_folder_path(&out->scratch, out->scratch.conf, err, "cluster.conf") : st;
}

enum dp_status dp_served_open_live(const char *file, struct dp_served *out, struct dp_error *err)
{
    out->live = true;
    enum dp_status st = dp_path_absolute(file, out->folder.conf, err);
    if (st == DP_OK)
        st = dp_cluster_read(out->folder.conf, &out->cluster, err);
    if (st == DP_OK)
        st = dp_scratch_make(out->scratch.path, err);
    if (st != DP_OK)
        return st;
    (void)snprintf(out->folder.path, sizeof out->folder.path, "%s", file);
    out->cluster->relative_to = DP_CLUSTER_START; /* the copy is elsewhere, and is read from here */
    out->cluster->data.cache[0] = out->cluster->training.report[0] = '\0';
    out->cluster->training.threads = 1;
    return dp_folder_path(&out->scratch, out->scratch.conf, err, "cluster.conf");
}

static enum dp_status pause_a_moment(void *context, const struct dp_checkpoint_state *state,
                                     struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS / 5 * 1000000L};
    (void)context, (void)state, (void)err;
    (void)nanosleep(&pause, NULL);
    return DP_OK;
}

/* Servers under `downpour node` end with their run, so this is how most clusters are found. */
static enum dp_status take_last(const char *from, const char *file, struct dp_error *err)
{
    struct dp_restored last;
    char place[64] = "";
    enum dp_status st = dp_restored_find(from, &last, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "the servers of '%.200s' do not answer", file);
    if (last.manifest.position.known)
        (void)snprintf(place, sizeof place, ", in epoch %" PRIu32 " of run %" PRIu32,
                       last.manifest.position.epoch + 1, last.manifest.position.run);
    fprintf(
        stderr,
        "downpour: the servers of '%s' do not answer: their last checkpoint is used, %s, made %s%s. Their "
        "stores may have later rows: start the servers to export these\n",
        file, last.checkpoint.text, last.manifest.made, place);
    dp_restored_clear(&last);
    return DP_OK;
}

enum dp_status dp_served_checkpoint(const char *file, struct dp_served *out, char from[DP_PATH_MAX + 1],
                                    struct dp_error *err)
{
    struct dp_client *client = NULL;
    const struct dp_checkpoint_watch watch = {pause_a_moment, NULL};
    struct dp_checkpoint_made made;
    struct dp_checkpoint_ask ask = {.wait_ms = CHECKPOINT_WAIT_MS};
    struct dp_error why = {0};
    enum dp_status st = dp_cluster_read(file, &out->of, err);
    if (st == DP_OK && out->of->checkpoint.every == 0)
        st = dp_fail(err, DP_ARGUMENT,
                     "--cluster: '%s' names no directory for checkpoints (checkpoint.to), in which the "
                     "servers can put their rows: add one, or make a checkpoint with 'downpour checkpoint "
                     "--cluster %s --to DIR', and export --from DIR",
                     file, file);
    if (st == DP_OK)
        st = dp_path_absolute(out->of->checkpoint.to, from, err);
    if (st != DP_OK)
        return st;
    memcpy(ask.directory, from, strlen(from) + 1);
    ask.keep = out->of->checkpoint.keep;
    st = dp_servers_client(out->of, "export", ANSWER_MS, &client, &why);
    if (st == DP_UNAVAILABLE || st == DP_TIMEOUT)
        return take_last(from, file, err);
    if (st == DP_OK)
        st = dp_client_checkpoint_make(client, &ask, &watch, &made, &why);
    dp_client_close(&client);
    if (st != DP_OK)
        *err = why;
    return st;
}

static enum dp_status connect(struct dp_served *served, struct dp_error *err)
{
    const struct dp_cluster *cluster = served->cluster;
    enum dp_status st = dp_cluster_write(cluster, served->scratch.conf, err);
    if (st == DP_OK)
        st = dp_local_open(&served->local, err);
    if (st == DP_OK)
        st = dp_servers_client(cluster, "predict", ANSWER_MS, &served->client, err);
    return st == DP_UNAVAILABLE || st == DP_TIMEOUT
               ? dp_wrap(err, st, "start the servers of '%s', or use a checkpoint (--from)",
                         served->folder.path)
               : st;
}

enum dp_status dp_served_start(struct dp_served *served, struct dp_error *err)
{
    struct dp_cluster *cluster = served->cluster;
    if (served->live)
        return connect(served, err);
    cluster->metrics[0] = '\0'; /* the cluster's own servers may have that port */
    enum dp_status st = dp_ports_choose(served->cluster, 0, err);
    if (st == DP_OK)
        st = dp_cluster_write(cluster, served->scratch.conf, err);
    if (st == DP_OK)
        st = dp_local_open(&served->local, err);
    if (st == DP_OK)
        st = dp_servers_start(served->local, &served->scratch, cluster, served->scratch.conf, "server",
                              "--read-only", err);
    if (st == DP_OK)
        st = dp_servers_await(served->local, cluster, cluster->training.timeout_ms, &served->client, err);
    return st;
}

enum dp_status dp_served_await_workers(struct dp_served *served, struct dp_error *err)
{
    while (dp_local_running(served->local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(served->local, LOOK_MS);
        dp_client_progress(served->client);
        if (dp_local_signal(served->local))
            break;
    }
    return dp_local_signal(served->local) || dp_local_failed(served->local)
               ? dp_fail(err, DP_STOPPING, "stopped before the end")
               : DP_OK;
}

/* Why it failed; a worker that ended with a code has said it in its last line, which is all that there is to know. */
static void explain(struct dp_served *served, enum dp_status st, const struct dp_error *err)
{
    char words[1024];
    bool failed = served->local && dp_local_failed(served->local);
    if (!failed) {
        served->keeps_logs = served->client == NULL && served->local != NULL && !served->live;
        fprintf(stderr, "downpour: %s\n", err->text[0] ? err->text : dp_status_text((int)st));
        if (served->keeps_logs)
            fprintf(stderr, "downpour: the logs are in %s/log\n", served->scratch.path);
    } else if (dp_local_log_tail(served->local, words, sizeof words)) {
        fprintf(stderr, "downpour: %s\n", words);
    } else {
        served->keeps_logs = true;
        dp_local_explain(served->local, stderr);
    }
}

int dp_served_end(struct dp_served *served, enum dp_status st, const struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    bool failed = served->local && dp_local_failed(served->local);
    if (served->local && !failed && dp_local_signal(served->local)) {
        code = 128 + dp_local_signal(served->local);
        fprintf(stderr, "downpour: stopping, as signal %d asks\n", dp_local_signal(served->local));
    } else if (failed || st != DP_OK) {
        code = 2;
        explain(served, st, err);
    }
    if (!served->local)
        return code;
    (void)dp_local_stop(served->local, DP_LOCAL_WORKER, WORKER_STOP_MS);
    dp_client_close(&served->client);
    if (dp_local_stop(served->local, DP_LOCAL_SERVER, SERVER_STOP_MS) != DP_OK && code == 0) {
        code = 2;
        served->keeps_logs = true;
        fprintf(stderr, "downpour: the logs are in %s/log\n", served->scratch.path);
    }
    return code;
}

void dp_served_clear(struct dp_served *served)
{
    dp_local_close(&served->local);
    if (!served->keeps_logs)
        dp_scratch_remove(served->scratch.path);
    dp_folder_close(&served->folder);
    dp_scratch_remove(served->restored);
    dp_cluster_free(&served->cluster);
    dp_cluster_free(&served->of);
}
