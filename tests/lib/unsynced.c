#define _GNU_SOURCE /* nftw, renameat2 */
#include "tests/lib/unsynced.h"

#include "tests/lib/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define DIRTY_MAX 4096u

struct dirty {
    dev_t dev;
    ino_t ino;
    bool removed; /* of a manifest's directory: its removal is not durable */
    char why[200];
};

static struct {
    pthread_mutex_t lock;
    bool on;
    const char *root, *also;
    struct dirty dirty[DIRTY_MAX];
    size_t count, judged;
    char failure[PATH_MAX];
} u = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- what is dirty; the lock is held */

static struct dirty *find(const struct stat *is)
{
    for (size_t i = 0; i < u.count; i++)
        if (u.dirty[i].dev == is->st_dev && u.dirty[i].ino == is->st_ino)
            return &u.dirty[i];
    return NULL;
}

static void clean(const struct stat *is)
{
    struct dirty *dirty = find(is);
    if (dirty)
        *dirty = u.dirty[--u.count];
}

static void soil(const struct stat *is, bool removed, const char *why)
{
    struct dirty *dirty = find(is);
    if (!dirty && u.count < DIRTY_MAX)
        dirty = &u.dirty[u.count++];
    if (!dirty)
        return;
    *dirty = (struct dirty){is->st_dev, is->st_ino, removed, ""};
    (void)snprintf(dirty->why, sizeof dirty->why, "%.199s", why);
}

static void fail_by(const char *what, const char *why)
{
    if (!u.failure[0])
        (void)snprintf(u.failure, sizeof u.failure, "%.400s: %.200s", what, why);
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A name was made or changed in the directory of this path. */
static void name_changed(int at, const char *path, bool removed)
{
    char directory[PATH_MAX];
    struct stat is;
    const char *name = name_of(path);
    (void)snprintf(directory, sizeof directory, "%.*s", (int)(name - path), path);
    if (!u.on || strcmp(name, "lock") == 0 || fstatat(at, directory[0] ? directory : ".", &is, 0) != 0)
        return;
    soil(&is, removed, path);
}

/* What had this name is another's from now on, as its number may be. */
static void forget(int at, const char *path)
{
    struct stat is;
    if (fstatat(at, path, &is, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISDIR(is.st_mode) || is.st_nlink == 1))
        clean(&is);
}

static void made_file(int fd, int at, const char *path)
{
    struct stat is;
    if (!u.on || strcmp(name_of(path), "lock") == 0 || fstat(fd, &is) != 0 || is.st_size > 0)
        return;
    soil(&is, false, path);
    name_changed(at, path, false);
}

/* ---- judging */

static int judge(const char *path, const struct stat *is, int kind, struct FTW *at)
{
    const struct dirty *dirty = find(is);
    if (dirty && !dirty->removed)
        fail_by(S_ISDIR(is->st_mode) ? "a directory was not synced after" : "a file was not synced",
                dirty->why);
    return 0;
}

static void judge_below(const char *path)
{
    struct stat is;
    if (path && stat(path, &is) == 0)
        (void)nftw(path, judge, 16, FTW_PHYS);
}

static void before_rename(const char *from)
{
    struct stat is;
    if (!u.on || stat(from, &is) != 0 || !S_ISDIR(is.st_mode))
        return;
    u.judged++;
    judge_below(from);
    judge_below(u.also);
}

static void before_removal(const char *path)
{
    for (size_t i = 0; u.on && i < u.count; i++)
        if (u.dirty[i].removed)
            fail_by(path, "it was removed before this was durably removed");
}

void dp_unsynced_begin(const char *root, const char *also)
{
    u.root = root;
    u.also = also;
    u.count = u.judged = 0;
    u.failure[0] = '\0';
    u.on = true;
}

size_t dp_unsynced_expect_none(void)
{
    u.on = false;
    judge_below(u.root);
    if (u.failure[0])
        fail_msg("%s", u.failure);
    return u.judged;
}

/* ---- calls */

#define LOCKED(statement)                                                                                    \
    (void)pthread_mutex_lock(&u.lock);                                                                       \
    statement;                                                                                               \
    (void)pthread_mutex_unlock(&u.lock)

static void opened(int fd, int at, const char *path, int flags)
{
    if (fd >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
        LOCKED(made_file(fd, at, path));
    }
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    int fd = __real_open(path, flags, mode);
    opened(fd, AT_FDCWD, path, flags);
    return fd;
}

int __real_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...);
int __wrap_openat(int at, const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
    va_end(args);
    int fd = __real_openat(at, path, flags, mode);
    opened(fd, at, path, flags);
    return fd;
}

static void synced(int fd)
{
    struct stat is;
    if (fstat(fd, &is) == 0) {
        LOCKED(clean(&is));
    }
}

#define SYNC(name)                                                                                           \
    int __real_##name(int fd);                                                                               \
    int __wrap_##name(int fd);                                                                               \
    int __wrap_##name(int fd)                                                                                \
    {                                                                                                        \
        int result = __real_##name(fd);                                                                      \
        if (result == 0)                                                                                     \
            synced(fd);                                                                                      \
        return result;                                                                                       \
    }
SYNC(fsync)
SYNC(fdatasync)

static void wrote(int fd, const char *call)
{
    struct stat is;
    if (u.on && fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) {
        LOCKED(soil(&is, false, call));
    }
}

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    ssize_t n = __real_write(fd, bytes, size);
    if (n > 0 && fd > STDERR_FILENO)
        wrote(fd, "write");
    return n;
}

ssize_t __real_pwritev(int fd, const struct iovec *piece, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *piece, int count, off_t at);
ssize_t __wrap_pwritev(int fd, const struct iovec *piece, int count, off_t at)
{
    ssize_t n = __real_pwritev(fd, piece, count, at);
    if (n > 0)
        wrote(fd, "pwritev");
    return n;
}

static void renamed(int at, const char *from, int to_at, const char *to)
{
    LOCKED(name_changed(at, from, false); name_changed(to_at, to, false));
}

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to)
{
    LOCKED(before_rename(from); forget(AT_FDCWD, to));
    int result = __real_rename(from, to);
    if (result == 0)
        renamed(AT_FDCWD, from, AT_FDCWD, to);
    return result;
}

int __real_renameat(int at, const char *from, int to_at, const char *to);
int __wrap_renameat(int at, const char *from, int to_at, const char *to);
int __wrap_renameat(int at, const char *from, int to_at, const char *to)
{
    LOCKED(forget(to_at, to));
    int result = __real_renameat(at, from, to_at, to);
    if (result == 0)
        renamed(at, from, to_at, to);
    return result;
}

int __real_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags);
int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags);
int __wrap_renameat2(int at, const char *from, int to_at, const char *to, unsigned flags)
{
    LOCKED(before_rename(from));
    int result = __real_renameat2(at, from, to_at, to, flags);
    if (result == 0)
        renamed(at, from, to_at, to);
    return result;
}

int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to)
{
    int result = __real_link(from, to);
    if (result == 0) {
        LOCKED(name_changed(AT_FDCWD, to, false));
    }
    return result;
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode)
{
    int result = __real_mkdir(path, mode);
    if (result == 0) {
        LOCKED(forget(AT_FDCWD, path); name_changed(AT_FDCWD, path, false));
    }
    return result;
}

int __real_unlink(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlink(const char *path)
{
    bool manifest = strcmp(name_of(path), "manifest.json") == 0;
    LOCKED(before_removal(path); forget(AT_FDCWD, path));
    int result = __real_unlink(path);
    if (result == 0 && manifest) {
        LOCKED(u.judged++; name_changed(AT_FDCWD, path, true));
    }
    return result;
}

int __real_rmdir(const char *path);
int __wrap_rmdir(const char *path);
int __wrap_rmdir(const char *path)
{
    LOCKED(before_removal(path); forget(AT_FDCWD, path));
    return __real_rmdir(path);
}
