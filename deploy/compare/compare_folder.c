#include "deploy/compare/compare_folder.h"

#include "common/env/directory.h"
#include "deploy/cli/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LONGER      160u /* bytes that names in it add to the directory's at most, */
#define PATH_LONGER 160u /* those that a caller names among them */

static enum dp_status take_lock(const char *dir, int *lock, struct dp_error *err)
{
    char path[DP_PATH_MAX + LONGER];
    (void)snprintf(path, sizeof path, "%s/lock", dir);
    *lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*lock < 0)
        return dp_fail(err, DP_IO, "cannot open '%s': %s", path, strerror(errno));
    return flock(*lock, LOCK_EX | LOCK_NB) == 0
               ? DP_OK
               : dp_fail(err, DP_IN_USE,
                         "another comparison is running in '%.300s': wait for its end, or name another --dir",
                         dir);
}

/* But for the lock. */
static bool is_empty(const char *dir)
{
    DIR *open = opendir(dir);
    bool empty = open != NULL;
    for (struct dirent *one; open && empty && (one = readdir(open));)
        empty = strcmp(one->d_name, ".") == 0 || strcmp(one->d_name, "..") == 0 ||
                strcmp(one->d_name, "lock") == 0;
    if (open)
        (void)closedir(open);
    return empty;
}

static bool has_comparison(const char *dir)
{
    char path[DP_PATH_MAX + LONGER];
    (void)snprintf(path, sizeof path, "%s/report.json", dir);
    json_t *root = json_load_file(path, 0, NULL);
    const char *kind = json_string_value(json_object_get(root, "kind"));
    bool found = kind && strcmp(kind, "comparison") == 0;
    json_decref(root);
    return found;
}

enum dp_status dp_compare_folder_remove(const char *dir, const char *name, struct dp_error *err)
{
    char path[DP_PATH_MAX + PATH_LONGER], gone[sizeof path];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    memcpy(gone, path, sizeof path);
    dp_scratch_remove(gone);
    return access(path, F_OK) != 0
               ? DP_OK
               : dp_fail(err, DP_IO, "cannot remove '%.300s' of the earlier comparison: %s", path,
                         strerror(errno));
}

/* The report last: while it is there, a removal that was cut off can be made again. */
static enum dp_status remove_earlier(const char *dir, struct dp_error *err)
{
    static const char *const names[] = {"runs",       "grid",     "report.html", "figures",
                                        "curves.csv", "runs.csv", "report.json"};
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof names / sizeof names[0]; i++)
        st = dp_compare_folder_remove(dir, names[i], err);
    return st;
}

enum dp_status dp_compare_folder_clear(const char *dir, struct dp_error *err)
{
    enum dp_status st = dp_compare_folder_remove(dir, "cache", err);
    return st == DP_OK ? remove_earlier(dir, err) : st;
}

enum dp_status dp_compare_folder_open(const char *dir, enum dp_compare_earlier_is earlier, int *lock,
                                      struct dp_error *err)
{
    *lock = -1;
    if (strlen(dir) + LONGER > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "--dir: the name is too long");
    enum dp_status st = dp_directory_make(dir, err);
    if (st == DP_OK && !is_empty(dir) && !has_comparison(dir))
        return dp_fail(err, DP_EXISTS, "'%.300s' has other files: name another --dir", dir);
    if (st == DP_OK)
        st = take_lock(dir, lock, err);
    if (st != DP_OK || is_empty(dir))
        return st;
    if (earlier == DP_COMPARE_REFUSED)
        return dp_fail(
            err, DP_EXISTS,
            "a comparison is in '%.300s' already: name another --dir, or give --overwrite to replace it, or "
            "--resume to continue an interrupted one ('downpour report' makes its page again)",
            dir);
    return earlier == DP_COMPARE_REMOVED ? remove_earlier(dir, err) : DP_OK;
}
