#include "deploy/cli/folder.h"

#include "common/base/parse.h"
#include "common/env/whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define EARLIER "cluster.earlier.conf"
#define RUN     "run"

enum dp_status dp_path_absolute(const char *path, char *out, struct dp_error *err)
{
    char here[PATH_MAX] = "";
    if (!path[0]) /* which would be the present one */
        return dp_fail(err, DP_ARGUMENT, "the name of a file or directory is empty");
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return dp_fail(err, DP_IO, "cannot find the present directory: %s", strerror(errno));
    int n = snprintf(out, DP_PATH_MAX + 1, "%s%s%s", here, path[0] == '/' ? "" : "/", path);
    if (n > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "path '%.200s...' is longer than %d bytes", path, DP_PATH_MAX);
    return DP_OK;
}

const char *dp_path_quote(const char *path, char out[DP_PATH_QUOTED])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:,@%=";
    size_t n = 0;
    bool bare = path[0] && strspn(path, plain) == strlen(path);
    DP_ASSERT(strlen(path) <= DP_PATH_MAX);
    if (!bare)
        out[n++] = '\'';
    for (const char *c = path; *c; c++) {
        if (*c == '\'') {
            memcpy(out + n, "'\\''", 4);
            n += 4;
        } else {
            out[n++] = *c;
        }
    }
    if (!bare)
        out[n++] = '\'';
    out[n] = '\0';
    return out;
}

bool dp_path_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

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

static enum dp_status make_directory(const char *path, struct dp_error *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return DP_OK;
    int why = errno;
    if (why == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return DP_OK;
    return dp_fail(err, DP_IO, "cannot make directory '%s': %s", path,
                   why == EEXIST ? "there is something else of that name" : strerror(why));
}

static enum dp_status in_use(const struct dp_folder *folder, struct dp_error *err)
{
    return dp_fail(
        err, DP_EXISTS,
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

static enum dp_status move_conf(const struct dp_folder *folder, bool back, struct dp_error *err)
{
    char earlier[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, earlier, err, EARLIER);
    if (st != DP_OK)
        return st;
    const char *from = back ? earlier : folder->conf, *to = back ? folder->conf : earlier;
    if (rename(from, to) != 0 && errno != ENOENT)
        return dp_fail(err, DP_IO, "cannot rename '%s' to '%s': %s", from, to, strerror(errno));
    return DP_OK;
}

enum dp_status dp_folder_keep(const struct dp_folder *folder, struct dp_error *err)
{
    return move_conf(folder, false, err);
}

enum dp_status dp_folder_restore(const struct dp_folder *folder, bool *back, struct dp_error *err)
{
    *back = false;
    enum dp_status st = move_conf(folder, true, err);
    return st == DP_OK ? dp_folder_put_back(folder, back, err) : st;
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
} kept[] = {{"columns-", ".csv"}, {"names-", ".tsv"}, {"run-", ".json"}};
#define KEPT (sizeof kept / sizeof kept[0])

static bool is_kept(const char *name)
{
    for (size_t i = 0; i < KEPT; i++)
        if (is_numbered(name, kept[i].stem, kept[i].suffix))
            return true;
    return run_of_steps(name) > 0;
}

/* Of runs whose cluster files are gone. */
static enum dp_status sweep_kept(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
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

enum dp_status dp_folder_accept(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
{
    char earlier[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, earlier, err, EARLIER);
    if (st == DP_OK && unlink(earlier) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", earlier, strerror(errno));
    if (st == DP_OK)
        st = dp_folder_drop_aside(folder, err);
    return st == DP_OK ? sweep_kept(folder, run, err) : st;
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
        return dp_fail(
            err, DP_DATA,
            "'%s' holds no number of a run: write one into it that is higher than any run here had, or "
            "use --fresh",
            path);
    *out = (uint32_t)run;
    return DP_OK;
}

enum dp_status dp_folder_set_run(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    struct dp_whole file;
    enum dp_status st = dp_folder_path(folder, path, err, RUN);
    if (st == DP_OK)
        st = dp_whole_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fprintf(file.stream, "%" PRIu32 "\n", run);
    return dp_whole_commit(&file, err);
}

enum dp_status dp_folder_open(const char *path, struct dp_folder *out, struct dp_error *err)
{
    static const char *const inside[] = {"log", "store"};
    char name[DP_PATH_MAX + 1];
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_path_absolute(path, out->path, err);
    if (st == DP_OK)
        st = dp_folder_path(out, out->conf, err, "cluster.conf");
    if (st != DP_OK)
        goto done;
    st = make_directory(out->path, err);
    for (size_t i = 0; st == DP_OK && i < sizeof inside / sizeof inside[0]; i++) {
        st = dp_folder_path(out, name, err, "%s", inside[i]);
        if (st == DP_OK)
            st = make_directory(name, err);
    }
    if (st == DP_OK)
        st = dp_folder_path(out, name, err, "lock");
    if (st == DP_OK)
        st = take_lock(out, name, err);
    bool back;
    if (st == DP_OK) /* of a command that was killed before it knew */
        st = dp_folder_restore(out, &back, err);
done:
    if (st != DP_OK)
        dp_folder_close(out);
    return st;
}

/* With what shares it. A run's directory has a lock, but a copy need not; a file system without locks is read without. */
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
    char name[DP_PATH_MAX + 1];
    struct stat info;
    struct dp_folder aside;
    *out = (struct dp_folder){.lock = -1};
    enum dp_status st = dp_path_absolute(path, out->path, err);
    if (st == DP_OK)
        st = dp_folder_path(out, name, err, "lock");
    if (st == DP_OK && dp_folder_is_aside(out, &aside)) /* its successor was killed before it had trained */
        *out = aside;
    /* A run that was killed before it knew whether the store fits left that of the one before it. */
    if (st == DP_OK)
        st = dp_folder_path(out, out->conf, err, EARLIER);
    if (st == DP_OK && access(out->conf, F_OK) != 0)
        st = dp_folder_path(out, out->conf, err, "cluster.conf");
    if (st != DP_OK)
        goto done;
    if (stat(out->path, &info) == 0 && !S_ISDIR(info.st_mode))
        st = dp_fail(err, DP_ARGUMENT,
                     "'%.200s' is a file, not the directory of a run: unpack an archive, and name the "
                     "directory in it",
                     path);
    else if (access(out->conf, R_OK) != 0 && errno == EACCES)
        st = dp_fail(err, DP_IO, "cannot read '%.300s': %s", out->conf, strerror(EACCES));
    else if (!dp_folder_has_run(out))
        st = dp_fail(err, DP_NOT_FOUND,
                     "'%.200s' is not the directory of a run: it has no cluster.conf and store", path);
    if (st == DP_OK)
        st = share_lock(out, name, err);
done:
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

bool dp_folder_has_foreign_conf(const struct dp_folder *folder)
{
    char run[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    return access(folder->conf, F_OK) == 0 && !dp_folder_has_run(folder) &&
           dp_folder_path(folder, run, &unheard, RUN) == DP_OK && access(run, F_OK) != 0;
}

bool dp_folder_has_run(const struct dp_folder *folder)
{
    char store[DP_PATH_MAX + 1], earlier[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    bool found = false;
    if (dp_folder_path(folder, store, &unheard, "store") != DP_OK ||
        dp_folder_path(folder, earlier, &unheard, EARLIER) != DP_OK)
        return false;
    if (access(folder->conf, F_OK) != 0 && access(earlier, F_OK) != 0)
        return false;
    DIR *dir = opendir(store);
    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        found = found || strncmp(entry->d_name, "server-", 7) == 0;
    if (dir)
        (void)closedir(dir);
    return found;
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
        return is_numbered(name, "server-", "") || is_kept(name);
    return is_numbered(name, "server-", ".log") || is_numbered(name, "worker-", ".log") ||
           is_numbered(name, "server-", ".log.1") || is_numbered(name, "worker-", ".log.1") ||
           is_numbered(name, "predict-server-", ".log") || strcmp(name, "predict-worker.log") == 0;
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
    static const char *const files[] = {"predict.conf", "report.json", EARLIER,
                                        "predict.out",  RUN,           "cluster.conf"};
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
