/* Folder cluster: the cluster of a run's directory, also after the directory was moved.
 *     cluster file -> where it says that the stores are -> those of this directory instead -> all shards are there
 * Why       Cluster files of older builds have absolute paths. In a copied directory such paths lead to the
 *           original, with other weights. So only the form of a path in the file is used, not the path. */
#include "deploy/run/folder.h"

#include "server/layout.h"
#include "server/store/read_lock.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each server's store must have been PLACE/store/server-N, with one PLACE for all: what `downpour run` makes. */
static enum dp_status find_place(const struct dp_cluster *cluster, const struct dp_folder *folder,
                                 char place[DP_PATH_MAX + 1], struct dp_error *err)
{
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        char end[40];
        const char *store = cluster->server[i].store;
        size_t end_len = (size_t)snprintf(end, sizeof end, "store/server-%" PRIu32, i), len = strlen(store);
        bool fits = len >= end_len && strcmp(store + len - end_len, end) == 0;
        size_t place_len = fits ? len - end_len : 0;
        fits = fits && (place_len == 0 || store[place_len - 1] == '/');
        if (fits && i == 0) {
            memcpy(place, store, place_len);
            place[place_len] = '\0';
        }
        if (!fits || strlen(place) != place_len || strncmp(place, store, place_len) != 0)
            return dp_fail(err, DP_DATA,
                           "'%s' puts the store of server %" PRIu32 " in '%s', not in store/server-%" PRIu32
                           " of the run's directory: such a run cannot be moved",
                           folder->conf, i, store, i);
    }
    return DP_OK;
}

/* A newer file is relative to itself: a path elsewhere was written there on purpose. */
static enum dp_status check_place(const struct dp_cluster *cluster, const struct dp_folder *folder,
                                  const char *place, struct dp_error *err)
{
    const char *at = folder->run[0] ? folder->run : folder->path;
    size_t len = strlen(at);
    if (cluster->relative_to != DP_CLUSTER_FILE ||
        (strncmp(place, at, len) == 0 && strspn(place + len, "/") == strlen(place + len)))
        return DP_OK;
    return dp_fail(err, DP_DATA,
                   "'%s' puts the stores in '%sstore', outside of its directory: put the relative paths back",
                   folder->conf, place);
}

static enum dp_status missing(const struct dp_folder *folder, const char *path, struct dp_error *err)
{
    return dp_fail(err, errno == ENOENT || errno == ENOTDIR ? DP_NOT_FOUND : DP_IO,
                   "the run in '%.300s' is not complete: '%.300s': %s; bring it back", folder->path, path,
                   strerror(errno));
}

/* There, and not by way of a link that leads out of the directory: a copy has that link, too. what: for messages. */
static enum dp_status check_inside(const struct dp_folder *folder, const char *path, const char *what,
                                   struct dp_error *err)
{
    char real[PATH_MAX], root[PATH_MAX];
    if (!realpath(path, real))
        return missing(folder, path, err);
    if (!realpath(folder->path, root))
        return missing(folder, folder->path, err);
    size_t len = strlen(root);
    if (strncmp(real, root, len) != 0 || real[len] != '/')
        return dp_fail(err, DP_DATA,
                       "'%.300s' leads to '%.300s', outside of the run's directory: put the %s in the "
                       "place of the link (or mount it there)",
                       path, real, what);
    return DP_OK;
}

/* Each file of it, too: rows and journal are read by their names. */
static enum dp_status check_files(const struct dp_folder *folder, const char *directory, struct dp_error *err)
{
    char path[DP_PATH_MAX + 64 + NAME_MAX];
    enum dp_status st = DP_OK;
    DIR *dir = opendir(directory);
    if (!dir)
        return errno == ENOENT ? DP_OK : missing(folder, directory, err);
    for (struct dirent *entry = readdir(dir); st == DP_OK && entry; entry = readdir(dir)) {
        int len = snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        struct stat info;
        if (len > 0 && (size_t)len < sizeof path && lstat(path, &info) == 0 && S_ISLNK(info.st_mode))
            st = check_inside(folder, path, "file or directory", err);
    }
    (void)closedir(dir);
    return st;
}

enum dp_status dp_folder_check_store(const char *server, uint32_t shard, struct dp_error *err)
{
    char path[DP_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32 "/CURRENT", server, shard);
    if (access(path, F_OK) == 0)
        return DP_OK;
    if (errno != ENOENT && errno != ENOTDIR)
        return dp_fail(err, DP_IO, "'%.300s': %s", path, strerror(errno));
    (void)snprintf(path, sizeof path, "%s.before", server);
    if (access(server, F_OK) != 0 && access(path, F_OK) == 0)
        return dp_fail(err, DP_UNCLEAN,
                       "there is no '%.250s', as a restore was interrupted: 'downpour run --resume' or "
                       "'downpour restore' completes it",
                       server);
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32, server, shard);
    return dp_fail(
        err, DP_NOT_FOUND,
        "there is no store in '%.250s': was it removed (as compare does without --keep-stores), or its disk "
        "not mounted? Put it back, or go "
        "back to a checkpoint (downpour restore); or, with --replace-store on `downpour run`, begin shard "
        "%" PRIu32 " anew, whose rows are lost; or, with --fresh, the whole run",
        path, shard);
}

static enum dp_status check_shard(const struct dp_folder *folder, const char *store, uint32_t shard,
                                  struct dp_error *err)
{
    char path[DP_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32 "/CURRENT", store, shard);
    enum dp_status st = dp_folder_check_store(store, shard, err);
    if (st == DP_OK)
        st = check_inside(folder, path, "store", err);
    *strrchr(path, '/') = '\0';
    if (st == DP_OK)
        st = check_files(folder, path, err);
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32 "/journal", store, shard);
    return st == DP_OK ? check_files(folder, path, err) : st;
}

/* One that is missing is missed by who needs it: a run of another format has no columns, and predictions need no names. */
static enum dp_status check_side(const struct dp_folder *folder, const char *what, const char *path,
                                 struct dp_error *err)
{
    size_t len = strlen(folder->path);
    if (!path[0])
        return DP_OK;
    if (strncmp(path, folder->path, len) != 0 || path[len] != '/')
        return dp_fail(err, DP_DATA,
                       "'%s' puts the %s (data.%s) in '%s', outside of its directory: put the "
                       "relative path back",
                       folder->conf, what, what, path);
    return access(path, F_OK) == 0 || errno != ENOENT ? check_inside(folder, path, "file", err) : DP_OK;
}

enum dp_status dp_folder_side_files(const struct dp_folder *folder, struct dp_cluster_data *data,
                                    struct dp_error *err)
{
    char *const path[DP_SIDE_FILES] = {data->names, data->columns, data->interactions};
    enum dp_status st = DP_OK;
    for (int i = 0; st == DP_OK && i < DP_SIDE_FILES; i++)
        st = dp_folder_path(folder, path[i], err, "%s", dp_side_files[i].name);
    return st;
}

enum dp_status dp_folder_cluster(const struct dp_folder *folder, struct dp_cluster **out,
                                 struct dp_error *err)
{
    char place[DP_PATH_MAX + 1] = "";
    struct dp_layout layout = {0};
    bool known;
    enum dp_status st = dp_cluster_read(folder->conf, out, err);
    if (st == DP_OK)
        st = find_place(*out, folder, place, err);
    if (st == DP_OK)
        st = check_place(*out, folder, place, err);
    for (uint32_t i = 0; st == DP_OK && i < (*out)->server_count; i++) {
        struct dp_cluster_server *server = &(*out)->server[i];
        st = dp_folder_path(folder, server->store, err, "store/server-%" PRIu32, i);
        layout.count = server->shards;
        layout.total = dp_cluster_shards(*out);
        if (st == DP_OK) /* another server's, swapped with it */
            st = dp_layout_check(server->store, &layout, true, &known, err);
        for (uint32_t k = 0; st == DP_OK && k < layout.count; k++)
            st = check_shard(folder, server->store, layout.first + k, err);
        layout.first += layout.count;
    }
    for (int i = 0; st == DP_OK && i < DP_SIDE_FILES; i++)
        st = check_side(folder, dp_side_files[i].key, dp_cluster_side(&(*out)->data, i), err);
    if (st != DP_OK) {
        dp_cluster_free(out);
        return st;
    }
    (*out)->data.cache[0] = (*out)->training.report[0] = '\0';
    (*out)->training.threads = 1; /* nothing is trained, and threads would refuse a device that scores */
    return DP_OK;
}

/* A run's cluster file of an older build, with absolute paths, in a directory that is not where it was. */
static bool is_elsewhere(const char *conf, const struct dp_cluster *cluster)
{
    char lock[DP_PATH_MAX + 32], beside[DP_PATH_MAX + 32];
    const char *slash = strrchr(conf, '/'), *store = cluster->server[0].store;
    int len = slash ? (int)(slash - conf) : 1;
    (void)snprintf(lock, sizeof lock, "%.*s/lock", len, slash ? conf : ".");
    (void)snprintf(beside, sizeof beside, "%.*s/store/server-0", len, slash ? conf : ".");
    return store[0] == '/' && access(lock, F_OK) == 0 && access(beside, F_OK) == 0 &&
           !dp_path_same(beside, store);
}

enum dp_status dp_folder_check_live(const char *conf, const struct dp_cluster *cluster, uint32_t shard,
                                    struct dp_error *err)
{
    char path[DP_PATH_MAX + 32];
    uint32_t server = 0;
    if (cluster->relative_to != DP_CLUSTER_FILE)
        return is_elsewhere(conf, cluster)
                   ? dp_fail(
                         err, DP_DATA,
                         "'%.300s' lies beside stores, but names others ('%.300s'): its directory was moved "
                         "or copied, and servers that answer have those others open; ask in that directory",
                         conf, cluster->server[0].store)
                   : DP_OK;
    for (uint32_t before = 0; before + cluster->server[server].shards <= shard; server++)
        before += cluster->server[server].shards;
    (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32, cluster->server[server].store, shard);
    if (access(path, F_OK) != 0 || dp_read_lock_is_used(path))
        return DP_OK;
    return dp_fail(err, DP_DATA,
                   "servers answer at the addresses in '%.200s', but no process has '%.200s' open: "
                   "they are another run's, of which this directory may be a copy; ask in its "
                   "own directory",
                   conf, path);
}
