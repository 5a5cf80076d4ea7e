/* Opening a run's directory: its lock, and which run is in it where a command was killed before it knew whether the new one trains. */
#include "deploy/cli/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static enum dp_status make_directory(const char *path, struct dp_error *err)
{
    struct stat info;
    if (mkdir(path, 0777) == 0)
        return DP_OK;
    int why = errno;
    if (why == EEXIST && stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return DP_OK;
    return dp_fail(err, DP_IO, "cannot make directory '%s': %s", path,
                   why == EEXIST ? "another file has that name" : strerror(why));
}

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

static enum dp_status move_conf(const struct dp_folder *folder, bool back, struct dp_error *err)
{
    char earlier[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, earlier, err, DP_FOLDER_EARLIER);
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

enum dp_status dp_folder_accept(const struct dp_folder *folder, uint32_t run, struct dp_error *err)
{
    char earlier[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, earlier, err, DP_FOLDER_EARLIER);
    if (st == DP_OK && unlink(earlier) != 0 && errno != ENOENT)
        st = dp_fail(err, DP_IO, "cannot remove '%s': %s", earlier, strerror(errno));
    if (st == DP_OK)
        st = dp_folder_drop_aside(folder, err);
    return st == DP_OK ? dp_folder_sweep(folder, run, err) : st;
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
        st = dp_folder_path(out, out->conf, err, DP_FOLDER_EARLIER);
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
