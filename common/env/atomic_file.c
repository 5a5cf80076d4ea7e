#define _GNU_SOURCE /* realpath */
#include "common/env/atomic_file.h"

#include "common/env/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MARK  ".new-"
#define TRIES 100

static enum dp_status failed(struct dp_error *err, const char *path, int why)
{
    return dp_fail(err, dp_limits_full(why) ? DP_FULL : DP_IO, "cannot write '%.300s': %s%s", path,
                   strerror(why), dp_limits_remedy(why));
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Heap. The directory of a path's last name. */
static char *directory_of(const char *path)
{
    size_t len = (size_t)(name_of(path) - path);
    return len > 1 ? strndup(path, len - 1) : strdup(len ? "/" : ".");
}

/* "<any><ending>.new-<digits>-<9 digits>"; exact: nothing before the ending. */
static bool is_temp(const char *name, const char *ending, bool exact)
{
    size_t len = strlen(name), end = strlen(ending), digits = 0;
    while (digits < len && strchr("0123456789", name[len - digits - 1]))
        digits++;
    if (digits != 9 || len == digits || name[len - 10] != '-')
        return false;
    for (len -= 10, digits = 0; digits < len && strchr("0123456789", name[len - digits - 1]);)
        digits++;
    len -= digits;
    if (digits == 0 || len < strlen(MARK) + end || memcmp(name + len - strlen(MARK), MARK, strlen(MARK)) != 0)
        return false;
    len -= strlen(MARK) + end;
    return memcmp(name + len, ending, end) == 0 && (!exact || len == 0);
}

static uint32_t sweep(const char *directory, const char *ending, bool exact)
{
    uint32_t swept = 0;
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        struct stat info;
        int fd = is_temp(entry->d_name, ending, exact)
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

uint32_t dp_atomic_file_sweep(const char *directory, const char *ending)
{
    return sweep(directory, ending, false);
}

/* Between the making and the lock of a temp file another process may sweep it: then another is made. */
static bool lock(int fd)
{
    struct stat info;
    return (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && fstat(fd, &info) == 0 &&
           info.st_nlink > 0;
}

static enum dp_status open_temp(struct dp_atomic_file *file, const char *directory, int *out,
                                struct dp_error *err)
{
    size_t size = strlen(file->target) + sizeof MARK + 40;
    char *temp = malloc(size);
    int fd = -1, why = temp ? EEXIST : ENOMEM;
    for (int i = 0; fd < 0 && why == EEXIST && i < TRIES; i++) {
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        (void)snprintf(temp, size, "%s" MARK "%ld-%09ld", file->target, (long)getpid(), now.tv_nsec);
        fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        why = fd < 0 ? errno : EEXIST;
        if (fd >= 0 && !lock(fd)) {
            (void)close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) {
        file->temp = temp;
        *out = fd;
        return DP_OK;
    }
    free(temp);
    if (why != ENOENT && why != EACCES && why != EPERM)
        return failed(err, file->path, why);
    return dp_fail(err, DP_IO, "cannot write '%.150s': %s '%.150s'", file->path,
                   why == ENOENT ? "there is no directory" : "no permission to make files in", directory);
}

/* Only root may give a file to another owner. Another group gets no permissions of the group that the file had. */
static bool keep_permissions(int fd, const struct stat *is)
{
    (void)!fchown(fd, is->st_uid, (gid_t)-1);
    bool same = fchown(fd, (uid_t)-1, is->st_gid) == 0;
    return fchmod(fd, is->st_mode & (same ? 0777 : 0707)) == 0;
}

/* Of /dev/stdout and the like: opened again it would begin at the start of the file. -1: it is no such name. */
static int own_descriptor(const char *path)
{
    static const char *const folder[] = {"/dev/fd/", "/proc/self/fd/"};
    if (strcmp(path, "/dev/stdout") == 0 || strcmp(path, "/dev/stderr") == 0)
        return path[8] == 'o' ? STDOUT_FILENO : STDERR_FILENO;
    for (int i = 0; i < 2; i++) {
        const char *number = path + strlen(folder[i]);
        if (strncmp(path, folder[i], strlen(folder[i])) == 0 && *number &&
            strspn(number, "0123456789") == strlen(number))
            return (int)strtoul(number, NULL, 10);
    }
    return -1;
}

/* is: of what stands under the name, st_mode 0 for nothing. */
static enum dp_status open_beside(struct dp_atomic_file *file, const struct stat *is, int *out,
                                  struct dp_error *err)
{
    struct stat link;
    bool is_new = is->st_mode == 0;
    if (is_new && lstat(file->path, &link) == 0)
        return dp_fail(err, DP_IO, "cannot write '%.300s': it is a link to a file that does not exist",
                       file->path);
    if (!is_new && access(file->path, W_OK) != 0)
        return failed(err, file->path, errno);
    file->target = is_new ? strdup(file->path) : realpath(file->path, NULL);
    char *directory = file->target ? directory_of(file->target) : NULL;
    if (!directory)
        return failed(err, file->path, file->target ? ENOMEM : errno);
    (void)sweep(directory, name_of(file->target), true);
    enum dp_status st = open_temp(file, directory, out, err);
    free(directory);
    return st == DP_OK && !is_new && !keep_permissions(*out, is) ? failed(err, file->path, errno) : st;
}

static enum dp_status open_fd(struct dp_atomic_file *file, int *out, struct dp_error *err)
{
    struct stat is = {0};
    const char *path = file->path;
    int own = own_descriptor(path);
    if (!*path)
        return dp_fail(err, DP_ARGUMENT, "the name of the file to write is empty");
    if (own < 0 && stat(path, &is) != 0 && errno != ENOENT)
        return failed(err, path, errno);
    if (S_ISDIR(is.st_mode))
        return dp_fail(err, DP_IO, "cannot write '%.300s': it is a directory; name a file in it", path);
    if (own < 0 && (is.st_mode == 0 || S_ISREG(is.st_mode)))
        return open_beside(file, &is, out, err);
    *out = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0) : open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    return *out >= 0 ? DP_OK : failed(err, path, errno);
}

enum dp_status dp_atomic_file_open(const char *path, struct dp_atomic_file *out, struct dp_error *err)
{
    int fd = -1;
    *out = (struct dp_atomic_file){.path = strdup(path)};
    enum dp_status st =
        out->path ? open_fd(out, &fd, err) : dp_fail(err, DP_NOMEM, "no memory to write '%.300s'", path);
    out->stream = st == DP_OK ? fdopen(fd, "w") : NULL;
    if (st == DP_OK && !out->stream)
        st = failed(err, path, errno);
    if (st != DP_OK) {
        if (fd >= 0)
            (void)close(fd);
        dp_atomic_file_drop(out);
    }
    return st;
}

/* A stream keeps that a write failed, and not why: what is left of it, or else more, is likely to fail for the same reason. */
static int why_failed(const struct dp_atomic_file *file)
{
    static const char more[1 << 16];
    if (fflush(file->stream) != 0)
        return errno;
    for (int i = 0; i < 2 && file->temp; i++)
        if (write(fileno(file->stream), more, sizeof more) < 0)
            return errno;
    return EIO;
}

/* So that the new name survives a loss of power. A directory that may be written and not read cannot be synced. */
static bool sync_directory(const char *target)
{
    char *directory = directory_of(target);
    int fd = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, why = errno;
    free(directory);
    if (fd >= 0) {
        why = fsync(fd) == 0 ? 0 : errno;
        (void)close(fd);
    }
    errno = why;
    return why == 0 || why == EINVAL || why == EACCES;
}

enum dp_status dp_atomic_file_commit(struct dp_atomic_file *file, struct dp_error *err)
{
    int why = ferror(file->stream) ? why_failed(file) : fflush(file->stream) != 0 ? errno : 0;
    if (why == 0 && file->temp) {
        bool good = fsync(fileno(file->stream)) == 0 && rename(file->temp, file->target) == 0;
        why = good ? 0 : errno;
        if (good) {
            free(file->temp);
            file->temp = NULL;
            why = sync_directory(file->target) ? 0 : errno;
        }
    }
    enum dp_status st = why == 0 ? DP_OK : failed(err, file->path, why);
    dp_atomic_file_drop(file);
    return st;
}

void dp_atomic_file_drop(struct dp_atomic_file *file)
{
    if (file->temp)
        (void)unlink(file->temp);
    if (file->stream)
        (void)fclose(file->stream); /* last: the lock goes with it */
    free(file->path);
    free(file->target);
    free(file->temp);
    *file = (struct dp_atomic_file){0};
}
