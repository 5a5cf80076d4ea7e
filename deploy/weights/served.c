#include "deploy/weights/served.h"

#include "deploy/cli/scratch.h"
#include "deploy/run/ports.h"
#include "deploy/run/restored.h"
#include "deploy/run/run_best.h"
#include "deploy/run/run_state.h"
#include "deploy/run/servers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define WORKER_STOP_MS 10000u
#define SERVER_STOP_MS 120000u
#define LOOK_MS        500u

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

enum dp_status dp_served_open(const char *path, bool named, struct dp_served *out, struct dp_error *err)
{
    bool is_checkpoint = dp_restored_is_checkpoint(path);
    enum dp_status st = is_checkpoint ? dp_restored_scratch(path, named, out->restored, err) : DP_OK;
    if (st == DP_OK)
        st = dp_folder_open_to_read(is_checkpoint ? out->restored : path, &out->folder, err);
    if (st == DP_OK)
        st = dp_folder_cluster(&out->folder, &out->cluster, err);
    if (st == DP_OK)
        st = dp_scratch_make(out->scratch.path, err);
    out->scratch.lock = out->folder.lock;
    if (st == DP_OK)
        tell_state(out);
    return st == DP_OK ? dp_folder_path(&out->scratch, out->scratch.conf, err, "cluster.conf") : st;
}

enum dp_status dp_served_start(struct dp_served *served, struct dp_error *err)
{
    const struct dp_cluster *cluster = served->cluster;
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
        served->keeps_logs = served->client == NULL && served->local != NULL;
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
}
