/* The runs of a directory: a new one is made next to the current one, and takes its place by one rename.
 *     next (its name) -> make -> (it trains) -> accept: rename `current`, then remove what has another store
 *                             -> (it does not, or is killed) -> the next make removes it
 * Why       A new run may fail on its data or its model, minutes after it began: that must not cost a trained store.
 * Order     The link is durable before a store is removed. A run that was killed in between is removed by the next one. */
#include "common/env/directory.h"
#include "deploy/run/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONGER 32

static DIR *open_runs(const struct dp_folder *folder)
{
    char runs[DP_PATH_MAX + LONGER];
    (void)snprintf(runs, sizeof runs, "%s/runs", folder->path);
    return opendir(runs);
}

enum dp_status dp_folder_next(const struct dp_folder *was, uint32_t least, struct dp_folder *out,
                              struct dp_error *err)
{
    uint32_t highest = dp_folder_highest(was, false);
    if (highest == INT32_MAX)
        return dp_fail(err, DP_FULL, "'%s' has seen 2^31-1 runs: use another --dir", was->path);
    *out = *was;
    return dp_folder_select(out, highest + 1 > least ? highest + 1 : least, err);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static enum dp_status remove_tree(const char *path, struct dp_error *err)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT
               ? DP_OK
               : dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno));
}

/* Whether a run may go: it is newer than the one that stays, so it was never accepted, or it has another store. */
static bool may_go(const struct dp_folder *stays, uint32_t number)
{
    char path[DP_PATH_MAX + 2 * LONGER], own[PATH_MAX], theirs[PATH_MAX];
    struct dp_error unheard = {0};
    if (number >= stays->number)
        return number > stays->number;
    if (dp_folder_path(stays, path, &unheard, "store") != DP_OK || !realpath(path, own))
        return false; /* it is lost, and may come back */
    (void)snprintf(path, sizeof path, "%s/runs/%" PRIu32 "/store", stays->path, number);
    return !realpath(path, theirs) || strcmp(own, theirs) != 0;
}

/* Else its stores never had the weights of its best epoch. */
static bool is_finished(const char *run)
{
    char path[DP_PATH_MAX + 3 * LONGER];
    (void)snprintf(path, sizeof path, "%s/run.json", run);
    json_t *root = json_load_file(path, 0, NULL);
    bool is = json_is_true(json_object_get(root, "finished"));
    json_decref(root);
    return is;
}

/* Another run's directory, whose store the one that stays continues on, is that of an earlier number, and stays with it. If that run is
 * finished, the checkpoint of its best epoch goes: the store began with its weights. */
static enum dp_status sweep(const struct dp_folder *stays, struct dp_error *err)
{
    char path[DP_PATH_MAX + 2 * LONGER];
    enum dp_status st = DP_OK;
    DIR *dir = open_runs(stays);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; st == DP_OK && entry; entry = readdir(dir)) {
        uint32_t number = dp_folder_number(entry->d_name);
        int size = snprintf(path, sizeof path, "%s/runs/%" PRIu32, stays->path, number);
        if (number == 0 || number == stays->number)
            continue;
        if (may_go(stays, number)) {
            st = remove_tree(path, err);
        } else if (is_finished(path)) {
            (void)snprintf(path + size, sizeof path - (size_t)size, "/" DP_FOLDER_BEST);
            st = remove_tree(path, err);
        }
    }
    if (dir)
        (void)closedir(dir);
    return st;
}

static enum dp_status make_inside(const struct dp_folder *folder, const char *name, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, "%s", name);
    return st == DP_OK ? dp_directory_make(path, err) : st;
}

static enum dp_status make_link(const struct dp_folder *folder, const char *name, const char *to,
                                struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, "%s", name);
    return st != DP_OK || symlink(to, path) == 0 || errno == EEXIST
               ? st
               : dp_fail(err, DP_IO, "cannot make the link '%s': %s", path, strerror(errno));
}

/* The other run's may be a link itself, and all of it may be lost, which --replace-store says. */
static enum dp_status link_store(const struct dp_folder *folder, const struct dp_folder *of,
                                 struct dp_error *err)
{
    char path[DP_PATH_MAX + 1], to[LONGER] = "";
    enum dp_status st = dp_folder_path(of, path, err, "store");
    if (st != DP_OK)
        return st;
    uint32_t number = of->number;
    (void)!readlink(path, to, sizeof to - 1);
    (void)sscanf(to, "../%10" SCNu32 "/store", &number);
    (void)snprintf(to, sizeof to, "../%" PRIu32 "/store", number);
    st = make_inside(folder, to, err);
    return st == DP_OK ? make_link(folder, "store", to, err) : st;
}

enum dp_status dp_folder_make_parts(const struct dp_folder *folder, struct dp_error *err)
{
    enum dp_status st = make_inside(folder, "log", err);
    return st == DP_OK ? make_inside(folder, "store", err) : st;
}

enum dp_status dp_folder_make(const struct dp_folder *folder, const struct dp_folder *was,
                              const struct dp_folder *store_of, struct dp_error *err)
{
    enum dp_status st = sweep(was, err);
    if (st == DP_OK)
        st = dp_directory_make(folder->run, err);
    if (st == DP_OK && store_of)
        st = link_store(folder, store_of, err);
    return st == DP_OK ? dp_folder_make_parts(folder, err) : st;
}

enum dp_status dp_folder_make_cache(const struct dp_folder *folder, struct dp_error *err)
{
    char cache[DP_PATH_MAX + LONGER];
    (void)snprintf(cache, sizeof cache, "%s/cache", folder->path);
    enum dp_status st = dp_directory_make(cache, err);
    return st == DP_OK ? make_link(folder, "cache", "../../cache", err) : st;
}

void dp_folder_show(const struct dp_folder *folder, const char *name)
{
    char path[DP_PATH_MAX + 2 * LONGER], to[2 * LONGER];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    (void)snprintf(to, sizeof to, "current/%s", name);
    (void)!symlink(to, path);
}

/* So that the new link survives a loss of power before a store is removed. */
static enum dp_status sync_directory(const char *path, struct dp_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool synced = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    int why = errno;
    if (fd >= 0)
        (void)close(fd);
    return synced ? DP_OK : dp_fail(err, DP_IO, "cannot write '%s': %s", path, strerror(why));
}

static enum dp_status switch_to(const struct dp_folder *folder, const char *to, struct dp_error *err)
{
    char link[DP_PATH_MAX + LONGER], temp[DP_PATH_MAX + LONGER];
    (void)snprintf(link, sizeof link, "%s/current", folder->path);
    (void)snprintf(temp, sizeof temp, "%s/current.new", folder->path);
    (void)unlink(temp); /* of a command that was killed */
    return symlink(to, temp) == 0 && rename(temp, link) == 0
               ? sync_directory(folder->path, err)
               : dp_fail(err, DP_IO, "cannot make the link '%s': %s", link, strerror(errno));
}

/* What was made of the earlier run only. */
static void hide(const struct dp_folder *folder, const char *name)
{
    char path[DP_PATH_MAX + LONGER];
    (void)snprintf(path, sizeof path, "%s/%s", folder->path, name);
    (void)unlink(path);
}

bool dp_folder_is_current(const struct dp_folder *folder)
{
    char link[DP_PATH_MAX + LONGER], is[LONGER] = "", own[LONGER];
    (void)snprintf(link, sizeof link, "%s/current", folder->path);
    (void)snprintf(own, sizeof own, "runs/%" PRIu32, folder->number);
    return readlink(link, is, sizeof is - 1) > 0 && strcmp(is, own) == 0;
}

enum dp_status dp_folder_accept(const struct dp_folder *folder, struct dp_error *err)
{
    static const char *const shown[] = {"cluster.conf", "report.json", "log", "store"};
    char link[DP_PATH_MAX + LONGER], is[LONGER] = "", to[LONGER];
    (void)snprintf(link, sizeof link, "%s/current", folder->path);
    (void)snprintf(to, sizeof to, "runs/%" PRIu32, folder->number);
    (void)!readlink(link, is, sizeof is - 1);
    enum dp_status st = strcmp(is, to) == 0 ? DP_OK : switch_to(folder, to, err);
    if (st == DP_OK && is[0] && strcmp(is, to) != 0) {
        hide(folder, "samples.json");
        hide(folder, "report.html");
        hide(folder, DP_FOLDER_BEST);
    }
    for (size_t i = 0; st == DP_OK && i < sizeof shown / sizeof shown[0]; i++)
        dp_folder_show(folder, shown[i]);
    return st == DP_OK ? sweep(folder, err) : st;
}

enum dp_status dp_folder_clear_best(const struct dp_folder *folder, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, DP_FOLDER_BEST);
    return st == DP_OK ? remove_tree(path, err) : st;
}

enum dp_status dp_folder_clear_store(const struct dp_folder *folder, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, "store");
    return st == DP_OK ? remove_tree(path, err) : st;
}

enum dp_status dp_folder_drop(const struct dp_folder *folder, struct dp_error *err)
{
    enum dp_status st = dp_folder_clear_store(folder, err);
    if (st == DP_OK && unlink(folder->conf) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", folder->conf, strerror(errno));
    return st;
}
