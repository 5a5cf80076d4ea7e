#include "deploy/cli/folder.h"

#include "common/base/parse.h"
#include "common/env/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN "run"

enum dp_status dp_folder_path(const struct dp_folder *folder, char *out, struct dp_error *err,
                              const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = snprintf(out, DP_PATH_MAX + 1, "%s/", folder->path);
    if (n <= DP_PATH_MAX)
        n += vsnprintf(out + n, (size_t)(DP_PATH_MAX + 1 - n), format, args);
    va_end(args);
    if (n > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "paths in '%s' would be longer than %d bytes: choose a shorter --dir", folder->path,
                       DP_PATH_MAX);
    return DP_OK;
}

/* "server-12", and with a suffix "server-12.log": what runs are known to make. */
static bool is_numbered(const char *name, const char *stem, const char *suffix)
{
    size_t len = strlen(stem);
    if (strncmp(name, stem, len) != 0 || name[len] < '0' || name[len] > '9')
        return false;
    len += strspn(name + len, "0123456789");
    return strcmp(name + len, suffix) == 0;
}

/* "steps-3-0.log", of run 3; 0: it is none. */
static uint32_t run_of_steps(const char *name)
{
    unsigned run = 0, worker = 0;
    int end = 0;
    if (sscanf(name, "steps-%9u-%9u.log%n", &run, &worker, &end) != 2 || end == 0)
        return 0;
    return name[end] == '\0' || strcmp(name + end, ".new") == 0 ? run : 0;
}

/* What runs keep beside the servers' stores, a file for each run. */
static const struct kept {
    const char *stem, *suffix;
} kept[] = {{"columns-", ".csv"}, {"names-", ".tsv"}, {"run-", ".json"}, {"origin-", ".json"}};
#define KEPT (sizeof kept / sizeof kept[0])

static bool is_kept(const char *name)
{
    for (size_t i = 0; i < KEPT; i++)
        if (is_numbered(name, kept[i].stem, kept[i].suffix))
            return true;
    return run_of_steps(name) > 0;
}

enum dp_status dp_folder_sweep(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, "store");
    DIR *dir = st == DP_OK ? opendir(path) : NULL;
    if (!dir)
        return st;
    for (struct dirent *entry = readdir(dir); st == DP_OK && entry; entry = readdir(dir)) {
        if (!is_kept(entry->d_name) || strtoull(strchr(entry->d_name, '-') + 1, NULL, 10) == run)
            continue;
        st = dp_folder_path(folder, path, err, "store/%s", entry->d_name);
        if (st == DP_OK && unlink(path) != 0 && errno != ENOENT)
            st = dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno));
    }
    (void)closedir(dir);
    return st;
}

enum dp_status dp_folder_columns(const struct dp_folder *folder, uint32_t run, char *out,
                                 struct dp_error *err)
{
    return dp_folder_path(folder, out, err, "store/columns-%" PRIu32 ".csv", run);
}

enum dp_status dp_folder_steps(const struct dp_folder *folder, uint32_t run, char *out, struct dp_error *err)
{
    return dp_folder_path(folder, out, err, "store/steps-%" PRIu32, run);
}

enum dp_status dp_folder_names(const struct dp_folder *folder, uint32_t run, char *out, struct dp_error *err)
{
    return dp_folder_path(folder, out, err, "store/names-%" PRIu32 ".tsv", run);
}

enum dp_status dp_folder_run(const struct dp_folder *folder, uint32_t *out, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1], text[16] = "";
    uint64_t run = 0;
    *out = 0;
    enum dp_status st = dp_folder_path(folder, path, err, RUN);
    if (st != DP_OK)
        return st;
    FILE *file = fopen(path, "re");
    if (!file && errno == ENOENT)
        return DP_OK;
    if (!file)
        return dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    bool read = fgets(text, sizeof text, file) != NULL;
    (void)fclose(file);
    text[strcspn(text, "\n")] = '\0';
    if (!read || dp_parse_u64(text, 1, INT32_MAX, RUN, &run, NULL) != DP_OK)
        return dp_fail(err, DP_DATA,
                       "'%s' has no run number: write one into it that is higher than that of any run here, "
                       "or use --fresh",
                       path);
    *out = (uint32_t)run;
    return DP_OK;
}

enum dp_status dp_folder_set_run(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    struct dp_atomic_file file;
    enum dp_status st = dp_folder_path(folder, path, err, RUN);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fprintf(file.stream, "%" PRIu32 "\n", run);
    return dp_atomic_file_commit(&file, err);
}

static bool has(const struct dp_folder *folder, const char *name)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    return dp_folder_path(folder, path, &unheard, "%s", name) == DP_OK && access(path, F_OK) == 0;
}

static bool has_conf(const struct dp_folder *folder)
{
    return access(folder->conf, F_OK) == 0 || has(folder, DP_FOLDER_EARLIER);
}

static bool has_servers(const struct dp_folder *folder)
{
    char store[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    bool found = false;
    DIR *dir = dp_folder_path(folder, store, &unheard, "store") == DP_OK ? opendir(store) : NULL;
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        found = found || is_numbered(entry->d_name, "server-", "");
    if (dir)
        (void)closedir(dir);
    return found;
}

bool dp_folder_has_run(const struct dp_folder *folder)
{
    return has_conf(folder) && (has_servers(folder) || has(folder, RUN));
}

enum dp_status dp_folder_check_restored(const struct dp_folder *folder, struct dp_error *err)
{
    if (has_conf(folder) || !has(folder, DP_FOLDER_RESTORING))
        return DP_OK;
    return dp_fail(err, DP_EXISTS,
                   "'downpour run --from' was interrupted in '%.300s' before it had restored the checkpoint: "
                   "repeat that command, which begins again",
                   folder->path);
}

enum dp_status dp_folder_check_foreign(const struct dp_folder *folder, struct dp_error *err)
{
    if (dp_folder_has_run(folder))
        return DP_OK;
    if (has_conf(folder))
        return dp_fail(err, DP_EXISTS,
                       "'%.300s' was not written by 'downpour run', which would overwrite it: to use its "
                       "settings give --cluster and another --dir",
                       folder->conf);
    enum dp_status st = has_servers(folder) ? dp_folder_check_restored(folder, err) : DP_OK;
    if (st == DP_OK && has_servers(folder))
        return dp_fail(
            err, DP_EXISTS,
            "'%.300s/store' holds servers' stores, but cluster.conf, which says of which run they "
            "are, is missing beside it: put it back; or, if they are not a run's, name another --dir",
            folder->path);
    return st;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static bool is_ours(const char *directory, const char *name)
{
    if (strcmp(directory, "store") == 0)
        return is_numbered(name, "server-", "") || is_numbered(name, "server-", ".restoring") ||
               is_numbered(name, "server-", ".before") || is_kept(name);
    return is_numbered(name, "server-", ".log") || is_numbered(name, "worker-", ".log") ||
           is_numbered(name, "server-", ".log.1") || is_numbered(name, "worker-", ".log.1") ||
           is_numbered(name, "predict-server-", ".log") || strcmp(name, "predict-worker.log") == 0 ||
           strcmp(name, "failure.json") == 0 || strcmp(name, "keys.log") == 0 ||
           strcmp(name, "observer.log") == 0 || strcmp(name, "scoring.log") == 0;
}

static enum dp_status clear_inside(const struct dp_folder *folder, const char *directory,
                                   struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, "%s", directory);
    DIR *dir = st == DP_OK ? opendir(path) : NULL;
    if (!dir)
        return st;
    for (struct dirent *entry = readdir(dir); st == DP_OK && entry; entry = readdir(dir)) {
        if (!is_ours(directory, entry->d_name))
            continue;
        st = dp_folder_path(folder, path, err, "%s/%s", directory, entry->d_name);
        if (st == DP_OK && nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) != 0)
            st = dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno));
    }
    (void)closedir(dir);
    return st;
}

enum dp_status dp_folder_clear_store(const struct dp_folder *folder, struct dp_error *err)
{
    return clear_inside(folder, "store", err);
}

enum dp_status dp_folder_clear_logs(const struct dp_folder *folder, struct dp_error *err)
{
    return clear_inside(folder, "log", err);
}

enum dp_status dp_folder_clear(const struct dp_folder *folder, bool logs, struct dp_error *err)
{
    static const char *const files[] = {
        "predict.conf", "report.json", "report.html", DP_FOLDER_EARLIER, "predict.out",       RUN,
        "score.conf",   "score.keys",  "samples",     "samples.json",    DP_FOLDER_RESTORING, "cluster.conf"};
    char path[DP_PATH_MAX + 1];
    if (access(folder->conf, F_OK) != 0)
        return DP_OK; /* no run was ever here: nothing in it can be ours */
    enum dp_status st = clear_inside(folder, "store", err);
    if (st == DP_OK && logs)
        st = clear_inside(folder, "log", err);
    /* The cluster file last: it is the sign that the rest is ours, should this be cut short. */
    for (size_t i = 0; st == DP_OK && i < sizeof files / sizeof files[0]; i++) {
        st = dp_folder_path(folder, path, err, "%s", files[i]);
        if (st == DP_OK && unlink(path) != 0 && errno != ENOENT)
            st = dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno));
    }
    return st;
}
