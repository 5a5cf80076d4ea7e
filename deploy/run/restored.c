#include "deploy/run/restored.h"

#include "deploy/cli/scratch.h"
#include "deploy/run/ports.h"
#include "deploy/run/servers.h"
#include "deploy/supervise/local.h"

#include "common/config/cluster_paths.h"
#include "common/env/atomic_file.h"
#include "common/env/directory.h"
#include "common/env/installed.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/restore/restore.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_files.h"
#include "worker/context/defaults.h"
#include "worker/history/step_log.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 500u
#define STOP_MS 10000u

/* ---- the checkpoint */

static bool has(const char *path, const char *name)
{
    struct dp_checkpoint_path file;
    return dp_checkpoint_path(&file, NULL, "%s/%s", path, name) == DP_OK && access(file.text, F_OK) == 0;
}

bool dp_restored_is_checkpoint(const char *path)
{
    struct dp_checkpoint_path directory;
    uint32_t number;
    if (has(path, DP_MANIFEST_NAME))
        return true;
    return !has(path, "cluster.conf") && dp_checkpoint_find(path, &directory, &number, NULL) == DP_OK;
}

static enum dp_status path_of(const struct dp_restored *restored, const struct dp_manifest_file *file,
                              struct dp_checkpoint_path *out, struct dp_error *err)
{
    return dp_checkpoint_path(out, err, "%s/%s", restored->checkpoint.text, file->name);
}

/* The files that say what its rows are: a damaged one is found before anything is made or removed. */
static enum dp_status check_own(const struct dp_restored *restored, struct dp_error *err)
{
    const struct dp_manifest *m = &restored->manifest;
    const struct dp_manifest_file *const own[] = {&m->cluster_file, &m->side[DP_SIDE_NAMES],
                                                  &m->side[DP_SIDE_COLUMNS], &m->side[DP_SIDE_INTERACTIONS]};
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof own / sizeof own[0]; i++) {
        struct dp_checkpoint_path path;
        struct dp_restore_file file = {
            .from = path.text, .bytes = own[i]->bytes, .checksum = own[i]->checksum};
        if (!own[i]->name)
            continue;
        st = path_of(restored, own[i], &path, err);
        if (st == DP_OK)
            st = dp_restore_file_bring(&file, err);
    }
    return st;
}

enum dp_status dp_restored_find(const char *from, struct dp_restored *out, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    struct dp_checkpoint_path directory;
    *out = (struct dp_restored){0};
    enum dp_status st = dp_path_absolute(from, path, err);
    if (st == DP_OK)
        st = dp_checkpoint_find(path, &directory, &out->number, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_of(directory.text, out->number, &out->checkpoint, err);
    if (st == DP_OK)
        st = dp_manifest_read_numbered(directory.text, out->number, &out->manifest, err);
    return st == DP_OK ? check_own(out, err) : st;
}

void dp_restored_clear(struct dp_restored *restored)
{
    dp_manifest_clear(&restored->manifest);
}

/* Files that are named from where processes start: this one starts here. What is written into another directory needs the whole
 * path. */
static enum dp_status make_absolute(struct dp_cluster *cluster, struct dp_error *err)
{
    char here[DP_PATH_MAX + 1];
    enum dp_status st = dp_path_absolute("cluster.conf", here, err);
    return st == DP_OK ? dp_cluster_paths_resolve(cluster, here, err) : st;
}

enum dp_status dp_restored_cluster(const struct dp_restored *restored, struct dp_cluster **out,
                                   struct dp_error *err)
{
    struct dp_checkpoint_path path;
    const struct dp_manifest_file *file = &restored->manifest.cluster_file;
    *out = NULL;
    if (!file->name)
        return dp_fail(err, DP_NOT_FOUND,
                       "the checkpoint %s has no cluster file, so its model and settings are unknown: "
                       "restore it with 'downpour restore --cluster FILE'",
                       restored->checkpoint.text);
    enum dp_status st = path_of(restored, file, &path, err);
    if (st == DP_OK)
        st = dp_cluster_read(path.text, out, err);
    if (st == DP_OK)
        st = dp_defaults_of_file(path.text, *out, err);
    if (st != DP_OK)
        return st;
    if ((*out)->training.run == 0)
        (*out)->training.run = restored->manifest.position.known ? restored->manifest.position.run : 1;
    char *const kept[] = {(*out)->training.report, (*out)->training.steps,    (*out)->data.names,
                          (*out)->data.columns,    (*out)->data.interactions, (*out)->data.cache,
                          (*out)->training.best};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        kept[i][0] = '\0';
    (*out)->dir[0] = '\0';
    return make_absolute(*out, err);
}

/* ---- the stores */

/* Then, and only then, a socket can be bound to it. */
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

bool dp_restored_is_local(const struct dp_cluster *cluster, uint32_t server)
{
    const char *first = cluster->first.host;
    bool alone = strncmp(first, "127.", 4) == 0 || strcmp(first, "localhost") == 0 ||
                 strcmp(first, "::1") == 0 || strcmp(first, "[::1]") == 0;
    return alone || (cluster->server[server].host[0] && is_local(cluster->server[server].host));
}

struct restored_order {
    const struct dp_restored *of;
    const struct dp_restored_stores *o;
    const char *logs;
    bool *keeps_logs; /* a message names one */
};

static enum dp_status start_one(const struct restored_order *order, struct dp_local *local, uint32_t server,
                                struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 64], number[16], name[32];
    enum dp_status st = dp_installed_program("downpour-server", program, sizeof program, err);
    (void)snprintf(number, sizeof number, "%" PRIu32, server);
    (void)snprintf(name, sizeof name, "server %" PRIu32,
                   server); /* as in its log, which has its last words */
    (void)snprintf(log, sizeof log, "%s/log/server-%" PRIu32 ".log", order->logs, server);
    const char *argv[13] = {program,
                            "--cluster",
                            order->o->file,
                            "--server",
                            number,
                            "--restore",
                            order->of->checkpoint.text,
                            "--history",
                            order->of->history};
    size_t n = 9; /* the rest is NULL */
    if (order->o->overwrite)
        argv[n++] = "--overwrite";
    if (order->o->without) {
        argv[n++] = "--without";
        argv[n++] = order->o->without;
    }
    return st == DP_OK ? dp_local_start(local, DP_LOCAL_WORKER, name, argv, log, order->o->lock, err) : st;
}

static enum dp_status await(const struct restored_order *order, struct dp_local *local, struct dp_error *err)
{
    while (dp_local_running(local, DP_LOCAL_WORKER) > 0 && !dp_local_failed(local) && !dp_local_signal(local))
        dp_local_wait(local, LOOK_MS);
    if (dp_local_signal(local))
        return dp_fail(err, DP_STOPPING, "interrupted; no store is replaced");
    if (!dp_local_failed(local))
        return DP_OK;
    char words[400];
    if (dp_local_log_tail(local, words, sizeof words))
        return dp_fail(err, DP_DATA, "%s", words);
    dp_local_explain(local, stderr);
    *order->keeps_logs = true;
    return dp_fail(err, DP_DATA, "%s; no store is replaced", words);
}

/* ---- files of the checkpoint itself */

static enum dp_status bring_file(const struct dp_restored *restored, const struct dp_manifest_file *file,
                                 const char *to, struct dp_error *err)
{
    struct dp_checkpoint_path from;
    struct dp_atomic_file out = {0};
    void *bytes = NULL;
    const struct dp_restore_file source = {
        .from = from.text, .bytes = file->bytes, .checksum = file->checksum};
    enum dp_status st = path_of(restored, file, &from, err);
    if (st == DP_OK)
        st = dp_restore_file_read(&source, &bytes, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(to, &out, err);
    if (st == DP_OK) {
        (void)fwrite(bytes, 1, file->bytes, out.stream);
        st = dp_atomic_file_commit(&out, err);
    }
    free(bytes);
    return st;
}

static enum dp_status bring_log(const struct dp_restored *restored, const struct dp_manifest_file *file,
                                const char *steps, struct dp_error *err)
{
    char path[DP_PATH_MAX + 32];
    uint32_t worker = 0;
    DP_ASSERT(dp_checkpoint_name_step_log(file->name, &worker)); /* manifest.h */
    enum dp_status st = dp_cluster_step_log(steps, worker, path, sizeof path, err);
    return st == DP_OK ? bring_file(restored, file, path, err) : st;
}

/* Figures alone depend on them. */
static void bring_logs(const struct dp_restored *restored, const struct dp_cluster *cluster)
{
    const struct dp_manifest_files *logs = &restored->manifest.step_logs;
    struct dp_cluster of = *cluster;
    char directory[DP_PATH_MAX + 1];
    struct dp_error why = {0};
    if (of.training.run == 0)
        of.training.run = restored->manifest.position.run;
    enum dp_status st = dp_cluster_dir_of_run(&of, directory, &why);
    if (st == DP_OK && directory[0] && logs->count > 0)
        st = dp_directory_make(directory, &why);
    for (size_t i = 0; i < logs->count && of.training.steps[0]; i++) {
        struct dp_error err = why;
        if (st != DP_OK || bring_log(restored, &logs->file[i], of.training.steps, &err) != DP_OK)
            fprintf(stderr, "downpour: warning: %s; the report will lack its figures\n", err.text);
    }
}

/* Whether the cluster file and the checkpoint's side files are of one run. */
static bool is_of_its_run(const struct dp_restored *restored, const struct dp_cluster *cluster)
{
    struct dp_cluster *was = NULL;
    struct dp_error unheard = {0};
    bool same =
        dp_restored_cluster(restored, &was, &unheard) == DP_OK && was->training.run == cluster->training.run;
    dp_cluster_free(&was);
    return same;
}

/* Without them the run still trains: the checkpoint keeps what could not be brought. */
static void bring_side_files(const struct dp_restored *restored, const struct dp_cluster *cluster)
{
    if (!is_of_its_run(restored, cluster))
        return;
    for (int i = 0; i < DP_SIDE_FILES; i++) {
        struct dp_error err = {0};
        const struct dp_manifest_file *file = &restored->manifest.side[i];
        const char *to = dp_cluster_side(&cluster->data, i);
        if (file->name && to[0] && bring_file(restored, file, to, &err) != DP_OK)
            fprintf(stderr, "downpour: warning: %s; the run lacks its %s\n", err.text, dp_side_files[i].key);
    }
}

/* ---- all */

static enum dp_status build(const struct restored_order *order, struct dp_local *local, uint32_t *done,
                            struct dp_error *err)
{
    const struct dp_cluster *cluster = order->o->cluster;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++) {
        if (!dp_restored_is_local(cluster, i))
            continue;
        st = start_one(order, local, i, err);
        *done += st == DP_OK;
    }
    return st == DP_OK ? await(order, local, err) : st;
}

/* store[i]: of server i; NULL: it is on another machine. */
static void list_stores(const struct dp_cluster *cluster, const char **store)
{
    for (uint32_t i = 0; i < cluster->server_count; i++)
        store[i] = dp_restored_is_local(cluster, i) ? cluster->server[i].store : NULL;
}

enum dp_status dp_restored_complete(const struct dp_cluster *cluster, struct dp_error *err)
{
    const char **store = calloc(cluster->server_count, sizeof *store);
    if (!store)
        return dp_fail(err, DP_NOMEM, "looking for an interrupted restore");
    list_stores(cluster, store);
    enum dp_status st = dp_restore_exchange_complete(store, cluster->server_count, err);
    for (uint32_t i = 0; st == DP_OK && i < cluster->server_count; i++)
        if (store[i] && dp_restore_exchange_is_left(store[i]))
            fprintf(
                stderr,
                "downpour: a restore was interrupted before it replaced '%s': the store of before is used\n",
                store[i]);
    free(store);
    return st;
}

static enum dp_status exchange(const struct restored_order *order, const char *const *store, uint64_t history,
                               struct dp_error *err)
{
    const struct dp_restored_stores *o = order->o;
    enum dp_status st = o->before_exchange ? o->before_exchange(o->context, err) : DP_OK;
    if (st == DP_OK)
        st = dp_restore_exchange_all(store, o->cluster->server_count, history, err);
    if (st == DP_OK)
        dp_restore_exchange_clean(store, o->cluster->server_count);
    return st;
}

static enum dp_status build_and_exchange(const struct restored_order *order, struct dp_local *local,
                                         const char **store, uint32_t *done, struct dp_error *err)
{
    uint32_t servers = order->o->cluster->server_count;
    uint64_t history = dp_restore_history(&order->of->manifest, order->of->history);
    list_stores(order->o->cluster, store);
    enum dp_status st = dp_restore_exchange_complete(store, servers, err);
    if (st == DP_OK)
        st = build(order, local, done, err);
    /* None of them runs now that could build on. */
    (void)dp_local_stop(local, DP_LOCAL_WORKER, STOP_MS);
    /* A command that is killed in between leaves no store without its names. */
    if (st == DP_OK)
        bring_side_files(order->of, order->o->cluster);
    if (st == DP_OK && *done == servers)
        st = exchange(order, store, history, err);
    if (st != DP_OK)
        dp_restore_exchange_take_back(store, servers, history);
    return st;
}

enum dp_status dp_restored_stores(struct dp_restored *restored, const struct dp_restored_stores *options,
                                  uint32_t *done, struct dp_error *err)
{
    char logs[DP_PATH_MAX + 1] = "";
    bool keeps_logs = false;
    struct dp_local *local = NULL;
    uint64_t word;
    const char **store = calloc(options->cluster->server_count, sizeof *store);
    DP_ASSERT(getrandom(&word, sizeof word, 0) == (ssize_t)sizeof word);
    (void)snprintf(restored->history, sizeof restored->history, "%016" PRIx64, word | 1);
    const struct restored_order order = {
        .of = restored, .o = options, .logs = logs, .keeps_logs = &keeps_logs};
    *done = 0;
    enum dp_status st = store ? dp_scratch_make(logs, err) : dp_fail(err, DP_NOMEM, "restoring the stores");
    if (st == DP_OK)
        st = dp_local_open(&local, err);
    if (st == DP_OK)
        st = build_and_exchange(&order, local, store, done, err);
    if (st == DP_OK)
        bring_logs(restored, options->cluster);
    int signal = local ? dp_local_signal(local) : 0;
    dp_local_close(&local);
    if (!keeps_logs)
        dp_scratch_remove(logs);
    free(store);
    return signal && st == DP_OK ? dp_fail(err, DP_STOPPING, "interrupted") : st;
}

/* ---- to be read */

/* Another number of shards than the checkpoint's: rows are then written into new stores, and no journal is left beside them. */
static enum dp_status lay_out(const struct dp_folder *folder, const struct dp_restored *restored,
                              struct dp_cluster *cluster, struct dp_error *err)
{
    struct dp_cluster_server *server = calloc(1, sizeof *server);
    if (!server)
        return dp_fail(err, DP_NOMEM, "no memory for a server");
    free(cluster->server);
    cluster->server = server;
    cluster->server_count = 1;
    dp_cluster_uncount(cluster);
    cluster->relative_to = DP_CLUSTER_FILE;
    server->shards = restored->manifest.shards == 1 ? 2 : 1;
    (void)snprintf(server->host, sizeof server->host, "127.0.0.1");
    enum dp_status st = dp_folder_path(folder, server->store, err, "store/server-0");
    if (st == DP_OK)
        st = dp_folder_side_files(folder, &cluster->data, err);
    if (!restored->manifest.side[DP_SIDE_NAMES].name)
        cluster->data.names[0] = '\0';
    if (!restored->manifest.side[DP_SIDE_COLUMNS].name)
        cluster->data.columns[0] = '\0';
    if (!restored->manifest.side[DP_SIDE_INTERACTIONS].name)
        cluster->data.interactions[0] = '\0';
    if (st == DP_OK)
        st = dp_ports_choose(cluster, 0, err);
    return st == DP_OK ? dp_cluster_write(cluster, folder->conf, err) : st;
}

static enum dp_status check_names(const struct dp_restored *restored, struct dp_error *err)
{
    return restored->manifest.side[DP_SIDE_NAMES].name
               ? DP_OK
               : dp_fail(
                     err, DP_NOT_FOUND,
                     "the checkpoint %s has no names of its keys (it was made where the run's directory is "
                     "not, or by an older build): use numbers with --no-names, or export the run's "
                     "directory",
                     restored->checkpoint.text);
}

enum dp_status dp_restored_scratch(const char *from, bool names, char *path, struct dp_error *err)
{
    struct dp_restored restored;
    struct dp_cluster *cluster = NULL;
    struct dp_folder folder = {.lock = -1};
    char store[DP_PATH_MAX + 1];
    uint32_t done;
    path[0] = '\0';
    enum dp_status st = dp_restored_find(from, &restored, err);
    if (st == DP_OK && names)
        st = check_names(&restored, err);
    if (st == DP_OK)
        st = dp_restored_cluster(&restored, &cluster, err);
    if (st == DP_OK)
        st = dp_scratch_make(path, err);
    (void)snprintf(folder.path, sizeof folder.path, "%s", path);
    if (st == DP_OK)
        st = dp_folder_path(&folder, folder.conf, err, "cluster.conf");
    if (st == DP_OK)
        st = dp_folder_path(&folder, store, err, "store");
    if (st == DP_OK && mkdir(store, 0777) != 0)
        st = dp_fail(err, DP_IO, "cannot make a directory '%s': %s", store, strerror(errno));
    if (st == DP_OK)
        st = lay_out(&folder, &restored, cluster, err);
    if (st == DP_OK)
        st = dp_restored_stores(
            &restored, &(struct dp_restored_stores){.file = folder.conf, .cluster = cluster, .lock = -1},
            &done, err);
    dp_cluster_free(&cluster);
    dp_restored_clear(&restored);
    return st;
}
