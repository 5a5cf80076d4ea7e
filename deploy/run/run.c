/* run: a complete training on this machine.
 *     plan (run_plan.c: flags -> directory -> cluster file) -> servers -> (they answer) -> workers -> (they end) ->
 *     servers stopped -> result
 * Why   The cluster file is written before anything is started, so it describes the store after any later
 *       failure. An earlier run stays the directory's current one until a worker has reported its first
 *       progress: by then the servers have accepted its tables. */
#include "deploy/cli/file_copy.h"
#include "deploy/cli/options_file.h"
#include "deploy/cli/progress.h"
#include "deploy/run/diverged.h"
#include "deploy/run/dry_run.h"
#include "deploy/run/epochs.h"
#include "deploy/run/failure.h"
#include "deploy/run/outcome.h"
#include "deploy/run/replaced.h"
#include "deploy/run/run_best.h"
#include "deploy/run/run_commands.h"
#include "deploy/run/run_differs.h"
#include "deploy/run/run_from.h"
#include "deploy/run/run_plan.h"
#include "deploy/run/run_provenance.h"
#include "deploy/run/servers.h"
#include "deploy/supervise/local.h"

#include "common/base/deadline.h"
#include "common/base/text.h"
#include "common/config/consistency.h"
#include "common/config/injection.h"
#include "common/env/awake.h"
#include "common/env/installed.h"
#include "common/model/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WORKER_STOP_MS 10000u
#define LEFT_STOP_MS   1000u
#define SERVER_STOP_MS 120000u
#define LOOK_MS        500u
#define ASK_MS         500u
#define RESTARTS       20u

struct cli_run {
    int argc; /* of the command, for the run's origin */
    char *const *argv;
    struct dp_run_plan plan;
    struct dp_local *local;
    struct dp_client *client;
    struct dp_cli_line line;
    struct dp_epochs epochs;
    struct dp_dry_run dry;
    bool accepted;           /* some worker has trained: it is the directory's current run */
    bool unaccepted;         /* it could not be made the directory's run, as was said */
    bool trained;            /* some worker has said so */
    bool replaces;           /* --replace-store gives up something */
    bool all_joined;         /* with --worker-timeout: every worker has, once */
    bool served;             /* all servers have: what was replaced stays so */
    uint64_t first_ended_ms; /* worker 0; 0: not yet */
    /* The epoch in which it did, by the first worker that says so, and by all that is known at the end. 0: it did not. */
    uint32_t noted, diverged;
};

/* Whether the servers refuse this number as too old (*next: the first that they accept), have a push of it, or know members of a
 * later run. */
static enum dp_status look_up_run(struct cli_run *run, uint32_t number, uint32_t *next, struct dp_error *err)
{
    const uint32_t timeout_ms = run->plan.cluster->training.timeout_ms;
    const struct dp_clock real = dp_clock_real();
    struct dp_awake clock = dp_awake_over(&real, 2 * ASK_MS * UINT64_C(1000000)); /* Ctrl-Z does not count */
    const uint64_t deadline_ns = clock.now_ns + timeout_ms * UINT64_C(1000000);
    uint64_t bits = 0;
    enum dp_status st;
    /* A server that dies meanwhile is restarted. */
    do {
        st = dp_client_pushed(run->client, dp_stream_of_run(number, 0), 0, 1, &bits, ASK_MS, err);
        dp_local_wait(run->local, 0);
        if (dp_local_signal(run->local) || dp_local_failed(run->local))
            return dp_fail(err, DP_STOPPING, "stopped while the servers were asked for the run's number");
    } while (st == DP_TIMEOUT && dp_awake_ns(&clock) < deadline_ns);
    uint32_t last = st == DP_TOO_OLD ? dp_stream_run(dp_client_too_old(run->client)) : number;
    *next = number;
    if (st == DP_TIMEOUT)
        return dp_wrap(err, st, "gave up after %" PRIu32 " ms; last error", timeout_ms);
    const uint32_t known = dp_client_last_run(run->client);
    if (st == DP_OK && known > number)
        last = known;
    else if (st != DP_TOO_OLD && !(st == DP_OK && (bits & 1)))
        return st;
    if (last < number || last >= DP_RUN_MAX)
        return st == DP_OK ? dp_fail(err, DP_FULL, "there is no run number above %" PRIu32, number) : st;
    *err = (struct dp_error){0};
    *next = last + 1;
    return DP_OK;
}

/* Any peer can push under run numbers that are still to come, and join such a run: this run takes the next one that is free. */
static enum dp_status choose_run(struct cli_run *run, struct dp_error *err)
{
    uint32_t *number = &run->plan.cluster->training.run, before = *number, next = 0;
    if (run->plan.resumes) /* its own pushes are there */
        return DP_OK;
    enum dp_status st = look_up_run(run, *number, &next, err);
    for (; st == DP_OK && next != *number; st = look_up_run(run, *number, &next, err))
        *number = next;
    if (st != DP_OK || *number == before)
        return st;
    fprintf(stderr,
            "downpour: run %" PRIu32 " is used or too old on these servers: this is run %" PRIu32 "\n",
            before, *number);
    st = dp_run_plan_set_number(&run->plan, *number, err);
    return st == DP_OK ? dp_cluster_write(run->plan.cluster, run->plan.folder.conf, err) : st;
}

/* For the logs: the run's number. */
static void set_title(struct cli_run *run)
{
    char title[32];
    (void)snprintf(title, sizeof title, "run %" PRIu32, run->plan.cluster->training.run);
    dp_local_title(run->local, title);
}

/* For people; a run does not fail for it. That of a run that goes on in its directory stays. */
static void keep_origin(const struct cli_run *run)
{
    const struct dp_folder *folder = &run->plan.folder;
    uint32_t number = run->plan.cluster->training.run;
    struct dp_error why = {0};
    json_t *first = run->plan.resumes ? dp_run_provenance_read(folder, number) : NULL;
    if (!first && dp_run_provenance_write(folder, number, run->argc, run->argv, &why) != DP_OK)
        fprintf(stderr, "downpour: how the run was begun is not kept: %s\n", why.text);
    json_decref(first);
}

static enum dp_status start_workers(struct cli_run *run, struct dp_error *err)
{
    set_title(run); /* the number may be another one than before */
    char program[DP_PATH_MAX + 1], path[DP_PATH_MAX + 1], index[16], name[32];
    enum dp_status st = dp_installed_program("downpour-worker", program, sizeof program, err);
    for (uint32_t i = 0; st == DP_OK && i < run->plan.cluster->training.workers; i++) {
        (void)snprintf(index, sizeof index, "%" PRIu32, i);
        (void)snprintf(name, sizeof name, "worker %" PRIu32, i);
        const char *const argv[] = {program,    "--cluster", run->plan.folder.conf, "--worker", index,
                                    "--resume", NULL};
        st = dp_folder_path(&run->plan.folder, path, err, "log/worker-%" PRIu32 ".log", i);
        if (st == DP_OK)
            st = dp_local_start(run->local, DP_LOCAL_WORKER, name, argv, path, -1, err);
    }
    return st;
}

/* What happened to the processes. */
static void tell_news(struct cli_run *run)
{
    char text[256];
    while (dp_local_news(run->local, text, sizeof text)) {
        dp_cli_line_end(&run->line);
        fprintf(stderr, "downpour: %s\n", text);
    }
}

static void accept(struct cli_run *run)
{
    struct dp_error err = {0};
    const char *report = run->plan.cluster->training.report;
    uint32_t number = run->plan.cluster->training.run;
    if (run->accepted)
        return;
    enum dp_status st = dp_folder_accept(&run->plan.folder, &err);
    run->accepted = st == DP_OK || dp_folder_is_current(&run->plan.folder);
    if (st == DP_OK && run->plan.state.restored) { /* from now on step logs are those of these weights */
        run->plan.state.restored = false;
        /* An older report says that the weights diverged that were replaced. */
        if (!dp_epochs_written(&run->epochs) && dp_run_report_read(report, number).diverged)
            (void)unlink(report);
        st = dp_run_state_write(&run->plan.folder, number, &run->plan.state, &err);
    }
    if (st == DP_OK || run->unaccepted) /* it is tried again at the next look */
        return;
    run->unaccepted = true;
    dp_cli_line_end(&run->line);
    fprintf(stderr, "downpour: %s\n", err.text);
}

/* Whether a dry run has seen enough. */
static bool watch(struct cli_run *run)
{
    dp_epochs_look(&run->epochs, &run->line);
    if (!run->client)
        return false;
    struct dp_cli_progress seen =
        dp_cli_progress_watch(run->client, run->plan.cluster->training.run, &run->line);
    run->trained = run->trained || seen.examples > 0;
    if (seen.diverged && (!run->noted || seen.diverged < run->noted))
        run->noted = seen.diverged;
    /* Behind its reading: until then it may refuse its data, and the earlier run is wanted back. */
    if (run->trained || seen.evaluating + seen.waiting + seen.done > 0)
        accept(run);
    return run->dry.dir[0] && dp_dry_run_look(&run->dry, &seen);
}

/* Who has joined may die: the others let it leave. Who has not is waited for (takeover.h), so if it fails, its end is that of the run.
 * Of leased work others do what one that ends leaves; before any is done, the cause is likely to be everybody's. */
static void spare_joined(struct cli_run *run)
{
    const struct dp_cluster_training *training = &run->plan.cluster->training;
    struct dp_register_value value = {0};
    struct dp_view view = {0};
    struct dp_error unheard = {0};
    char name[64];
    for (uint32_t w = 0; training->work == DP_CLUSTER_LEASED && run->trained && w < training->workers; w++)
        dp_local_spare_worker(run->local, w);
    if (training->worker_timeout == 0 || run->all_joined)
        return;
    (void)snprintf(name, sizeof name, "run/%" PRIu32 "/view", training->run);
    enum dp_status st = dp_client_register_get(run->client, name, 0, 0, ASK_MS, &value, &unheard);
    if (st == DP_OK && value.version > 0)
        st = dp_view_unpack(value.bytes, value.size, &view, &unheard);
    run->all_joined = view.members > 0;
    for (uint32_t w = 0; w < view.members; w++) {
        run->all_joined &= view.member[w].incarnation > 0;
        if (view.member[w].incarnation > 0)
            dp_local_spare_worker(run->local, w);
    }
    dp_view_clear(&view);
    dp_register_value_clear(&value);
}

/* Worker 0, which writes the report, has ended, and others have not, for which nobody waits any more: they hang, or were suspended. */
static bool is_left_alone(struct cli_run *run)
{
    if (!dp_local_first_worker_ended(run->local))
        return false;
    if (run->first_ended_ms == 0)
        run->first_ended_ms = dp_now_ms();
    if (dp_now_ms() - run->first_ended_ms < WORKER_STOP_MS)
        return false;
    dp_cli_line_end(&run->line);
    fprintf(stderr, "downpour: the training is finished; workers that still run are ended\n");
    (void)dp_local_stop(run->local, DP_LOCAL_WORKER, LEFT_STOP_MS); /* names those that do not hear it */
    return true;
}

/* DP_STOPPING: a signal, or a process ended as it should not have. */
static enum dp_status train(struct cli_run *run, struct dp_error *err)
{
    set_title(run);
    const char *replace = dp_run_plan_flag(&run->plan, "--replace-store") ? "--replace-store" : NULL;
    const char *gives_up = dp_run_plan_flag(&run->plan, "--discard") ? "--discard" : replace;
    if (replace && (run->plan.continues || run->plan.resumes))
        run->replaces = dp_replaced_tell(&run->plan.folder, run->plan.cluster, stderr) > 0;
    dp_observed_prepare(&run->plan.observed, run->local, &run->plan.folder, run->plan.cluster);
    if (dp_local_signal(run->local))
        return dp_fail(err, DP_STOPPING, "stopped before the training began");
    enum dp_status st = dp_servers_start(run->local, &run->plan.folder, run->plan.cluster,
                                         run->plan.folder.conf, "server", gives_up, err);
    if (st == DP_OK)
        st = dp_servers_await(run->local, run->plan.cluster, run->plan.cluster->training.timeout_ms,
                              &run->client, err);
    /* All stores are there now: one that is lost from now on is made by nobody, whatever was said of them at the start. */
    run->served = st == DP_OK;
    if (st == DP_OK)
        dp_local_start_again_with(run->local, gives_up ? gives_up : DP_SERVERS_NEW, "--existing-store");
    if (st == DP_OK)
        st = choose_run(run, err);
    if (st == DP_OK)
        keep_origin(run);
    if (st == DP_OK)
        dp_observed_start(&run->plan.observed, run->local, &run->plan.folder);
    if (st == DP_OK)
        st = start_workers(run, err);
    while (st == DP_OK && dp_local_running(run->local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(run->local, LOOK_MS);
        spare_joined(run);
        tell_news(run);
        if (is_left_alone(run))
            break;
        if (dp_local_signal(run->local) || dp_local_failed(run->local))
            return dp_fail(err, DP_STOPPING, "stopped before the end of the training");
        if (watch(run))
            break;
    }
    return st;
}

/* Where another worker diverged before worker 0 began there is no report. */
static void look_diverged(struct cli_run *run)
{
    const struct dp_cluster_training *t = &run->plan.cluster->training;
    struct dp_error err = {0};
    if (!run->accepted || !dp_local_failed(run->local) || dp_local_server_failed(run->local))
        return;
    if (dp_epochs_written(&run->epochs))
        run->diverged = dp_run_report_read(t->report, t->run).diverged;
    if (!run->diverged)
        run->diverged = run->noted;
    if (!run->diverged)
        return;
    run->plan.state.diverged = run->diverged;
    if (dp_run_state_write(&run->plan.folder, t->run, &run->plan.state, &err) != DP_OK)
        fprintf(stderr, "downpour: %s\n", err.text);
}

static enum dp_status stop_all(struct cli_run *run)
{
    /* Without their server workers have nothing to wait for. */
    uint32_t grace_ms = dp_local_server_failed(run->local) ? 0 : WORKER_STOP_MS;
    enum dp_status workers = dp_local_stop(run->local, DP_LOCAL_WORKER, grace_ms);
    look_diverged(run);
    /* Its last sample is of the last weights. */
    dp_observed_stop(&run->plan.observed, run->local, &run->plan.folder, !dp_local_server_failed(run->local));
    dp_client_close(&run->client);
    enum dp_status servers = dp_local_stop(run->local, DP_LOCAL_SERVER, SERVER_STOP_MS);
    return servers == DP_OK ? workers : servers;
}

static const char *place_of(const struct cli_run *run, char text[DP_RUN_PLACE_BYTES])
{
    const struct dp_run_place place = dp_run_place(&run->plan.folder, run->plan.cluster);
    dp_run_place_text(&place, run->plan.cluster, text);
    return text;
}

/* No flag is needed to train on with them, so it may be unmeant. */
static void tell_others(const struct cli_run *run)
{
    struct dp_difference other[DP_DIFFERENCES_MAX];
    size_t count = run->plan.continues ? dp_run_differs_freely(&run->plan.earlier->training,
                                                               &run->plan.cluster->training, other)
                                       : 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0)
            fprintf(run->plan.notes, "Other than in run %" PRIu32, run->plan.earlier->training.run);
        fprintf(run->plan.notes, "%s %s %s (%s then)", i == 0 ? ":" : ",",
                dp_options_of_key(&dp_run_command, other[i].key)->name, other[i].now, other[i].before);
    }
    if (count > 0)
        fprintf(run->plan.notes,
                ". It trains on from those weights: to compare the two, give each a --dir of its own, or "
                "--fresh.\n");
}

/* What is not shown again. */
static const char *had_text(const struct cli_run *run, char text[64])
{
    uint32_t whole = run->plan.state.restored_epoch, first = run->plan.cluster->training.first_epoch + 1;
    text[0] = '\0';
    if (whole == 1)
        (void)snprintf(text, 64, " Epoch %" PRIu32 " is the checkpoint's.", first);
    else if (whole > 1)
        (void)snprintf(text, 64, " Epochs %" PRIu32 "-%" PRIu32 " are the checkpoint's.", first,
                       first + whole - 1);
    return text;
}

/* A training at a low rate may still mend them, so it is no error. */
static void warn_poor(const struct cli_run *run)
{
    const struct dp_cluster_training *t = &run->plan.earlier->training;
    const struct dp_run_report before = dp_run_report_read(t->report, t->run);
    if (before.poor > 0)
        fprintf(
            stderr,
            "Warning: run %" PRIu32 " has diverged in epoch %" PRIu32
            ", and this run starts from its weights. If it diverges, too, they are the cause: --fresh starts "
            "with new ones.\n",
            t->run, before.poor);
}

/* Simulated delays are waits: those processes share a processor without loss. */
static void warn_crowded(const struct dp_cluster *c)
{
    const struct dp_cluster_training *t = &c->training;
    const uint64_t computing = (uint64_t)t->workers * t->threads, serving = dp_cluster_shards(c);
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1 || t->pace[0] ||
        (computing <= (uint64_t)processors && serving <= (uint64_t)processors))
        return;
    fprintf(stderr,
            "Warning: %" PRIu64 " threads of workers and %" PRIu64
            " of servers share %ld processor%s: more of "
            "either make the training slower and staler, not faster.\n",
            computing, serving, processors, processors == 1 ? "" : "s");
}

static void tell_schedule(const struct cli_run *run)
{
    const struct dp_cluster_training *t = &run->plan.cluster->training;
    bool warms = t->warmup_steps > 0, decays = t->decay != DP_DECAY_NONE;
    if (!run->plan.continues || !(warms || decays))
        return;
    fprintf(stderr, "The %s%s%s of the rate %s.\n", warms ? "warmup" : "",
            warms && decays ? " and decay" : "", decays && !warms ? "decay" : "",
            t->schedule == DP_SCHEDULE_CONTINUE ? "continues after the earlier epochs"
                                                : "starts again (--schedule continue: it continues)");
}

static void tell_start(const struct cli_run *run)
{
    const struct dp_cluster *c = run->plan.cluster;
    FILE *to = run->plan.notes;
    char place[DP_RUN_PLACE_BYTES], from[DP_RUN_FROM_BYTES], had[64], injected[DP_INJECTION_TEXT_BYTES];
    uint32_t shards = dp_cluster_shards(c), workers = c->training.workers;
    fprintf(to, "Training %s: %" PRIu32 " server%s, %" PRIu32 " shard%s, %" PRIu32 " worker%s, in %s\n",
            c->model, c->server_count, c->server_count == 1 ? "" : "s", shards, shards == 1 ? "" : "s",
            workers, workers == 1 ? "" : "s", run->plan.folder.path);
    if (c->training.epochs == 0 && !run->plan.resumes)
        fprintf(to, "The number of epochs is chosen for the model and the size of the training set "
                    "(--epochs N sets it).\n");
    if (run->plan.from.number > 0)
        dp_run_from_text(&run->plan, from);
    if (run->plan.from.number > 0 && run->plan.resumes)
        fprintf(to, "Run %" PRIu32 " goes on from %s.%s\n", c->training.run, from, had_text(run, had));
    else if (run->plan.replaces)
        fprintf(to,
                "Resuming run %" PRIu32
                " there, which was %s. What the replaced store does not have is trained "
                "again.\n",
                c->training.run, place_of(run, place));
    else if (run->plan.resumes)
        fprintf(to, "Resuming run %" PRIu32 " there, %s.\n", c->training.run, place_of(run, place));
    else if (run->plan.continues)
        fprintf(to,
                "Resuming the store of the earlier run there; this is run %" PRIu32
                ", its first epoch is epoch %" PRIu32 " (--fresh starts anew).\n",
                c->training.run, c->training.first_epoch + 1);
    tell_schedule(run);
    tell_others(run);
    if (run->plan.continues)
        warn_poor(run);
    warn_crowded(c);
    if (dp_injection_text(&c->training, injected)[0])
        fprintf(to, "Delays are injected, so its times are not those of this machine: %s.\n", injected);
    const char *straggler = dp_injection_lacks_pace(&c->training);
    if (straggler)
        fprintf(
            stderr,
            "Warning: without --inject pace=TIME, straggler=%s multiplies only the computing of a minibatch, "
            "which may be too short to show: add pace=20ms, for example.\n",
            straggler);
}

static enum dp_status tell_result(struct cli_run *run, struct dp_error *err)
{
    FILE *to = run->plan.tables;
    uint32_t first = run->plan.cluster->training.first_epoch + 1;
    const char *report = run->plan.cluster->training.report;
    char shown[DP_PATH_MAX + 16];
    (void)dp_epochs_end(&run->epochs);
    enum dp_status st = dp_outcome_print(report, to, err);
    if (run->line.quiet)
        dp_outcome_warn(report, stderr);
    if (run->plan.state.mixed > 0)
        fprintf(to,
                "Note:      A store was replaced during this run: the figures of epochs %" PRIu32
                " .. %" PRIu32
                " are partly those of the lost weights. The final ones are of the weights that are there.\n",
                first, first + run->plan.state.mixed - 1);
    (void)snprintf(shown, sizeof shown, "%s/report.json", run->plan.folder.path);
    fprintf(to, "Report:    %s\n", dp_path_same(shown, report) ? shown : report);
    if (run->plan.observed.scored)
        fprintf(to, "Samples:   %s/samples.json\n", run->plan.folder.path);
    dp_outcome_again(report, run->plan.folder.path, to);
    dp_outcome_uses(run->plan.cluster->model, run->plan.folder.path, to);
    if (st == DP_OK && dp_run_plan_flag(&run->plan, "--json"))
        st = dp_outcome_json(report, run->plan.folder.path, stdout, err);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(err, DP_IO, "cannot write to standard output: %s", strerror(errno));
    if (run->plan.report.path && st == DP_OK)
        st = dp_file_copy(report, false, run->plan.report.stream, dp_run_plan_flag(&run->plan, "--report"),
                          err);
    return run->plan.report.path && st == DP_OK ? dp_atomic_file_commit(&run->plan.report, err) : st;
}

/* What is left, and how to go on with it. */
static void after_failure(struct cli_run *run, bool failed)
{
    struct dp_error unheard = {0};
    const bool there = dp_folder_has_run(&run->plan.was);
    bool untrained =
        !run->accepted && (run->plan.continues || (there && dp_run_plan_flag(&run->plan, "--fresh")));
    char place[DP_RUN_PLACE_BYTES], resume[4 * DP_PATH_MAX + 64];
    bool trained = run->trained || dp_run_place(&run->plan.folder, run->plan.cluster).known;
    dp_run_resume_command(&run->plan.folder, resume, sizeof resume);
    if (untrained && !there)
        fprintf(stderr, "downpour: nothing was trained: correct the cause above and repeat the command\n");
    else if (untrained && !run->plan.continues)
        fprintf(
            stderr,
            "downpour: nothing was trained, so the earlier run, which --fresh was to replace, is still in "
            "%s\n",
            run->plan.folder.path);
    else if (untrained && run->replaces)
        fprintf(
            stderr,
            "downpour: nothing was trained, but stores were replaced, and stay so: correct the cause above "
            "and repeat the command%s; to remove all and start anew, give --fresh\n",
            run->served ? " without --replace-store" : "");
    else if (untrained)
        fprintf(stderr,
                "downpour: nothing was trained: %s still holds run %" PRIu32 " as it was. To train further "
                "from its weights, correct the cause above and repeat the command; to remove it and start "
                "anew, add --fresh\n",
                run->plan.folder.path, run->plan.earlier->training.run);
    else if (failed && run->plan.cluster->durability == DP_CLUSTER_NONE && dp_local_server_failed(run->local))
        fprintf(stderr,
                "downpour: without a journal (--durability none) the updates of a killed server are "
                "lost: go back to a checkpoint (downpour restore --dir), or train again: --resume --discard "
                "this run, --fresh another one\n");
    else if (run->diverged)
        dp_diverged_tell(&run->plan.folder, run->plan.cluster, run->diverged, stderr);
    else if (run->plan.resumes || run->plan.continues || trained)
        fprintf(stderr, "downpour: run %" PRIu32 " is not finished: %s. To finish it: %s%s%s\n",
                run->plan.cluster->training.run, place_of(run, place), resume,
                run->replaces && !run->served ? " --replace-store" : "",
                failed && !run->trained ? " (--fresh removes it and starts anew)" : "");
    else
        untrained = true;
    /* Its store would refuse the next try, with the right model. */
    if (untrained && dp_folder_drop(&run->plan.folder, &unheard) != DP_OK)
        fprintf(stderr, "downpour: %s\n", unheard.text);
}

/* It is looked for where another flag was refused, too. */
static bool wants_json(const struct cli_run *run)
{
    bool wants = dp_run_plan_flag(&run->plan, "--json") != NULL;
    for (int i = 0; i < run->argc; i++)
        wants = wants || strcmp(run->argv[i], "--json") == 0;
    return wants;
}

/* For programs. err: of what no process said. */
static void leave_cause(const struct cli_run *run, int code, const struct dp_error *err)
{
    struct dp_failure failure = {.trained = run->trained, .diverged = run->noted != 0 || run->diverged != 0};
    struct dp_error why = {0};
    bool said = code == 2 && run->local && dp_local_log_tail(run->local, failure.error, sizeof failure.error);
    failure.refused = said && !run->trained && !failure.diverged;
    if (code > 128)
        (void)snprintf(failure.error, sizeof failure.error, "stopped by signal %d", code - 128);
    else if (!failure.error[0])
        (void)snprintf(failure.error, sizeof failure.error, "%s", err->text);
    dp_text_clean(failure.error);
    if (code == 2 && run->plan.folder.lock >= 0 &&
        dp_failure_write(run->plan.folder.path, &failure, &why) != DP_OK)
        fprintf(stderr, "downpour: %s\n", why.text);
    if (wants_json(run))
        dp_failure_json(&failure, code, run->plan.folder.path, stdout);
}

/* That all of it is trained is to be known as long as the weights are there. */
static enum dp_status set_finished(struct cli_run *run, struct dp_error *err)
{
    const struct dp_cluster_training *t = &run->plan.cluster->training;
    uint32_t reported = dp_run_report_read(t->report, t->run).epochs;
    run->plan.state.finished = true;
    run->plan.state.epochs = reported ? reported : dp_run_place(&run->plan.folder, run->plan.cluster).whole;
    return dp_run_state_write(&run->plan.folder, t->run, &run->plan.state, err);
}

/* The signal came when worker 0 had nothing left to do. */
static bool was_finished(const struct cli_run *run)
{
    const struct dp_cluster_training *t = &run->plan.cluster->training;
    return dp_epochs_written(&run->epochs) && dp_run_report_read(t->report, t->run).finished;
}

/* All processes have ended; the exit code. */
static int end_training(struct cli_run *run, int code, bool failed, bool closed, struct dp_error *err)
{
    if (code > 128 && closed && was_finished(run))
        code = 0;
    if (code == 0 && dp_run_best_restore(&run->plan.folder, run->plan.cluster, run->local, err) != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    if (run->local && !dp_local_signal(run->local) && (code == 0 || run->trained))
        dp_observed_score(&run->plan.observed, run->local, &run->plan.folder);
    dp_epochs_look(&run->epochs, &run->line); /* what a worker that was asked to stop still had to tell */
    if (code == 0)
        accept(run);
    if (code == 0 && !run->accepted) {
        fprintf(
            stderr,
            "downpour: the training is complete in %s/runs/%" PRIu32
            ", but it cannot take the place of the run before (why: above). The next run here removes it: "
            "copy it away, and correct the cause\n",
            run->plan.folder.path, run->plan.folder.number);
        code = 2;
    } else if (code != 0 && run->local) {
        after_failure(run, failed);
    }
    if (code != 0)
        leave_cause(run, code, err);
    else if (set_finished(run, err) != DP_OK || tell_result(run, err) != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    return code;
}

static int end_trial(struct cli_run *run, int code, struct dp_error *err)
{
    const bool json = dp_run_plan_flag(&run->plan, "--json");
    if (code == 0 && dp_dry_run_tell(&run->dry, run->plan.cluster->training.report, run->plan.cluster, json,
                                     stdout, err) != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
        code = 2;
    }
    if (code != 0)
        leave_cause(run, code, err);
    return code;
}

/* The log of a trial goes with its directory. */
static void explain(const struct cli_run *run)
{
    char words[1024];
    if (run->dry.dir[0] && dp_local_log_tail(run->local, words, sizeof words))
        fprintf(stderr, "downpour: %s\n", words);
    else
        dp_local_explain(run->local, stderr);
}

static int finish(struct cli_run *run, enum dp_status st, struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    dp_cli_line_end(&run->line);
    if (run->local)
        tell_news(run);
    bool failed = run->local && dp_local_failed(run->local);
    if (run->local && !failed && dp_local_signal(run->local)) {
        code = 128 + dp_local_signal(run->local);
        fprintf(stderr, "downpour: stopping, as signal %d asks\n", dp_local_signal(run->local));
    } else if (failed) {
        explain(run);
        code = 2;
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
    }
    if (run->local && !dp_local_server_failed(run->local)) {
        run->line.next_ms = 0; /* the last one is due, however soon it comes */
        if (failed && !run->trained)
            run->line.file = NULL; /* but that workers were starting is no news behind why they did not */
        (void)watch(run);
    }
    dp_cli_line_end(&run->line);
    bool closed = !run->local || stop_all(run) == DP_OK;
    if (code == 0 && !closed)
        code = 2;
    code = run->dry.dir[0] ? end_trial(run, code, err) : end_training(run, code, failed, closed, err);
    dp_atomic_file_drop(&run->plan.report);
    dp_local_close(&run->local);
    dp_folder_close(&run->plan.folder);
    dp_cluster_free(&run->plan.cluster);
    dp_cluster_free(&run->plan.earlier);
    dp_restored_clear(&run->plan.from);
    dp_dry_run_end(&run->dry);
    return code;
}

/* Standard output: the epochs and the summary, or one line of JSON. Standard error: progress, notes,
 * warnings, errors. */
static enum dp_status settle_streams(struct cli_run *run, struct dp_error *err)
{
    struct dp_run_plan *plan = &run->plan;
    const bool json = dp_run_plan_flag(plan, "--json"), quiet = dp_run_plan_flag(plan, "--quiet"),
               dry = dp_run_plan_flag(plan, "--dry-run");
    const char *report = dp_run_plan_flag(plan, "--report");
    if (json && report && (strcmp(report, "-") == 0 || strcmp(report, "/dev/stdout") == 0))
        return dp_fail(err, DP_ARGUMENT,
                       "--json and --report -: each needs standard output: name a file with --report");
    FILE *nowhere = quiet || dry ? fopen("/dev/null", "we") : NULL;
    if ((quiet || dry) && !nowhere)
        return dp_fail(err, DP_IO, "cannot open /dev/null: %s", strerror(errno));
    run->line.quiet = quiet;
    plan->tables = nowhere ? nowhere : json ? stderr : stdout;
    plan->notes = quiet ? nowhere : stderr;
    if (!dry)
        return DP_OK;
    fprintf(
        plan->notes,
        "Dry run: a trial of some seconds in a directory that is removed at its end. No other is changed.\n");
    enum dp_status st = dp_dry_run_begin(&run->dry, plan->values, err);
    plan->trial_of = run->dry.earlier;
    return st;
}

static enum dp_status print_config(const struct cli_run *run)
{
    static const char *const without[] = {"--config", "--print-config", NULL};
    dp_options_file_write(&dp_run_command, run->plan.values, without, stdout);
    return DP_OK;
}

int dp_run_run(int argc, char *const *argv)
{
    struct cli_run run = {.argc = argc, .argv = argv, .plan = {.folder.lock = -1, .restarts = RESTARTS}};
    struct dp_error err = {0};
    bool help;
    run.plan.tables = stdout;
    run.plan.notes = stderr;
    dp_cli_line_init(&run.line, stderr);
    enum dp_status st = dp_options_parse(&dp_run_command, argc, argv, run.plan.values, &help, &err);
    if (st == DP_OK && help)
        return dp_run_show_help(argc, argv);
    if (st == DP_OK && dp_run_plan_flag(&run.plan, "--config"))
        st = dp_options_file_read(&dp_run_command, dp_run_plan_flag(&run.plan, "--config"), run.plan.values,
                                  &err);
    if (st == DP_OK && dp_run_plan_flag(&run.plan, "--print-config"))
        return dp_options_end(&dp_run_command, print_config(&run), &err);
    if (st == DP_OK)
        st = settle_streams(&run, &err);
    if (st == DP_OK)
        st = dp_run_plan_make(&run.plan, &err);
    if (st == DP_OK)
        st = dp_local_open(&run.local, &err);
    if (st == DP_OK) {
        dp_local_restart_dead(run.local, run.plan.restarts);
        dp_epochs_init(&run.epochs, run.plan.cluster->training.report, run.plan.resumes && !run.plan.replaces,
                       run.plan.tables);
        if (run.plan.state.restored)
            dp_epochs_restored(&run.epochs, run.plan.state.restored_epoch);
        dp_failure_clear(run.plan.folder.path);
        tell_start(&run);
        st = train(&run, &err);
    }
    return finish(&run, st, &err);
}
