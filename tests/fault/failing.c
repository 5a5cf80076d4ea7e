#define _GNU_SOURCE
#include "tests/fault/failing.h"
#include "tests/fault/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECES 1024

/* What was written into a file since its last sync, from the first byte to the last. */
struct unsynced {
    uint64_t from, to;
};

static struct {
    pthread_mutex_t lock;
    struct dp_failing_plan plan;
    struct dp_failing_counts *counts;
    struct unsynced unsynced[DP_WATCH_FDS];
    bool full[DP_WATCH_FDS]; /* a short write was made: the rest finds no space */
} failing = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void begin(void)
{
    const char *root = getenv(DP_FAILING_ROOT), *counts = getenv(DP_FAILING_COUNTS),
               *plan = getenv(DP_FAILING_PLAN);
    struct dp_failing_plan *p = &failing.plan;
    if (!root || !counts)
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, counts, O_RDWR | O_CLOEXEC);
    void *map = mmap(NULL, sizeof *failing.counts, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)syscall(SYS_close, fd);
    unsigned call, file, error, on;
    if (map == MAP_FAILED || !dp_watch_begin(root) ||
        (plan && sscanf(plan, DP_FAILING_FORMAT, &call, &file, &p->n, &error, &on) != 5))
        abort();
    if (plan) {
        p->call = (enum dp_failing_call)call;
        p->file = (enum dp_failing_file)file;
        p->error = (enum dp_failing_error)error;
        p->on = (int)on;
    }
    failing.counts = map;
}

static bool ends(const char *name, const char *with)
{
    size_t name_bytes = strlen(name), bytes = strlen(with);
    return name_bytes >= bytes && strcmp(name + name_bytes - bytes, with) == 0;
}

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static enum dp_failing_file file_of(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (begins(name, "MANIFEST-"))
        return DP_FAILING_MANIFEST;
    if (begins(name, "OPTIONS-"))
        return DP_FAILING_OPTIONS;
    if (begins(name, "CURRENT") || ends(name, ".dbtmp"))
        return DP_FAILING_CURRENT;
    if (strcmp(name, "marks") == 0 || strcmp(name, "marks.new") == 0)
        return DP_FAILING_MARKS;
    if (ends(name, ".sst") || ends(name, ".ldb") || begins(name, "ingest-"))
        return DP_FAILING_TABLE;
    return begins(name, "journal-") ? DP_FAILING_JOURNAL : DP_FAILING_OTHER;
}

static enum dp_failing_file file_of_fd(int fd)
{
    struct stat found;
    if (fstat(fd, &found) == 0 && S_ISDIR(found.st_mode))
        return DP_FAILING_DIRECTORY;
    return file_of(dp_watch_name(fd));
}

/* Counts a call; true: it is to fail. */
static bool fails(enum dp_failing_call call, enum dp_failing_file file)
{
    const struct dp_failing_plan *plan = &failing.plan;
    (void)pthread_mutex_lock(&failing.lock);
    uint32_t n = ++failing.counts->calls[call][file];
    bool hit =
        plan->n != 0 && call == plan->call && file == plan->file && (plan->on ? n >= plan->n : n == plan->n);
    failing.counts->failed += hit;
    (void)pthread_mutex_unlock(&failing.lock);
    if (hit)
        errno = plan->error == DP_FAILING_EIO || plan->error == DP_FAILING_LOSE ? EIO : ENOSPC;
    return hit;
}

/* ---- open and close */

static int open_any(int at, const char *path, int flags, mode_t mode)
{
    char name[PATH_MAX];
    bool ours = dp_watch_inside(at, path, name);
    if (ours && (flags & O_CREAT) && fails(DP_FAILING_CREATE, file_of(name)))
        return -1;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (!ours || fd < 0)
        return fd;
    if (!dp_watch_add(fd, name))
        abort();
    failing.unsynced[fd] = (struct unsynced){0};
    failing.full[fd] = false;
    return fd;
}

#include "tests/fault/opens.h"

int close(int fd)
{
    dp_watch_forget(fd);
    return (int)syscall(SYS_close, fd);
}

/* ---- what is in a file */

static ssize_t write_all(int fd, const struct iovec *data, int pieces, off_t at)
{
    ssize_t n =
        at < 0 ? syscall(SYS_writev, fd, data, pieces) : syscall(SYS_pwritev, fd, data, pieces, at, 0);
    if (n > 0 && dp_watch_name(fd)) {
        struct unsynced *unsynced = &failing.unsynced[fd];
        uint64_t from = (uint64_t)(at < 0 ? syscall(SYS_lseek, fd, 0, SEEK_CUR) - n : at),
                 to = from + (uint64_t)n;
        bool none = unsynced->to == 0;
        unsynced->from = none || from < unsynced->from ? from : unsynced->from;
        unsynced->to = none || to > unsynced->to ? to : unsynced->to;
    }
    return n;
}

/* The first half. */
static ssize_t write_short(int fd, const struct iovec *data, int pieces, off_t at)
{
    struct iovec part[PIECES];
    size_t all = 0;
    int count = 0;
    for (int i = 0; i < pieces; i++)
        all += data[i].iov_len;
    size_t left = all / 2;
    for (int i = 0; i < pieces && i < PIECES && left > 0; i++, count++) {
        part[count] = data[i];
        part[count].iov_len = left < data[i].iov_len ? left : data[i].iov_len;
        left -= part[count].iov_len;
    }
    failing.full[fd] = true;
    if (count == 0) {
        errno = ENOSPC;
        return -1;
    }
    return write_all(fd, part, count, at);
}

/* at < 0: where the file stands. */
static ssize_t write_any(int fd, const struct iovec *data, int pieces, off_t at)
{
    if (!dp_watch_name(fd))
        return write_all(fd, data, pieces, at);
    bool hit = fails(DP_FAILING_WRITE, file_of_fd(fd));
    if (failing.full[fd]) {
        failing.full[fd] = failing.plan.on != 0;
        errno = ENOSPC;
        return -1;
    }
    if (!hit)
        return write_all(fd, data, pieces, at);
    return failing.plan.error == DP_FAILING_SHORT ? write_short(fd, data, pieces, at) : -1;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    struct iovec one = {(void *)(uintptr_t)bytes, n};
    return dp_watch_name(fd) ? write_any(fd, &one, 1, -1) : syscall(SYS_write, fd, bytes, n);
}

ssize_t writev(int fd, const struct iovec *data, int pieces)
{
    return write_any(fd, data, pieces, -1);
}

#define PWRITES(name)                                                                                        \
    ssize_t name(int fd, const void *bytes, size_t n, off_t at)                                              \
    {                                                                                                        \
        struct iovec one = {(void *)(uintptr_t)bytes, n};                                                    \
        return write_any(fd, &one, 1, at);                                                                   \
    }
PWRITES(pwrite)
PWRITES(pwrite64)

#define PWRITEVS(name)                                                                                       \
    ssize_t name(int fd, const struct iovec *data, int pieces, off_t at)                                     \
    {                                                                                                        \
        return write_any(fd, data, pieces, at);                                                              \
    }
PWRITEVS(pwritev)
PWRITEVS(pwritev64)

#define CUTS(name)                                                                                           \
    int name(int fd, off_t bytes)                                                                            \
    {                                                                                                        \
        if (dp_watch_name(fd) && fails(DP_FAILING_RESIZE, file_of_fd(fd)))                                   \
            return -1;                                                                                       \
        return (int)syscall(SYS_ftruncate, fd, bytes);                                                       \
    }
CUTS(ftruncate)
CUTS(ftruncate64)

static int reserve(int fd, int mode, off_t at, off_t bytes)
{
    if (dp_watch_name(fd) && fails(DP_FAILING_RESIZE, file_of_fd(fd)))
        return -1;
    return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    return reserve(fd, mode, at, bytes);
}

int fallocate64(int fd, int mode, off_t at, off_t bytes)
{
    return reserve(fd, mode, at, bytes);
}

int posix_fallocate(int fd, off_t at, off_t bytes)
{
    return reserve(fd, 0, at, bytes) == 0 ? 0 : errno;
}

int posix_fallocate64(int fd, off_t at, off_t bytes)
{
    return reserve(fd, 0, at, bytes) == 0 ? 0 : errno;
}

/* ---- syncs */

/* The bytes that no sync has covered become zeros. The file is opened anew: this descriptor may want aligned writes. */
static void lose(int fd)
{
    static const char zeros[4096];
    const struct unsynced *unsynced = &failing.unsynced[fd];
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    for (uint64_t at = unsynced->from; again >= 0 && at < unsynced->to;) {
        size_t n = unsynced->to - at < sizeof zeros ? (size_t)(unsynced->to - at) : sizeof zeros;
        if (syscall(SYS_pwrite64, again, zeros, n, at) <= 0)
            abort();
        at += n;
    }
    if (again >= 0)
        (void)syscall(SYS_close, again);
}

/* A sync that succeeds does nothing: the process ends, and the page cache stays. */
static int sync_any(int fd, long call)
{
    if (!dp_watch_name(fd))
        return (int)syscall(call, fd);
    bool hit = fails(DP_FAILING_SYNC, file_of_fd(fd));
    int why = errno;
    if (hit && failing.plan.error == DP_FAILING_LOSE)
        lose(fd);
    failing.unsynced[fd] = (struct unsynced){0};
    errno = why;
    return hit ? -1 : 0;
}

int fsync(int fd)
{
    return sync_any(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_any(fd, SYS_fdatasync);
}

int sync_file_range(int fd, off_t at, off_t bytes, unsigned flags)
{
    /* Without flags nothing is synced: RocksDB asks whether there is such a call, and asserts that there is. */
    if (dp_watch_name(fd) && flags != 0)
        return fails(DP_FAILING_SYNC, file_of_fd(fd)) ? -1 : 0;
    return (int)syscall(SYS_sync_file_range, fd, at, bytes, flags);
}

/* ---- names of files */

static int two_names(enum dp_failing_call call, int at, const char *path, int to_at, const char *to,
                     int flags)
{
    char name[PATH_MAX];
    if (dp_watch_inside(to_at, to, name) && fails(call, file_of(name)))
        return -1;
    return (int)(call == DP_FAILING_RENAME ? syscall(SYS_renameat2, at, path, to_at, to, flags)
                                           : syscall(SYS_linkat, at, path, to_at, to, flags));
}

static int remove_one(int at, const char *path, int flags)
{
    char name[PATH_MAX];
    if (dp_watch_inside(at, path, name) && fails(DP_FAILING_REMOVE, file_of(name)))
        return -1;
    return (int)syscall(SYS_unlinkat, at, path, flags);
}

int rename(const char *path, const char *to)
{
    return two_names(DP_FAILING_RENAME, AT_FDCWD, path, AT_FDCWD, to, 0);
}

int renameat(int at, const char *path, int to_at, const char *to)
{
    return two_names(DP_FAILING_RENAME, at, path, to_at, to, 0);
}

int renameat2(int at, const char *path, int to_at, const char *to, unsigned flags)
{
    return two_names(DP_FAILING_RENAME, at, path, to_at, to, (int)flags);
}

int link(const char *path, const char *to)
{
    return two_names(DP_FAILING_LINK, AT_FDCWD, path, AT_FDCWD, to, 0);
}

int linkat(int at, const char *path, int to_at, const char *to, int flags)
{
    return two_names(DP_FAILING_LINK, at, path, to_at, to, flags);
}

int unlink(const char *path)
{
    return remove_one(AT_FDCWD, path, 0);
}

int unlinkat(int at, const char *path, int flags)
{
    return remove_one(at, path, flags);
}
