/* The run that --fresh replaces, until the new one is known to train.
 *     set_aside: store, report, run, cluster.conf -> DIR/before-fresh  ->  (the new run trains) -> removed
 *                                                                      ->  (it does not, or is killed) -> put back
 * Why       A new run may fail on its data or its model, minutes after it began: that must not cost a trained store.
 * Order     Each part is moved by one rename, and put back by one. Whatever is in before-fresh is the earlier run's, and what has the
 *           same name beside it the new one's: so a command that was killed between two renames is undone part by part. A run that
 *           is to be removed takes another name first, and loses its cluster file last. */
#include "deploy/cli/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASIDE    "before-fresh"
#define REMOVING "before-fresh.removing"

static const char *const parts[] = {"store",        "report.json", "report.html",
                                    "samples.json", "run",         "cluster.conf"};
#define PARTS (sizeof parts / sizeof parts[0])

/* `name` in the directory as a run's directory of its own. *there: it is one. */
static enum dp_status inner(const struct dp_folder *folder, const char *name, struct dp_folder *out,
                            bool *there, struct dp_error *err)
{
    struct stat info;
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_folder_path(folder, out->path, err, "%s", name);
    if (st == DP_OK)
        st = dp_folder_path(out, out->conf, err, "cluster.conf");
    *there = st == DP_OK && lstat(out->path, &info) == 0 && S_ISDIR(info.st_mode);
    return st;
}

static enum dp_status rename_part(const struct dp_folder *from, const struct dp_folder *to, const char *name,
                                  struct dp_error *err)
{
    char a[DP_PATH_MAX + 1], b[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(from, a, err, "%s", name);
    if (st == DP_OK)
        st = dp_folder_path(to, b, err, "%s", name);
    if (st == DP_OK && rename(a, b) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "cannot rename '%.300s' to '%.300s': %s", a, b, strerror(errno));
    return st;
}

/* What is left in one store when all that is ours has been removed is somebody's: it stays in the other. */
static enum dp_status move_rest(const struct dp_folder *from, const struct dp_folder *to,
                                struct dp_error *err)
{
    char path[DP_PATH_MAX + 1], name[300];
    enum dp_status st = dp_folder_path(from, path, err, "store");
    DIR *dir = st == DP_OK ? opendir(path) : NULL;
    if (!dir)
        return st;
    for (struct dirent *entry = readdir(dir); st == DP_OK && entry; entry = readdir(dir)) {
        (void)snprintf(name, sizeof name, "store/%s", entry->d_name);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            st = rename_part(from, to, name, err);
    }
    (void)closedir(dir);
    if (st == DP_OK && rmdir(path) != 0)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno));
    return st;
}

static enum dp_status remove_aside(const struct dp_folder *folder, const struct dp_folder *removing,
                                   struct dp_error *err)
{
    enum dp_status st = dp_folder_clear_store(removing, err);
    if (st == DP_OK)
        st = move_rest(removing, folder, err);
    if (st == DP_OK)
        st = dp_folder_clear(removing, false, err);
    if (st == DP_OK && rmdir(removing->path) != 0)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", removing->path, strerror(errno));
    return st;
}

/* The link alone would be moved: what is behind it is in another place, where the new run's store was meant to lie too. */
static enum dp_status check_no_link(const struct dp_folder *folder, const char *store, struct dp_error *err)
{
    struct stat info;
    if (lstat(store, &info) != 0 || !S_ISLNK(info.st_mode))
        return DP_OK;
    return dp_fail(err, DP_EXISTS,
                   "'%.300s' is a link, and --fresh cannot set aside a run behind a link: name another "
                   "--dir, or first remove its contents and '%.300s'",
                   store, folder->conf);
}

enum dp_status dp_folder_set_aside(const struct dp_folder *folder, struct dp_error *err)
{
    struct dp_folder aside;
    char store[DP_PATH_MAX + 1];
    bool there;
    enum dp_status st = dp_folder_path(folder, store, err, "store");
    if (st == DP_OK)
        st = check_no_link(folder, store, err);
    if (st == DP_OK)
        st = inner(folder, ASIDE, &aside, &there, err);
    if (st == DP_OK && mkdir(aside.path, 0777) != 0)
        st = dp_fail(err, DP_IO, "cannot make directory '%s': %s", aside.path, strerror(errno));
    for (size_t i = 0; st == DP_OK && i < PARTS; i++)
        st = rename_part(folder, &aside, parts[i], err);
    if (st == DP_OK && mkdir(store, 0777) != 0)
        st = dp_fail(err, DP_IO, "cannot make directory '%s': %s", store, strerror(errno));
    return st;
}

/* *there: a run is set aside. The rest of one whose removal was cut short goes. */
static enum dp_status find_aside(const struct dp_folder *folder, struct dp_folder *aside,
                                 struct dp_folder *removing, bool *there, struct dp_error *err)
{
    bool removes;
    enum dp_status st = inner(folder, ASIDE, aside, there, err);
    if (st == DP_OK)
        st = inner(folder, REMOVING, removing, &removes, err);
    return st == DP_OK && removes ? remove_aside(folder, removing, err) : st;
}

enum dp_status dp_folder_drop_aside(const struct dp_folder *folder, struct dp_error *err)
{
    struct dp_folder aside, removing;
    bool there;
    enum dp_status st = find_aside(folder, &aside, &removing, &there, err);
    if (st != DP_OK || !there)
        return st;
    if (rename(aside.path, removing.path) != 0)
        return dp_fail(err, DP_IO, "cannot rename '%s': %s", aside.path, strerror(errno));
    return remove_aside(folder, &removing, err);
}

/* The new run's gives way. */
static enum dp_status put_back_store(const struct dp_folder *folder, const struct dp_folder *aside,
                                     struct dp_error *err)
{
    char store[DP_PATH_MAX + 1];
    struct stat info;
    enum dp_status st = dp_folder_path(aside, store, err, "store");
    if (st != DP_OK || lstat(store, &info) != 0)
        return st;
    st = dp_folder_clear_store(folder, err);
    if (st == DP_OK)
        st = move_rest(folder, aside, err);
    return st == DP_OK ? rename_part(aside, folder, "store", err) : st;
}

enum dp_status dp_folder_put_back(const struct dp_folder *folder, bool *was_aside, struct dp_error *err)
{
    struct dp_folder aside, removing;
    bool there;
    enum dp_status st = find_aside(folder, &aside, &removing, &there, err);
    *was_aside = there;
    if (st != DP_OK || !there)
        return st;
    st = put_back_store(folder, &aside, err);
    for (size_t i = 1; st == DP_OK && i < PARTS;
         i++) /* the cluster file last: what is killed before is done again */
        st = rename_part(&aside, folder, parts[i], err);
    if (st == DP_OK && rmdir(aside.path) != 0)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", aside.path, strerror(errno));
    return st;
}

bool dp_folder_is_aside(const struct dp_folder *folder, struct dp_folder *out)
{
    struct dp_error unheard = {0};
    bool there = false;
    return inner(folder, ASIDE, out, &there, &unheard) == DP_OK && there && dp_folder_has_run(out);
}
