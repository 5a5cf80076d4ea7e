#include "deploy/run/folder.h"

#include "common/env/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- names, and what is there */

enum dp_status dp_folder_path(const struct dp_folder *folder, char *out, struct dp_error *err,
                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = snprintf(out, DP_PATH_MAX + 1, "%s/", folder->run[0] ? folder->run : folder->path);
    if (n <= DP_PATH_MAX)
        n += vsnprintf(out + n, (size_t)(DP_PATH_MAX + 1 - n), format, args);
    va_end(args);
    if (n > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "paths in '%s' would be longer than %d bytes: choose a shorter --dir", folder->path,
                       DP_PATH_MAX);
    return DP_OK;
}

enum dp_status dp_folder_select(struct dp_folder *folder, uint32_t number, struct dp_error *err)
{
    char conf[DP_PATH_MAX + 1];
    folder->run[0] = '\0';
    enum dp_status st = dp_folder_path(folder, conf, err, "runs/%" PRIu32 "/cluster.conf", number);
    if (st != DP_OK)
        return st;
    folder->number = number;
    memcpy(folder->conf, conf, sizeof conf);
    memcpy(folder->run, conf, sizeof conf);
    *strrchr(folder->run, '/') = '\0';
    return DP_OK;
}

bool dp_folder_has_run(const struct dp_folder *folder)
{
    return folder->run[0] && access(folder->conf, F_OK) == 0;
}

static bool has_servers(const struct dp_folder *folder)
{
    char store[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    bool found = false;
    DIR *dir = dp_folder_path(folder, store, &unheard, "store") == DP_OK ? opendir(store) : NULL;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        found = found || strncmp(entry->d_name, "server-", 7) == 0;
    if (dir)
        (void)closedir(dir);
    return found;
}

/* The version before kept its one run in the directory itself. */
static enum dp_status older_version(const struct dp_folder *folder, struct dp_error *err)
{
    char dir[DP_PATH_QUOTED];
    return dp_fail(
        err, DP_EXISTS,
        "the run in '%.200s' is of an older version: predict, export and inspect read it, but it cannot "
        "be trained on in place. Name another --dir; or finish it with that version; or train on from "
        "its weights: downpour export --from %.300s --to TENSORS --slots, downpour import, downpour run "
        "--from",
        folder->path, dp_path_quote(folder->path, dir));
}

enum dp_status dp_folder_check_foreign(const struct dp_folder *folder, struct dp_error *err)
{
    char store[DP_PATH_MAX + 8];
    struct stat info;
    (void)snprintf(store, sizeof store, "%s/store", folder->path);
    if (dp_folder_has_run(folder))
        return DP_OK;
    if (!folder->run[0] && access(folder->conf, F_OK) == 0)
        return has_servers(folder)
                   ? older_version(folder, err)
                   : dp_fail(
                         err, DP_EXISTS,
                         "'%.300s' was not written by 'downpour run', which would overwrite it: to use its "
                         "settings give --cluster and another --dir",
                         folder->conf);
    if (has_servers(folder))
        return dp_fail(
            err, DP_EXISTS,
            "'%.300s' holds servers' stores, but cluster.conf, which says of which run they "
            "are, is missing beside it: put it back; or, if they are not a run's, name another --dir",
            store);
    if (!folder->run[0] && lstat(store, &info) == 0 && S_ISLNK(info.st_mode))
        return dp_fail(
            err, DP_EXISTS,
            "'%.300s' is a link, which no run uses: name a --dir where the stores are to lie, or remove it",
            store);
    return DP_OK;
}

uint32_t dp_folder_number(const char *name)
{
    char *end = NULL;
    unsigned long number = name[0] >= '1' && name[0] <= '9' ? strtoul(name, &end, 10) : 0;
    return end && *end == '\0' && number <= INT32_MAX ? (uint32_t)number : 0;
}

uint32_t dp_folder_highest(const struct dp_folder *folder, bool complete)
{
    char conf[DP_PATH_MAX + 64];
    uint32_t highest = 0;
    (void)snprintf(conf, sizeof conf, "%s/runs", folder->path);
    DIR *dir = opendir(conf);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        uint32_t number = dp_folder_number(entry->d_name);
        (void)snprintf(conf, sizeof conf, "%s/runs/%" PRIu32 "/cluster.conf", folder->path, number);
        if (number > highest && (!complete || access(conf, F_OK) == 0))
            highest = number;
    }
    if (dir)
        (void)closedir(dir);
    return highest;
}

/* ---- opening: the lock, and which run is the current one */

static enum dp_status in_use(const struct dp_folder *folder, struct dp_error *err)
{
    return dp_fail(
        err, DP_IN_USE,
        "'%s' is in use by another downpour command or its servers: wait for it, or choose another "
        "directory",
        folder->path);
}

static enum dp_status take_lock(struct dp_folder *folder, const char *path, struct dp_error *err)
{
    folder->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock < 0)
        return dp_fail(err, DP_IO, "cannot write '%s': %s", path, strerror(errno));
    if (flock(folder->lock, LOCK_EX | LOCK_NB) != 0)
        return in_use(folder, err);
    return DP_OK;
}

/* Runs without the link that says which is in use: the directory was copied without its links. */
static enum dp_status check_linked(const struct dp_folder *folder, struct dp_error *err)
{
    uint32_t highest = dp_folder_highest(folder, true);
    if (highest == 0)
        return DP_OK;
    return dp_fail(
        err, DP_NOT_FOUND,
        "'%.150s/current', the link to the run in use, is missing or leads nowhere: copy the directory with "
        "its links; or make the link there: ln -sfn runs/%" PRIu32 " current",
        folder->path, highest);
}

/* A copy that has followed the links can be read. */
static enum dp_status find(struct dp_folder *out, bool to_read, struct dp_error *err)
{
    char current[DP_PATH_MAX + 1], to[64];
    int end = 0;
    out->run[0] = '\0';
    out->number = 0;
    enum dp_status st = dp_folder_path(out, current, err, "current");
    ssize_t size = st == DP_OK ? readlink(current, to, sizeof to - 1) : -1;
    to[size > 0 ? size : 0] = '\0';
    bool linked = sscanf(to, "runs/%10" SCNu32 "%n", &out->number, &end) == 1 && to[end] == '\0',
         there = false;
    if (st == DP_OK && access(current, F_OK) != 0) {
        out->number = 0;
        st = check_linked(out, err);
    } else if (st == DP_OK && !linked && !to_read) {
        st = dp_fail(err, DP_DATA,
                     "'%.200s' is no link to runs/N, as in a copy that has followed the links: copy the "
                     "directory with "
                     "its links (cp -a, rsync -a, tar)",
                     current);
    } else {
        there = st == DP_OK;
    }
    if (there && linked)
        return dp_folder_select(out, out->number, err);
    if (there)
        memcpy(out->run, current, sizeof out->run);
    return st == DP_OK ? dp_folder_path(out, out->conf, err, "cluster.conf") : st;
}

enum dp_status dp_folder_find(const char *path, struct dp_folder *out, struct dp_error *err)
{
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_path_absolute(path, out->path, err);
    return st == DP_OK ? find(out, true, err) : st;
}

enum dp_status dp_folder_find_running(const char *path, struct dp_folder *out, struct dp_error *err)
{
    char name[DP_PATH_MAX + 8];
    enum dp_status st = dp_folder_find(path, out, err);
    uint32_t newest = st == DP_OK ? dp_folder_highest(out, true) : 0;
    if (newest <= out->number)
        return st;
    (void)snprintf(name, sizeof name, "%s/lock", out->path);
    int lock = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool held = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (lock >= 0)
        (void)close(lock);
    return held ? dp_folder_select(out, newest, err) : DP_OK;
}

enum dp_status dp_folder_open(const char *path, struct dp_folder *out, struct dp_error *err)
{
    char name[DP_PATH_MAX + 1];
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_path_absolute(path, out->path, err);
    if (st == DP_OK)
        st = dp_directory_make(out->path, err);
    if (st == DP_OK)
        st = dp_folder_path(out, name, err, "lock");
    if (st == DP_OK)
        st = take_lock(out, name, err);
    if (st == DP_OK)
        st = find(out, false, err);
    if (st != DP_OK)
        dp_folder_close(out);
    return st;
}

/* With what shares it. A run's directory has a lock, but a copy need not; a file system without locks is read without. */
/* `dir` of a cluster file has a run's files, but neither its stores nor its settings. */
static bool is_of_cluster(const struct dp_folder *folder)
{
    char runs[DP_PATH_MAX + 1], report[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    return dp_folder_path(folder, runs, &unheard, "runs") == DP_OK && access(runs, F_OK) == 0 &&
           dp_folder_path(folder, report, &unheard, "report.json") == DP_OK && access(report, F_OK) == 0;
}

static enum dp_status share_lock(struct dp_folder *folder, const char *path, struct dp_error *err)
{
    folder->lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (folder->lock < 0 && errno != ENOENT)
        return dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    return folder->lock >= 0 && flock(folder->lock, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK
               ? in_use(folder, err)
               : DP_OK;
}

enum dp_status dp_folder_open_to_read(const char *path, struct dp_folder *out, struct dp_error *err)
{
    char lock[DP_PATH_MAX + 1];
    struct stat info;
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_path_absolute(path, out->path, err);
    if (st == DP_OK)
        st = dp_folder_path(out, lock, err, "lock");
    if (st == DP_OK && stat(out->path, &info) == 0 && !S_ISDIR(info.st_mode))
        st = dp_fail(err, DP_ARGUMENT,
                     "'%.200s' is a file, not the directory of a run: unpack an archive, and name the "
                     "directory in it",
                     path);
    if (st == DP_OK)
        st = find(out, true, err);
    if (st == DP_OK && access(out->conf, R_OK) != 0)
        st =
            errno == EACCES
                ? dp_fail(err, DP_IO, "cannot read '%.300s': %s", out->conf, strerror(EACCES))
                : dp_fail(err, DP_NOT_FOUND,
                          "'%.200s' is not the directory of a run: it has no cluster.conf%s", path,
                          is_of_cluster(out) ? "; it seems to be 'dir' of a cluster: name the cluster's file "
                                               "(--cluster FILE), or a checkpoint of it"
                                             : "");
    if (st == DP_OK)
        st = share_lock(out, lock, err);
    if (st != DP_OK)
        dp_folder_close(out);
    return st;
}

void dp_folder_close(struct dp_folder *folder)
{
    if (folder->lock >= 0)
        (void)close(folder->lock);
    folder->lock = -1;
}
