/* restore: builds the stores of a cluster from a checkpoint, for any number of servers and shards.
 *     checkpoint -> one history for all servers -> downpour-server --restore for each server of this machine, at once */
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/cli/folder.h"
#include "deploy/cli/local.h"
#include "deploy/cli/options.h"
#include "deploy/cli/run_state.h"
#include "deploy/cli/scratch.h"
#include "deploy/cli/servers.h"

#include "common/base/deadline.h"
#include "common/base/text.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"

#include <inttypes.h>
#include <netdb.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_MS 500u
#define STOP_MS 10000u

static const struct dp_option options[] = {
    {"--from", "DIR", "a checkpoint (DIR/checkpoint-N), or the directory of checkpoints: its last one", NULL,
     NULL},
    {"--cluster", "FILE",
     "cluster file of the servers that are to have it; its number of servers and shards may be another one",
     NULL, NULL},
    {"--dir", "RUN",
     "directory of a run ('downpour run --dir RUN'), instead of --cluster; 'run --dir RUN --resume' then "
     "goes on",
     NULL, NULL},
    {"--overwrite", NULL, "replace stores that are there; without it they are refused", NULL, NULL},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "restore",
    .usage = "--from DIR --cluster FILE | --dir RUN [--overwrite]",
    .summary = "Builds the stores of a cluster from a checkpoint. The servers must be stopped. The stores of "
               "servers on this machine are "
               "built\nat once; for others it prints the command that is to be run there. All servers must "
               "be restored: those of "
               "another restore\ndo not start together. A store that was there stays as it is until its new "
               "one is whole.",
    .options = options,
    .count = OPTIONS,
};

struct restore_asked {
    const char *file;
    struct dp_folder folder; /* --dir */
    bool has_folder, overwrite;
    struct dp_cluster *cluster;
    struct dp_checkpoint_path checkpoint; /* DIR/checkpoint-N, absolute */
    uint32_t number;
    struct dp_manifest manifest;
    char history[17];
};

/* Whether the address is one of this machine's: then, and only then, a socket can be bound to it. */
static bool is_local(const char *host)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    bool local = strncmp(host, "ipc://", 6) == 0;
    if (local || getaddrinfo(host, "0", &hints, &found) != 0)
        return local;
    for (const struct addrinfo *a = found; a && !local; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        local = fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0;
        if (fd >= 0)
            (void)close(fd);
    }
    freeaddrinfo(found);
    return local;
}

static enum dp_status start_one(const struct restore_asked *a, struct dp_local *local, const char *logs,
                                uint32_t server, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 64], number[16], name[32];
    enum dp_status st = dp_servers_program("downpour-server", program, err);
    (void)snprintf(number, sizeof number, "%" PRIu32, server);
    (void)snprintf(name, sizeof name, "restoring server %" PRIu32, server);
    (void)snprintf(log, sizeof log, "%s/log/server-%" PRIu32 ".log", logs, server);
    const char *const argv[] = {
        program,     "--cluster",        a->file,     "--server", number,
        "--restore", a->checkpoint.text, "--history", a->history, a->overwrite ? "--overwrite" : NULL,
        NULL};
    return st == DP_OK ? dp_local_start(local, DP_LOCAL_WORKER, name, argv, log,
                                        a->has_folder ? a->folder.lock : -1, err)
                       : st;
}

static enum dp_status await(struct dp_local *local, struct dp_error *err)
{
    while (dp_local_running(local, DP_LOCAL_WORKER) > 0 && !dp_local_failed(local) && !dp_local_signal(local))
        dp_local_wait(local, LOOK_MS);
    if (dp_local_signal(local))
        return dp_fail(err, DP_STOPPING, "interrupted; a store that is not whole yet is as it was before");
    if (!dp_local_failed(local))
        return DP_OK;
    char words[400];
    if (dp_local_last_words(local, words, sizeof words))
        return dp_fail(err, DP_DATA, "%s", words);
    dp_local_explain(local, stderr);
    return dp_fail(err, DP_DATA, "a server could not be restored");
}

static enum dp_status restore_local(const struct restore_asked *a, uint32_t *done, struct dp_error *err)
{
    char logs[DP_PATH_MAX + 1] = "";
    struct dp_local *local = NULL;
    enum dp_status st = dp_scratch_make(logs, err);
    if (st == DP_OK)
        st = dp_local_open(&local, err);
    for (uint32_t i = 0; st == DP_OK && i < a->cluster->server_count; i++) {
        if (!is_local(a->cluster->server[i].host))
            continue;
        st = start_one(a, local, logs, i, err);
        *done += st == DP_OK;
    }
    if (st == DP_OK)
        st = await(local, err);
    if (local)
        (void)dp_local_stop(local, DP_LOCAL_WORKER, STOP_MS);
    int signal = local ? dp_local_signal(local) : 0;
    dp_local_close(&local);
    dp_scratch_remove(logs);
    return signal && st == DP_OK ? dp_fail(err, DP_STOPPING, "interrupted") : st;
}

static void tell_others(const struct restore_asked *a)
{
    char path[DP_PATH_QUOTED], file[DP_PATH_QUOTED];
    for (uint32_t i = 0; i < a->cluster->server_count; i++)
        if (!is_local(a->cluster->server[i].host))
            printf("On %s, run:\n    downpour-server --cluster %s --server %" PRIu32
                   " --restore %s --history %s%s\n",
                   a->cluster->server[i].host, dp_path_quote(a->file, file), i,
                   dp_path_quote(a->checkpoint.text, path), a->history, a->overwrite ? " --overwrite" : "");
}

/* A run that had ended goes on from the checkpoint. What the workers logged of steps that are trained again counts in their figures
 * still, which the run says at its end. */
static enum dp_status reopen_run(const struct restore_asked *a, struct dp_error *err)
{
    uint32_t run = a->cluster->training.run;
    struct dp_run_state state = dp_run_state_read(&a->folder, run);
    const struct dp_run_place place = dp_run_place(&a->folder, a->cluster);
    uint32_t begun = place.known ? place.whole + (place.whole < place.epochs) : 0;
    if (!state.known)
        return DP_OK;
    state.finished = false;
    state.mixed = begun > state.mixed ? begun : state.mixed;
    return dp_run_state_write(&a->folder, run, &state, err);
}

static enum dp_status restore(struct restore_asked *a, struct dp_error *err)
{
    uint64_t began_ms = dp_now_ms(), history;
    uint32_t done = 0;
    char at[64] = "", next[DP_PATH_QUOTED + 64];
    DP_ASSERT(getrandom(&history, sizeof history, 0) == (ssize_t)sizeof history);
    (void)snprintf(a->history, sizeof a->history, "%016" PRIx64, history | 1);
    enum dp_status st = restore_local(a, &done, err);
    if (st == DP_OK && a->has_folder)
        st = reopen_run(a, err);
    if (st != DP_OK)
        return st;
    const struct dp_manifest_position *position = &a->manifest.position;
    if (position->known)
        (void)snprintf(at, sizeof at, " (run %" PRIu32 ", epoch %" PRIu32 ", made %s)", position->run,
                       position->epoch + 1, a->manifest.made);
    printf("restored checkpoint %" PRIu32 "%s: %" PRIu32 " of %" PRIu32 " servers, in %.1f s\n", a->number,
           at, done, a->cluster->server_count, (double)(dp_now_ms() - began_ms) / 1000);
    tell_others(a);
    if (a->has_folder) {
        dp_run_resume_command(&a->folder, next, sizeof next);
        printf("To go on: %s\n", next);
        if (position->known && position->run != a->cluster->training.run)
            printf("The run's cluster file is of run %" PRIu32 ", the checkpoint of run %" PRIu32
                   ": what goes on is run %" PRIu32 ", from its beginning, on the checkpoint's weights.\n",
                   a->cluster->training.run, position->run, a->cluster->training.run);
    }
    return DP_OK;
}

static enum dp_status find_checkpoint(const char *from, struct restore_asked *a, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    struct dp_checkpoint_path directory, manifest;
    enum dp_status st = dp_path_absolute(from, path, err);
    if (st == DP_OK)
        st = dp_checkpoint_find(path, &directory, &a->number, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_of(directory.text, a->number, &a->checkpoint, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&manifest, err, "%s/" DP_MANIFEST_NAME, a->checkpoint.text);
    return st == DP_OK ? dp_manifest_read(manifest.text, &a->manifest, err) : st;
}

static enum dp_status open_run(const char *dir, struct restore_asked *a, struct dp_error *err)
{
    char conf[DP_PATH_MAX + 1];
    if (snprintf(conf, sizeof conf, "%s/cluster.conf", dir) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--dir: the path is too long");
    if (access(conf, R_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "%s has no cluster.conf: give the directory of a run, or --cluster FILE with a "
                       "cluster file (a checkpoint has "
                       "a copy of its own)",
                       dir);
    enum dp_status st = dp_folder_open(dir, &a->folder, err);
    a->has_folder = st == DP_OK;
    a->file = a->folder.conf;
    return st;
}

static enum dp_status take_flags(const char *const *values, struct restore_asked *a, struct dp_error *err)
{
    const char *file = dp_options_value(&command, values, "--cluster"),
               *dir = dp_options_value(&command, values, "--dir"),
               *from = dp_options_value(&command, values, "--from");
    if (!file == !dir)
        return dp_fail(err, DP_ARGUMENT,
                       "give either --cluster FILE or --dir RUN; 'downpour restore --help' lists all flags");
    if (!from)
        return dp_fail(err, DP_ARGUMENT,
                       "--from DIR is required: a checkpoint, or the directory of checkpoints");
    a->overwrite = dp_options_value(&command, values, "--overwrite") != NULL;
    a->file = file;
    enum dp_status st = find_checkpoint(from, a, err);
    if (st == DP_OK && dir)
        st = open_run(dir, a, err);
    return st == DP_OK ? dp_cluster_read(a->file, &a->cluster, err) : st;
}

int dp_deploy_restore(int argc, char *const *argv)
{
    const char *values[OPTIONS];
    struct dp_error err = {0};
    struct restore_asked a = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = take_flags(values, &a, &err);
    if (st == DP_OK)
        st = restore(&a, &err);
    if (a.has_folder)
        dp_folder_close(&a.folder);
    dp_cluster_free(&a.cluster);
    dp_manifest_clear(&a.manifest);
    if (fflush(stdout) != 0 && st == DP_OK)
        st = dp_fail(&err, DP_IO, "cannot write to standard output");
    if (st == DP_OK)
        return 0;
    dp_text_clean(err.text);
    fprintf(stderr, "downpour: restore: %s\n", err.text);
    return 2;
}
