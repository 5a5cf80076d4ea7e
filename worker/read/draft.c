#include "worker/read/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK  ".new-"
#define TRIES 100

/* Between a draft's making and its lock a sweeper may take it for a dead one's: then another is made. */
static bool is_ours(int fd)
{
    struct stat info;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return false;
    return fstat(fd, &info) == 0 && info.st_nlink > 0;
}

enum dp_status dp_draft_open(const char *target, struct dp_draft *out, struct dp_error *err)
{
    out->fd = -1;
    for (int i = 0; i < TRIES; i++) {
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        int len =
            snprintf(out->path, sizeof out->path, "%s" MARK "%ld-%09ld", target, (long)getpid(), now.tv_nsec);
        if (len < 0 || (size_t)len >= sizeof out->path)
            return dp_fail(err, DP_IO, "'%.64s...': the path is too long", target);
        out->fd = open(out->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (out->fd < 0 && errno == EEXIST)
            continue;
        if (out->fd < 0)
            return dp_fail(err, DP_IO, "cannot make '%s': %s", out->path, strerror(errno));
        if (is_ours(out->fd))
            return DP_OK;
        (void)close(out->fd);
        out->fd = -1;
    }
    return dp_fail(err, DP_IO, "cannot make a file beside '%s': others remove it each time", target);
}

enum dp_status dp_draft_commit(struct dp_draft *draft, const char *target, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (fsync(draft->fd) != 0 || rename(draft->path, target) != 0) {
        st = dp_fail(err, DP_IO, "cannot write '%s': %s", target, strerror(errno));
        (void)unlink(draft->path);
    }
    /* Last: the lock goes with it, and until it is renamed the draft must not be swept. */
    (void)close(draft->fd);
    draft->fd = -1;
    return st;
}

void dp_draft_drop(struct dp_draft *draft)
{
    if (draft->fd < 0)
        return;
    (void)unlink(draft->path);
    (void)close(draft->fd);
    draft->fd = -1;
}

static const char *digits_end(const char *at)
{
    return at + strspn(at, "0123456789");
}

/* "<any><ending>.new-<digits>-<9 digits>" */
static bool is_draft(const char *name, const char *ending)
{
    const char *mark = NULL;
    for (const char *at = name; (at = strstr(at, MARK)); at++)
        mark = at;
    size_t len = strlen(ending);
    if (!mark || (size_t)(mark - name) < len || memcmp(mark - len, ending, len) != 0)
        return false;
    const char *at = mark + strlen(MARK), *end = digits_end(at);
    return end > at && *end == '-' && digits_end(end + 1) == end + 10 && end[10] == '\0';
}

uint32_t dp_draft_sweep(const char *directory, const char *ending)
{
    uint32_t swept = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        int fd = is_draft(entry->d_name, ending)
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
