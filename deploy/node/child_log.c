#define _GNU_SOURCE /* memfd_create, fallocate */
#include "deploy/node/child_log.h"

#include "common/env/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINES_BYTES 4096        /* of one write: a pipe that is ready takes as much */
#define KEPT_BYTES  (64l << 10) /* of a log in memory, so that its end can be read again */

static off_t size_of(const char *path)
{
    struct stat is;
    return stat(path, &is) == 0 ? is.st_size : 0;
}

enum dp_status dp_child_log_begin(struct dp_child_log *copy, const char *directory, const char *name,
                                  struct dp_error *err)
{
    *copy = (struct dp_child_log){.fd = -1, .is_kept = directory[0] != '\0'};
    (void)signal(SIGPIPE, SIG_IGN);
    if (!copy->is_kept) {
        copy->fd = memfd_create("downpour-log", MFD_CLOEXEC);
        (void)snprintf(copy->path, sizeof copy->path, "/proc/self/fd/%d", copy->fd);
        return copy->fd >= 0 ? DP_OK : dp_fail(err, DP_IO, "no memory for a log: %s", strerror(errno));
    }
    enum dp_status st = dp_directory_make(directory, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "'log' of the cluster file");
    (void)snprintf(copy->path, sizeof copy->path, "%s/%s.log", directory, name);
    copy->at = size_of(copy->path);
    return DP_OK;
}

static bool takes(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    return poll(&fd, 1, 0) == 1;
}

/* When the child has begun it: one that was long is another file by then. */
static bool opens(struct dp_child_log *copy)
{
    if (copy->fd >= 0)
        return true;
    copy->fd = open(copy->path, O_RDONLY | O_CLOEXEC);
    if (copy->fd >= 0 && size_of(copy->path) < copy->at)
        copy->at = 0;
    return copy->fd >= 0;
}

/* A part is a line longer than a write, or the end of a log. */
static void copy_lines(struct dp_child_log *copy, bool parts)
{
    char lines[LINES_BYTES];
    ssize_t n;
    if (!opens(copy))
        return;
    while (takes() && (n = pread(copy->fd, lines, sizeof lines, copy->at)) > 0) {
        const char *end = memrchr(lines, '\n', (size_t)n);
        size_t bytes = end ? (size_t)(end + 1 - lines) : parts || n == LINES_BYTES ? (size_t)n : 0;
        if (bytes == 0)
            return;
        ssize_t put = write(STDERR_FILENO, lines, bytes);
        if (put < 0 && errno == EAGAIN)
            return;
        copy->at += put > 0 ? put : (ssize_t)bytes; /* nothing reads it any more */
    }
    if (!copy->is_kept && copy->at > KEPT_BYTES)
        (void)fallocate(copy->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, copy->at - KEPT_BYTES);
}

void dp_child_log_copy(struct dp_child_log *copy)
{
    copy_lines(copy, false);
}

void dp_child_log_end(struct dp_child_log *copy)
{
    if (!copy->path[0])
        return;
    copy_lines(copy, true);
    if (copy->fd >= 0)
        (void)close(copy->fd);
    *copy = (struct dp_child_log){.fd = -1};
}
