/* Recorder: a library that is loaded in front of libc and logs what a process does to the files of one directory.
 *     call -> under one lock: the call itself, then its record
 * Not done  Syncs: they take a disk's time and nothing more, for what a power cut leaves is worked out from the log.
 * Followed  Calls through libc's names. Streams for writing, dup, shared writable maps and copies by the kernel are
 *           recorded as unknown, and the model refuses the log by the call's name.
 * Failure   A log that cannot be written ends the process: a recording with holes would prove nothing. */
#define _GNU_SOURCE
#include "tests/fault/record.h"
#include "tests/fault/watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define LOG_FD 3000 /* out of the way of the process's own */
#define SYNC_NS                                                                                              \
    100000u /* most syncs take a tenth of a millisecond, some many times as long: others overtake them */
#define SLOW_EACH 16u
#define SLOW_MAX  64u
#define PIECES    160

static struct {
    pthread_mutex_t lock;
    int log;
    uint64_t calls, die_at, syncs;
} recorder = {.lock = PTHREAD_MUTEX_INITIALIZER, .log = -1};

/* ---- the log */

static void put(struct dp_record *record, const char *name, const char *other, const struct iovec *data,
                int pieces)
{
    struct iovec part[PIECES + 3];
    size_t all = 0;
    int count = 3;
    if (recorder.log < 0)
        return;
    record->magic = DP_RECORD_MAGIC;
    record->name_bytes = name ? (uint32_t)strlen(name) : 0;
    record->other_bytes = other ? (uint32_t)strlen(other) : 0;
    part[0] = (struct iovec){record, sizeof *record};
    part[1] = (struct iovec){(void *)(uintptr_t)name, record->name_bytes};
    part[2] = (struct iovec){(void *)(uintptr_t)other, record->other_bytes};
    size_t left = record->data_bytes; /* what was written, which may be less than the pieces */
    for (int i = 0; i < pieces && left > 0; i++, count++) {
        part[count] = data[i];
        if (part[count].iov_len > left)
            part[count].iov_len = left;
        left -= part[count].iov_len;
    }
    for (int i = 0; i < count; i++)
        all += part[i].iov_len;
    if (syscall(SYS_writev, recorder.log, part, count) != (ssize_t)all) {
        static const char text[] = "recorder: the log could not be written\n";
        (void)syscall(SYS_write, 2, text, sizeof text - 1);
        abort();
    }
}

static void put_name(enum dp_record_kind kind, const char *name, const char *other)
{
    struct dp_record record = {.kind = kind};
    put(&record, name, other, NULL, 0);
}

static void put_fd(enum dp_record_kind kind, int fd, uint64_t at)
{
    struct dp_record record = {.kind = kind, .fd = fd, .at = at};
    put(&record, NULL, NULL, NULL, 0);
}

/* Before each call that changes a file: dies there, if it is the one. */
static void enter(void)
{
    (void)pthread_mutex_lock(&recorder.lock);
    if (recorder.die_at && ++recorder.calls >= recorder.die_at) {
        (void)syscall(SYS_kill, getpid(), SIGKILL);
        for (;;)
            (void)pause();
    }
}

static void leave(void)
{
    int why = errno;
    (void)pthread_mutex_unlock(&recorder.lock);
    errno = why;
}

__attribute__((constructor)) static void begin(void)
{
    const char *root = getenv(DP_RECORD_ROOT), *log = getenv(DP_RECORD_LOG), *die = getenv(DP_RECORD_DIE_AT);
    if (!root || !log || !dp_watch_begin(root))
        return;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    recorder.log = fcntl(fd, F_DUPFD_CLOEXEC, LOG_FD);
    (void)syscall(SYS_close, fd);
    if (recorder.log < 0)
        abort();
    recorder.die_at = die ? strtoull(die, NULL, 10) : 0;
    put_name(DP_RECORD_START, NULL, NULL);
}

static bool watched(int fd)
{
    return dp_watch_name(fd) != NULL;
}

/* ---- open and close */

static int open_any(int at, const char *path, int flags, mode_t mode)
{
    char name[PATH_MAX];
    enter();
    bool ours = dp_watch_inside(at, path, name);
    struct stat found;
    bool there = ours && fstatat(at, path, &found, 0) == 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    if (ours && fd >= 0 && dp_watch_add(fd, name)) {
        bool empties = (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY;
        struct dp_record record = {.kind = DP_RECORD_OPEN, .fd = fd};
        record.at = there ? (empties ? DP_RECORD_OPEN_EMPTIED : 0) : DP_RECORD_OPEN_CREATED;
        put(&record, name, NULL, NULL, 0);
    } else if (ours && fd >= 0) {
        put_name(DP_RECORD_UNKNOWN, "open: too many files", NULL);
    }
    leave();
    return fd;
}

#include "tests/fault/opens.h"

int close(int fd)
{
    if (!watched(fd)) /* nobody else may use this number now */
        return (int)syscall(SYS_close, fd);
    enter();
    put_fd(DP_RECORD_CLOSE, fd, 0);
    dp_watch_forget(fd);
    int result = (int)syscall(SYS_close, fd);
    leave();
    return result;
}

/* ---- what is in a file */

static void wrote(int fd, uint64_t at, ssize_t n, const struct iovec *data, int pieces)
{
    struct dp_record record = {.kind = DP_RECORD_WRITE, .fd = fd, .at = at, .data_bytes = (uint64_t)n};
    if (pieces > PIECES)
        put_name(DP_RECORD_UNKNOWN, "a write of too many pieces", NULL);
    else
        put(&record, NULL, NULL, data, pieces);
}

/* at < 0: where the file stands. */
static ssize_t write_any(int fd, const struct iovec *data, int pieces, off_t at)
{
    if (!watched(fd))
        return at < 0 ? syscall(SYS_writev, fd, data, pieces) : syscall(SYS_pwritev, fd, data, pieces, at, 0);
    enter();
    ssize_t n =
        at < 0 ? syscall(SYS_writev, fd, data, pieces) : syscall(SYS_pwritev, fd, data, pieces, at, 0);
    if (n > 0 && at < 0)
        at = syscall(SYS_lseek, fd, 0, SEEK_CUR) - n;
    if (n > 0 && at >= 0) /* else the C library closed the file, and an eventfd has its number */
        wrote(fd, (uint64_t)at, n, data, pieces);
    leave();
    return n;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    struct iovec one = {(void *)(uintptr_t)bytes, n};
    return watched(fd) ? write_any(fd, &one, 1, -1) : syscall(SYS_write, fd, bytes, n);
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
        if (!watched(fd))                                                                                    \
            return (int)syscall(SYS_ftruncate, fd, bytes);                                                   \
        enter();                                                                                             \
        int result = (int)syscall(SYS_ftruncate, fd, bytes);                                                 \
        if (result == 0)                                                                                     \
            put_fd(DP_RECORD_CUT, fd, (uint64_t)bytes);                                                      \
        leave();                                                                                             \
        return result;                                                                                       \
    }
CUTS(ftruncate)
CUTS(ftruncate64)

static int reserve(int fd, int mode, off_t at, off_t bytes)
{
    if (!watched(fd))
        return (int)syscall(SYS_fallocate, fd, mode, at, bytes);
    enter();
    int result = (int)syscall(SYS_fallocate, fd, mode, at, bytes);
    if (result == 0 && mode == 0)
        put_fd(DP_RECORD_RESERVE, fd, (uint64_t)(at + bytes));
    else if (result == 0 && mode != FALLOC_FL_KEEP_SIZE)
        put_name(DP_RECORD_UNKNOWN, "fallocate", NULL);
    leave();
    return result;
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

static int sync_any(int fd, long call)
{
    if (!watched(fd))
        return (int)syscall(call, fd);
    enter();
    uint64_t number = ++recorder.syncs, draw = number * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    put_fd(DP_RECORD_SYNC_BEGIN, fd, number);
    leave();
    uint64_t times = draw % SLOW_EACH == 0 ? draw / SLOW_EACH % SLOW_MAX : 1;
    const struct timespec disk = {.tv_nsec = (long)(times * SYNC_NS)};
    (void)nanosleep(&disk, NULL);
    enter();
    put_fd(DP_RECORD_SYNC_END, fd, number);
    leave();
    return 0;
}

int fsync(int fd)
{
    return sync_any(fd, SYS_fsync);
}

int fdatasync(int fd)
{
    return sync_any(fd, SYS_fdatasync);
}

/* ---- names of files */

static int two_names(enum dp_record_kind kind, int at, const char *path, int to_at, const char *to, int flags)
{
    char name[PATH_MAX], other[PATH_MAX];
    enter();
    bool from_ours = dp_watch_inside(at, path, name), to_ours = dp_watch_inside(to_at, to, other);
    int result = (int)(kind == DP_RECORD_RENAME ? syscall(SYS_renameat2, at, path, to_at, to, flags)
                                                : syscall(SYS_linkat, at, path, to_at, to, flags));
    if (result == 0 && from_ours && to_ours)
        put_name(kind, name, other);
    else if (result == 0 && (from_ours || to_ours))
        put_name(DP_RECORD_UNKNOWN, "a rename or link from or to elsewhere", NULL);
    leave();
    return result;
}

static int one_name(enum dp_record_kind kind, int at, const char *path, mode_t mode)
{
    char name[PATH_MAX];
    enter();
    bool ours = dp_watch_inside(at, path, name);
    int result = (int)(kind == DP_RECORD_MAKE
                           ? syscall(SYS_mkdirat, at, path, mode)
                           : syscall(SYS_unlinkat, at, path, kind == DP_RECORD_UNMAKE ? AT_REMOVEDIR : 0));
    if (result == 0 && ours)
        put_name(kind, name, NULL);
    leave();
    return result;
}

int rename(const char *path, const char *to)
{
    return two_names(DP_RECORD_RENAME, AT_FDCWD, path, AT_FDCWD, to, 0);
}

int renameat(int at, const char *path, int to_at, const char *to)
{
    return two_names(DP_RECORD_RENAME, at, path, to_at, to, 0);
}

int renameat2(int at, const char *path, int to_at, const char *to, unsigned flags)
{
    return two_names(DP_RECORD_RENAME, at, path, to_at, to, (int)flags);
}

int link(const char *path, const char *to)
{
    return two_names(DP_RECORD_LINK, AT_FDCWD, path, AT_FDCWD, to, 0);
}

int linkat(int at, const char *path, int to_at, const char *to, int flags)
{
    return two_names(DP_RECORD_LINK, at, path, to_at, to, flags);
}

int unlink(const char *path)
{
    return one_name(DP_RECORD_REMOVE, AT_FDCWD, path, 0);
}

int unlinkat(int at, const char *path, int flags)
{
    return one_name(flags & AT_REMOVEDIR ? DP_RECORD_UNMAKE : DP_RECORD_REMOVE, at, path, 0);
}

int remove(const char *path)
{
    int result = one_name(DP_RECORD_REMOVE, AT_FDCWD, path, 0);
    return result != 0 && errno == EISDIR ? one_name(DP_RECORD_UNMAKE, AT_FDCWD, path, 0) : result;
}

int mkdir(const char *path, mode_t mode)
{
    return one_name(DP_RECORD_MAKE, AT_FDCWD, path, mode);
}

int mkdirat(int at, const char *path, mode_t mode)
{
    return one_name(DP_RECORD_MAKE, at, path, mode);
}

int rmdir(const char *path)
{
    return one_name(DP_RECORD_UNMAKE, AT_FDCWD, path, 0);
}

/* ---- what is not followed, and so must not happen */

static void unknown(int fd, const char *call)
{
    if (!watched(fd))
        return;
    enter();
    put_name(DP_RECORD_UNKNOWN, call, NULL);
    leave();
}

int dup(int fd)
{
    unknown(fd, "dup");
    return (int)syscall(SYS_dup, fd);
}

int dup2(int fd, int to)
{
    unknown(fd, "dup2");
    unknown(to, "dup2");
    return fd == to ? fd : (int)syscall(SYS_dup3, fd, to, 0);
}

int dup3(int fd, int to, int flags)
{
    unknown(fd, "dup3");
    unknown(to, "dup3");
    return (int)syscall(SYS_dup3, fd, to, flags);
}

static FILE *stream(const char *call, const char *path, const char *mode)
{
    char name[PATH_MAX];
    FILE *(*real)(const char *, const char *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, call);
    if ((mode[0] != 'r' || strchr(mode, '+')) && dp_watch_inside(AT_FDCWD, path, name)) {
        enter();
        put_name(DP_RECORD_UNKNOWN, call, NULL);
        leave();
    }
    return real(path, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    return stream("fopen", path, mode);
}

FILE *fopen64(const char *path, const char *mode)
{
    return stream("fopen64", path, mode);
}

FILE *fdopen(int fd, const char *mode)
{
    FILE *(*real)(int, const char *) = NULL;
    *(void **)&real = dlsym(RTLD_NEXT, "fdopen");
    if (mode[0] != 'r' || strchr(mode, '+'))
        unknown(fd, "fdopen");
    return real(fd, mode);
}

ssize_t copy_file_range(int fd, off_t *at, int to, off_t *to_at, size_t bytes, unsigned flags)
{
    unknown(to, "copy_file_range");
    return syscall(SYS_copy_file_range, fd, at, to, to_at, bytes, flags);
}

void *mmap(void *where, size_t bytes, int protection, int flags, int fd, off_t at)
{
    if ((flags & MAP_SHARED) && (protection & PROT_WRITE))
        unknown(fd, "mmap");
    return (void *)syscall(SYS_mmap, where, bytes, protection, flags, fd, at);
}
