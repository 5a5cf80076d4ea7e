#include "deploy/run/spool.h"

#include "common/env/atomic_file.h"
#include "common/env/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK   ((size_t)256 << 10)
#define TELL_MS 10000

static bool is_stdin(const char *path)
{
    return strcmp(path, "-") == 0 || strcmp(path, "/dev/stdin") == 0 || strcmp(path, "/dev/fd/0") == 0 ||
           strcmp(path, "/proc/self/fd/0") == 0;
}

bool dp_spool_is_stream(const char *path)
{
    struct stat info;
    if (is_stdin(path) || strncmp(path, "/dev/fd/", 8) == 0 || strncmp(path, "/proc/self/fd/", 14) == 0)
        return true;
    /* Not a device: /dev/zero has no end. */
    return path[0] && stat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

enum dp_status dp_spool_plan(struct dp_spools *spools, const char *flag, char *path, const char *directory,
                             uint32_t tag, struct dp_error *err)
{
    if (!dp_spool_is_stream(path))
        return DP_OK;
    for (uint32_t i = 0; i < spools->count; i++)
        if (strcmp(spools->of[i].from, path) == 0 || (is_stdin(path) && is_stdin(spools->of[i].from)))
            return dp_fail(err, DP_ARGUMENT, "%s and %s are both read from '%s', which can be read only once",
                           spools->of[i].flag, flag, path);
    DP_ASSERT(spools->count < DP_SPOOLS_MAX);
    uint32_t i = spools->count;
    spools->of[i].flag = flag;
    (void)snprintf(spools->of[i].from, sizeof spools->of[i].from, "%s", path);
    const char *name = flag + strspn(flag, "-"), *part = name + strcspn(name, " "); /* "train labels" */
    int len = snprintf(spools->of[i].to, sizeof spools->of[i].to, "%s/%.*s%s%s-%08" PRIx32 ".spool",
                       directory, (int)(part - name), name, *part ? "-" : "", *part ? part + 1 : "", tag);
    if (len > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "the path of the directory '%.64s...' is too long", directory);
    memcpy(path, spools->of[i].to, sizeof spools->of[i].to);
    spools->count++;
    return DP_OK;
}

/* Opening a pipe would wait for its writer in silence. */
static enum dp_status open_stream(const char *flag, const char *path, int *fd, struct dp_error *err)
{
    *fd = is_stdin(path) ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", flag, path, strerror(errno));
    return DP_OK;
}

/* Bytes, 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, const char *flag, const char *from, void *bytes)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    for (int waited_s = 0;;) {
        int n = poll(&ready, 1, TELL_MS);
        if (n < 0 && errno != EINTR)
            return -1;
        if (n == 0) {
            waited_s += TELL_MS / 1000;
            fprintf(stderr, "downpour: %s: nothing came from '%s' for %d s; waiting for its writer\n", flag,
                    from, waited_s);
        }
        if (n <= 0)
            continue;
        ssize_t len = read(fd, bytes, BLOCK);
        if (len >= 0 || (errno != EINTR && errno != EAGAIN))
            return len;
    }
}

static enum dp_status write_failed(const char *flag, const char *to, uint64_t bytes, int why,
                                   struct dp_error *err)
{
    return dp_fail(err, dp_limits_full(why) ? DP_FULL : DP_IO,
                   "%s: cannot write '%.300s' after %" PRIu64
                   " bytes: %s%s; --cache DIR (for a prediction TMPDIR) names another place",
                   flag, to, bytes, strerror(why), dp_limits_remedy(why));
}

static enum dp_status copy(const char *flag, const char *from, int fd, const char *to, uint64_t *copied,
                           struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    uint64_t bytes = 0;
    unsigned char *block = malloc(BLOCK);
    if (!block)
        return dp_fail(err, DP_NOMEM, "%s: no memory to read '%.300s'", flag, from);
    enum dp_status st = dp_atomic_file_open(to, &file, err);
    for (ssize_t len = 1; st == DP_OK && len > 0;) {
        len = read_some(fd, flag, from, block);
        if (len < 0)
            st = dp_fail(err, DP_IO, "%s: cannot read '%.300s': %s", flag, from, strerror(errno));
        errno = 0;
        if (len > 0 && fwrite(block, 1, (size_t)len, file.stream) != (size_t)len)
            st = write_failed(flag, to, bytes, errno, err);
        bytes += len > 0 ? (uint64_t)len : 0;
    }
    if (st == DP_OK && fflush(file.stream) != 0)
        st = write_failed(flag, to, bytes, errno, err);
    if (st == DP_OK && bytes == 0)
        st = dp_fail(err, DP_ARGUMENT, "%s: nothing came from '%.300s'", flag, from);
    if (st == DP_OK)
        st = dp_atomic_file_commit(&file, err);
    dp_atomic_file_drop(&file);
    free(block);
    *copied = bytes;
    return st;
}

enum dp_status dp_spool_fill(const struct dp_spools *spools, FILE *notes, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < spools->count; i++) {
        char directory[DP_PATH_MAX + 1];
        int fd = -1;
        uint64_t bytes = 0;
        (void)snprintf(directory, sizeof directory, "%s", spools->of[i].to);
        *strrchr(directory, '/') = '\0';
        if (mkdir(directory, 0777) != 0 && errno != EEXIST)
            st = dp_fail(err, DP_IO, "cannot make directory '%s': %s", directory, strerror(errno));
        if (st == DP_OK)
            st = open_stream(spools->of[i].flag, spools->of[i].from, &fd, err);
        if (st == DP_OK)
            st = copy(spools->of[i].flag, spools->of[i].from, fd, spools->of[i].to, &bytes, err);
        if (st == DP_OK)
            fprintf(notes, "downpour: %s: %" PRIu64 " bytes from %s are in %s\n", spools->of[i].flag, bytes,
                    is_stdin(spools->of[i].from) ? "standard input" : spools->of[i].from, spools->of[i].to);
        if (fd >= 0)
            (void)close(fd);
    }
    return st;
}
