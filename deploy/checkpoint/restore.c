/* restore: builds the stores of a cluster from a checkpoint, for any number of servers and shards.
 *     checkpoint -> one history for all servers -> downpour-server --restore for each server of this machine, at once
 *     -> all have built: their stores are exchanged. If servers run on other machines, the user decides
 *     when. */
#include "deploy/checkpoint/checkpoint_commands.h"
#include "deploy/cli/options.h"
#include "deploy/run/folder.h"
#include "deploy/run/restored.h"
#include "deploy/run/run_state.h"

#include "common/base/deadline.h"
#include "server/restore/left_out.h"
#include "worker/compute/models/model.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static const struct dp_option options[] = {
    {"--from", "DIR", NULL,
     "a checkpoint (DIR/checkpoint-000001), or the directory of checkpoints: its last one"},
    {"--cluster", "FILE", NULL,
     "cluster file of the servers that are to have it; its number of servers and shards may be another one"},
    {"--dir", "RUN", NULL,
     "directory of a run ('downpour run --dir RUN'), instead of --cluster; 'run --dir RUN --resume' then "
     "continues"},
    {"--overwrite", NULL, NULL,
     "replace stores that are there; without it they are refused, and those of another training are in any "
     "case"},
    {"--without", "TABLE[,TABLE...]", NULL,
     "leave these tables out, with their rows: so a table is removed. No table that the run's model needs"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "restore",
    .usage = "--from DIR --cluster FILE | --dir RUN [--overwrite] [--without TABLE,...]",
    .summary = "Builds the stores of a cluster from a checkpoint. The servers must be stopped. The stores of "
               "servers on this machine are "
               "built\nat once; for others it prints the commands that are to be run there. A store that was "
               "there stays as it is until\nall servers have built: then all are replaced, or none. "
               "An interrupted restore is completed or taken back when\nthe servers start.",
    .options = options,
    .count = OPTIONS,
};

struct restore_asked {
    const char *file, *without;
    struct dp_folder folder; /* --dir */
    bool has_folder, overwrite;
    struct dp_cluster *cluster;
    struct dp_restored from;
};

static void show_build(const struct restore_asked *a, uint32_t server, const char *flag)
{
    char path[DP_PATH_QUOTED], file[DP_PATH_QUOTED];
    const char *host = a->cluster->server[server].host;
    printf("On %s, run:\n    downpour-server --cluster %s --server %" PRIu32
           " --restore %s --history %s%s%s%s\n",
           host[0] ? host : "the server's machine", dp_path_quote(a->file, file), server,
           dp_path_quote(a->from.checkpoint.text, path), a->from.history, a->without ? " --without " : "",
           a->without ? a->without : "", flag);
}

static void show_others(const struct restore_asked *a)
{
    for (uint32_t i = 0; i < a->cluster->server_count; i++)
        if (!dp_restored_is_local(a->cluster, i))
            show_build(a, i, a->overwrite ? " --overwrite" : "");
    printf("Every store is still as it was. When each of these commands has ended with 'built', replace them "
           "all:\n");
    show_build(a, 0, " --exchange");
    printf("Then start the servers.\n");
}

/* A run that had ended goes on from the checkpoint. Before the exchange: a run that is taken for unfinished resumes and ends; one that is
 * taken for finished would give the checkpoint's weights as its result. */
static enum dp_status reopen_run(void *context, struct dp_error *err)
{
    const struct restore_asked *a = context;
    uint32_t run = a->cluster->training.run;
    struct dp_run_state state = dp_run_state_read(&a->folder, run);
    const struct dp_manifest_position *at = &a->from.manifest.position;
    state.known = true; /* it may have been lost with the stores */
    state.finished = false;
    dp_run_state_restored(&state, run, at->known, at->run, at->epoch);
    return dp_run_state_write(&a->folder, run, &state, err);
}

static enum dp_status restore(struct restore_asked *a, struct dp_error *err)
{
    uint64_t began_ms = dp_now_ms();
    uint32_t done = 0;
    char at[64] = "", without[64], next[DP_PATH_QUOTED + 64];
    const struct dp_restored_stores stores = {.file = a->file,
                                              .cluster = a->cluster,
                                              .overwrite = a->overwrite,
                                              .without = a->without,
                                              .lock = a->has_folder ? a->folder.lock : -1,
                                              .before_exchange = a->has_folder ? reopen_run : NULL,
                                              .context = a};
    enum dp_status st = dp_restored_stores(&a->from, &stores, &done, err);
    bool is_all = done == a->cluster->server_count;
    if (st != DP_OK)
        return st;
    const struct dp_manifest_position *position = &a->from.manifest.position;
    if (position->known)
        (void)snprintf(at, sizeof at, " (run %" PRIu32 ", epoch %" PRIu32 ", made %s)", position->run,
                       position->epoch + 1, a->from.manifest.made);
    printf("%s checkpoint %" PRIu32 "%s%s: %" PRIu32 " of %" PRIu32 " servers, in %.1f s\n",
           is_all ? "restored" : "built", a->from.number, at,
           dp_restore_left_out_text(&a->from.manifest, without), done, a->cluster->server_count,
           (double)(dp_now_ms() - began_ms) / 1000);
    if (!is_all)
        show_others(a);
    if (a->has_folder && is_all) {
        dp_run_resume_command(&a->folder, next, sizeof next);
        printf("To continue: %s\n", next);
        if (position->known && position->run != a->cluster->training.run)
            printf("The run's cluster file is of run %" PRIu32 ", the checkpoint of run %" PRIu32
                   ": it continues as run %" PRIu32 ", from its beginning, on the checkpoint's weights.\n",
                   a->cluster->training.run, position->run, a->cluster->training.run);
    }
    return DP_OK;
}

static enum dp_status open_run(const char *dir, struct restore_asked *a, struct dp_error *err)
{
    char conf[DP_PATH_MAX + 1];
    if (snprintf(conf, sizeof conf, "%s/cluster.conf", dir) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--dir: the path is too long");
    if (access(conf, R_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "%s has no cluster.conf: give the directory of a run, or the cluster file of servers "
                       "with --cluster. To continue in a new directory: downpour run --from CHECKPOINT --dir "
                       "%s",
                       dir, dir);
    enum dp_status st = dp_folder_open(dir, &a->folder, err);
    a->has_folder = st == DP_OK;
    if (st == DP_OK)
        st = dp_folder_check_foreign(&a->folder, err);
    a->file = a->folder.conf;
    return st;
}

/* The cluster file would be another training's than the stores: its workers would be refused. */
static enum dp_status check_run(const struct restore_asked *a, struct dp_error *err)
{
    char from[DP_PATH_QUOTED];
    if (!a->has_folder || a->from.manifest.cluster == a->cluster->id)
        return DP_OK;
    return dp_fail(err, DP_EXISTS,
                   "checkpoint %" PRIu32
                   " is of another training than the run in %.120s, which stays as it is. To continue from "
                   "the checkpoint in another directory: downpour run --dir NEW --from %s",
                   a->from.number, a->folder.path, dp_path_quote(a->from.checkpoint.text, from));
}

/* A run cannot continue without a table of its model. Other programs make theirs again. */
static enum dp_status check_table(const struct restore_asked *a, const char *name, struct dp_error *err)
{
    if (a->has_folder)
        return dp_fail(
            err, DP_ARGUMENT,
            "--without: the run in %.200s needs table '%s' for its model, %.64s. For another model, "
            "begin another run: downpour run --dir NEW",
            a->folder.path, name, a->cluster->model);
    fprintf(
        stderr,
        "downpour: warning: table '%s' is one of the model %.64s in %s: its workers will begin it again\n",
        name, a->cluster->model, a->file);
    return DP_OK;
}

static enum dp_status check_needed(const struct restore_asked *a, struct dp_error *err)
{
    struct dp_model model = {0};
    const struct dp_manifest_tables *tables = &a->from.manifest.tables;
    enum dp_status st = dp_model_open(a->cluster->model, &model, err);
    if (st != DP_OK && !a->has_folder)
        return DP_OK; /* a name alone */
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(model.graph); p++) {
        const char *needed = dp_graph_parameter(model.graph, p)->table.name;
        for (size_t t = 0; st == DP_OK && t < tables->count; t++)
            if (tables->table[t].left_out && strcmp(tables->table[t].spec.name, needed) == 0)
                st = check_table(a, needed, err);
    }
    dp_model_close(&model);
    return st;
}

/* Stores of a cluster file that lies in a checkpoint would be built in the checkpoint. */
static enum dp_status check_place(const char *file, struct dp_error *err)
{
    char manifest[DP_PATH_MAX + 16];
    const char *slash = strrchr(file, '/');
    int dir = slash ? (int)(slash - file) : 1;
    (void)snprintf(manifest, sizeof manifest, "%.*s/manifest.json", dir, slash ? file : ".");
    return access(manifest, F_OK) != 0
               ? DP_OK
               : dp_fail(
                     err, DP_ARGUMENT,
                     "--cluster '%.300s' lies in a checkpoint, which a restore would damage: give a copy "
                     "elsewhere, or continue in a new directory: downpour run --from CHECKPOINT --dir NEW",
                     file);
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
    a->without = dp_options_value(&command, values, "--without");
    enum dp_status st = dp_restored_find(from, &a->from, err);
    if (st == DP_OK && a->without)
        st = dp_restore_leave_out(&a->from.manifest, a->without, err);
    if (st == DP_OK && file)
        st = check_place(file, err);
    if (st == DP_OK && dir)
        st = open_run(dir, a, err);
    if (st == DP_OK)
        st = dp_cluster_read(a->file, &a->cluster, err);
    for (uint32_t i = 0; st == DP_OK && i < a->cluster->server_count; i++)
        if (dp_restored_is_local(a->cluster, i))
            st = dp_cluster_settle(a->cluster, i, err);
    if (st == DP_OK)
        st = check_run(a, err);
    return st == DP_OK && a->without ? check_needed(a, err) : st;
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
    dp_restored_clear(&a.from);
    return dp_options_end(&command, st, &err);
}
