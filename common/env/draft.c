#define _GNU_SOURCE /* O_TMPFILE */
#include "common/env/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK       ".new-"
#define MARK_BYTES 32u /* with what is behind it */
#define KEPT       "-whole"
#define NAME_BYTES 255u
#define TRIES      100

bool dp_draft_directory(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t len = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
    if (len >= size)
        return false;
    memcpy(out, slash ? path : ".", len);
    out[len] = '\0';
    return true;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum dp_status failed(struct dp_error *err, const char *target, int why)
{
    char directory[DP_DRAFT_PATH_BYTES];
    if (!dp_draft_directory(target, directory, sizeof directory))
        directory[0] = '\0';
    if (why == ENOENT)
        return dp_fail(err, DP_IO, "cannot write '%.150s': there is no directory '%.150s'", target,
                       directory);
    if (why == EACCES || why == EPERM)
        return dp_fail(err, DP_IO, "cannot write '%.150s': no permission to make files in '%.150s'", target,
                       directory);
    bool full = why == ENOSPC || why == EDQUOT;
    return dp_fail(err, full ? DP_FULL : DP_IO, "cannot write '%.300s': %s%s", target, strerror(why),
                   full ? "; make room on that disk" : "");
}

static enum dp_status choose_name(const char *target, struct dp_draft *draft, struct dp_error *err)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    int len =
        snprintf(draft->path, sizeof draft->path, "%s" MARK "%ld-%09ld", target, (long)getpid(), now.tv_nsec);
    if (len < 0 || (size_t)len >= sizeof draft->path || strlen(name_of(target)) + MARK_BYTES > NAME_BYTES)
        return dp_fail(err, DP_IO, "cannot write '%.64s...': the path is too long", target);
    return DP_OK;
}

/* Between the making and the lock of a draft with a name a sweeper may take it for a dead one's: then another is made. */
static bool is_ours(int fd)
{
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

static enum dp_status open_named(const char *target, struct dp_draft *out, struct dp_error *err)
{
    for (int i = 0; i < TRIES; i++) {
        enum dp_status st = choose_name(target, out, err);
        if (st != DP_OK)
            return st;
        out->fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd < 0 && errno == EEXIST)
            continue;
        if (out->fd < 0)
            return failed(err, target, errno);
        out->named = true;
        if (is_ours(out->fd))
            return DP_OK;
        (void)close(out->fd);
        out->fd = -1;
    }
    return dp_fail(err, DP_IO, "cannot make a file beside '%s': others remove it each time", target);
}

enum dp_status dp_draft_open(const char *target, struct dp_draft *out, struct dp_error *err)
{
    char directory[DP_DRAFT_PATH_BYTES];
    *out = (struct dp_draft){.fd = -1};
    enum dp_status st = choose_name(target, out, err); /* now, not when all is written */
    if (st != DP_OK)
        return st;
    /* Its name is given through /proc. */
    if (dp_draft_directory(target, directory, sizeof directory) && access("/proc/self/fd", X_OK) == 0)
        out->fd = open(directory, O_RDWR | O_TMPFILE | O_CLOEXEC, 0666);
    if (out->fd >= 0 && flock(out->fd, LOCK_EX | LOCK_NB) == 0)
        return DP_OK;
    if (out->fd >= 0)
        (void)close(out->fd);
    return open_named(target, out, err); /* which says why, should that be impossible too */
}

/* A link cannot stand in for a file that is there: so a name of its own first. It is locked since it was opened. */
static bool give_name(struct dp_draft *draft, const char *target)
{
    char self[64];
    (void)snprintf(self, sizeof self, "/proc/self/fd/%d", draft->fd);
    for (int i = 0; i < TRIES && !draft->named; i++) {
        draft->named = linkat(AT_FDCWD, self, AT_FDCWD, draft->path, AT_SYMLINK_FOLLOW) == 0;
        if (!draft->named && (errno != EEXIST || choose_name(target, draft, NULL) != DP_OK))
            return false;
    }
    return draft->named;
}

static bool copy_all(int from, int to)
{
    char piece[16384];
    for (off_t at = 0;;) {
        ssize_t n = pread(from, piece, sizeof piece, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0;
        for (ssize_t put = 0, w; put<n; put += w> 0 ? w : 0) {
            w = write(to, piece + put, (size_t)(n - put));
            if (w == 0 || (w < 0 && errno != EINTR))
                return false;
        }
        at += n;
    }
}

/* Where a file without a name may not be given one: it becomes a draft that has one. */
static enum dp_status copy_named(struct dp_draft *draft, const char *target, struct dp_error *err)
{
    struct dp_draft copy = {.keep = draft->keep};
    struct stat is, made;
    enum dp_status st = open_named(target, &copy, err);
    if (st != DP_OK)
        return st;
    bool same = fstat(draft->fd, &is) == 0 && fstat(copy.fd, &made) == 0;
    if (same && (is.st_uid != made.st_uid || is.st_gid != made.st_gid))
        same = fchown(copy.fd, is.st_uid, is.st_gid) == 0;
    if (!same || fchmod(copy.fd, is.st_mode & 0777) != 0 || !copy_all(draft->fd, copy.fd) ||
        fsync(copy.fd) != 0) {
        st = failed(err, target, errno);
        dp_draft_drop(&copy);
        return st;
    }
    (void)close(draft->fd);
    *draft = copy;
    return DP_OK;
}

/* What took long to make is not thrown away for its name: it stays under one that no sweep takes. */
static enum dp_status not_renamed(struct dp_draft *draft, const char *target, struct dp_error *err)
{
    char kept[DP_DRAFT_PATH_BYTES + sizeof KEPT];
    int why = errno;
    if (!draft->keep)
        return dp_fail(err, DP_IO, "cannot write '%.300s': %s", target, strerror(why));
    (void)snprintf(kept, sizeof kept, "%s" KEPT, draft->path);
    draft->named = false;
    return dp_fail(err, DP_IO, "cannot write '%.150s': %s; all of it is beside it, in '%.255s': move it",
                   target, strerror(why), name_of(rename(draft->path, kept) == 0 ? kept : draft->path));
}

enum dp_status dp_draft_commit(struct dp_draft *draft, const char *target, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (fsync(draft->fd) != 0)
        st = failed(err, target, errno);
    else if (!give_name(draft, target))
        st = copy_named(draft, target, err);
    if (st == DP_OK && rename(draft->path, target) != 0)
        st = not_renamed(draft, target, err);
    if (st != DP_OK && draft->named)
        (void)unlink(draft->path);
    /* Last: the lock goes with it, and until it is renamed the draft must not be swept. */
    (void)close(draft->fd);
    draft->fd = -1;
    return st;
}

void dp_draft_drop(struct dp_draft *draft)
{
    if (draft->fd < 0)
        return;
    if (draft->named)
        (void)unlink(draft->path);
    (void)close(draft->fd);
    draft->fd = -1;
}

static const char *digits_end(const char *at)
{
    return at + strspn(at, "0123456789");
}

/* "<any><ending>.new-<digits>-<9 digits>"; exact: nothing before the ending. */
static bool is_draft(const char *name, const char *ending, bool exact)
{
    const char *mark = NULL;
    for (const char *at = name; (at = strstr(at, MARK)); at++)
        mark = at;
    size_t len = strlen(ending), before = mark ? (size_t)(mark - name) : 0;
    if (!mark || before < len || (exact && before > len) || memcmp(mark - len, ending, len) != 0)
        return false;
    const char *at = mark + strlen(MARK), *end = digits_end(at);
    return end > at && *end == '-' && digits_end(end + 1) == end + 10 && end[10] == '\0';
}

static uint32_t sweep(const char *directory, const char *ending, bool exact)
{
    uint32_t swept = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        int fd = is_draft(entry->d_name, ending, exact)
                     ? openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                     : -1;
        if (fd < 0)
            continue;
        if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
            swept += unlinkat(dirfd(dir), entry->d_name, 0) == 0;
        (void)close(fd);
    }
    if (dir)
        (void)closedir(dir);
    return swept;
}

uint32_t dp_draft_sweep(const char *directory, const char *ending)
{
    return sweep(directory, ending, false);
}

uint32_t dp_draft_sweep_of(const char *target)
{
    char directory[DP_DRAFT_PATH_BYTES];
    const char *name = name_of(target);
    return *name && dp_draft_directory(target, directory, sizeof directory) ? sweep(directory, name, true)
                                                                            : 0;
}
