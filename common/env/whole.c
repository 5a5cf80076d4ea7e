#define _GNU_SOURCE /* statfs */
#include "common/env/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define LINKS_MAX  40
#define PROC_MAGIC 0x9fa0 /* PROC_SUPER_MAGIC of linux/magic.h */

static enum dp_status failed(struct dp_error *err, const char *path, int why)
{
    return dp_fail(err, DP_IO, "cannot write '%.300s': %s", path, strerror(why));
}

/* Whether a name stands for an open descriptor: what /dev/stdout leads to. */
static bool in_proc(const char *path)
{
    char directory[DP_DRAFT_PATH_BYTES];
    struct statfs info;
    return dp_draft_directory(path, directory, sizeof directory) && statfs(directory, &info) == 0 &&
           info.f_type == PROC_MAGIC;
}

/* target: heap, replaced by what the link that it is names. */
static enum dp_status follow_one(struct dp_whole *whole, struct dp_error *err)
{
    char text[PATH_MAX], joined[DP_DRAFT_PATH_BYTES + PATH_MAX];
    ssize_t len = readlink(whole->target, text, sizeof text - 1);
    if (len < 0)
        return failed(err, whole->path, errno);
    text[len] = '\0';
    if (text[0] == '/')
        (void)snprintf(joined, sizeof joined, "%s", text);
    else if (!dp_draft_directory(whole->target, joined, DP_DRAFT_PATH_BYTES))
        return failed(err, whole->path, ENAMETOOLONG);
    else
        (void)snprintf(joined + strlen(joined), sizeof joined - strlen(joined), "/%s", text);
    free(whole->target);
    whole->target = strdup(joined);
    return whole->target ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to write %s", whole->path);
}

/* Links to files, also to files that are not there yet. */
static enum dp_status follow(struct dp_whole *whole, struct dp_error *err)
{
    struct stat info;
    for (int i = 0; lstat(whole->target, &info) == 0 && S_ISLNK(info.st_mode); i++) {
        if (in_proc(whole->target)) {
            whole->direct = true;
            return DP_OK;
        }
        enum dp_status st = i < LINKS_MAX ? follow_one(whole, err) : failed(err, whole->path, ELOOP);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

/* What the name leads to; is: of that, or with a mode of 0: there is nothing yet. */
static enum dp_status look(struct dp_whole *whole, struct stat *is, struct dp_error *err)
{
    const char *path = whole->path;
    *is = (struct stat){0};
    if (!*path)
        return dp_fail(err, DP_ARGUMENT, "the name of the file to write is empty");
    if (stat(path, is) != 0 && errno != ENOENT)
        return failed(err, path, errno);
    if (S_ISDIR(is->st_mode))
        return dp_fail(err, DP_IO, "cannot write '%.300s': it is a directory; name a file in it", path);
    whole->direct = is->st_mode != 0 && !S_ISREG(is->st_mode);
    enum dp_status st = follow(whole, err);
    if (st == DP_OK && is->st_mode != 0 && !whole->direct && access(path, W_OK) != 0)
        st = failed(err, path, errno);
    return st;
}

/* /proc/self/fd/1 opened anew would begin at the start of what stands there, a log's first line: so the descriptor itself. */
static int own_descriptor(const char *target, const struct stat *is)
{
    struct stat mine;
    const char *name = strrchr(target, '/');
    char *end = NULL;
    if (!name || !in_proc(target))
        return -1;
    long number = strtol(name + 1, &end, 10);
    if (end == name + 1 || *end || number < 0 || number > INT_MAX || fstat((int)number, &mine) != 0 ||
        mine.st_dev != is->st_dev || mine.st_ino != is->st_ino)
        return -1;
    return fcntl((int)number, F_DUPFD_CLOEXEC, 0);
}

static int open_direct(const struct dp_whole *whole, const struct stat *is)
{
    int fd = own_descriptor(whole->target, is);
    return fd >= 0 ? fd : open(whole->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

static enum dp_status open_draft(struct dp_whole *whole, const struct stat *is, struct dp_error *err)
{
    (void)dp_draft_sweep_of(whole->target);
    enum dp_status st = dp_draft_open(whole->target, &whole->draft, err);
    if (st != DP_OK || is->st_mode == 0)
        return st;
    if (is->st_uid != geteuid() || is->st_gid != getegid())
        (void)!fchown(whole->draft.fd, is->st_uid, is->st_gid);
    if (fchmod(whole->draft.fd, is->st_mode & 0777) != 0)
        st = failed(err, whole->path, errno);
    return st;
}

enum dp_status dp_whole_open(const char *path, struct dp_whole *out, struct dp_error *err)
{
    struct stat is;
    int fd = -1;
    *out = (struct dp_whole){.draft.fd = -1};
    out->path = strdup(path);
    out->target = strdup(path);
    enum dp_status st = out->path && out->target ? look(out, &is, err)
                                                 : dp_fail(err, DP_NOMEM, "no memory to write %s", path);
    if (st == DP_OK && !out->direct)
        st = open_draft(out, &is, err);
    if (st != DP_OK)
        goto done;
    fd = out->direct ? open_direct(out, &is) : fcntl(out->draft.fd, F_DUPFD_CLOEXEC, 0);
    out->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!out->stream)
        st = failed(err, path, errno);
    if (!out->stream && fd >= 0)
        (void)close(fd);
done:
    if (st != DP_OK)
        dp_whole_drop(out);
    return st;
}

/* So that the new name survives a loss of power. A directory that may be written and not read cannot be synced. */
static bool sync_directory(const char *target)
{
    char directory[DP_DRAFT_PATH_BYTES];
    if (!dp_draft_directory(target, directory, sizeof directory))
        return true;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES;
    int why = fsync(fd) != 0 ? errno : 0;
    (void)close(fd);
    errno = why;
    return why == 0 || why == EINVAL;
}

enum dp_status dp_whole_commit(struct dp_whole *whole, struct dp_error *err)
{
    /* A write that failed earlier left no errno behind. */
    bool good = ferror(whole->stream) == 0;
    int why = EIO;
    enum dp_status st = DP_OK;
    if (good && fflush(whole->stream) != 0) {
        why = errno;
        good = false;
    }
    if (fclose(whole->stream) != 0 && good) {
        why = errno;
        good = false;
    }
    whole->stream = NULL;
    if (!good)
        st = failed(err, whole->path, why);
    else if (!whole->direct)
        st = dp_draft_commit(&whole->draft, whole->target, err);
    if (st == DP_OK && !whole->direct && !sync_directory(whole->target))
        st = failed(err, whole->path, errno);
    dp_whole_drop(whole);
    return st;
}

void dp_whole_drop(struct dp_whole *whole)
{
    if (whole->stream)
        (void)fclose(whole->stream);
    if (whole->path)
        dp_draft_drop(&whole->draft);
    free(whole->path);
    free(whole->target);
    *whole = (struct dp_whole){.draft.fd = -1};
}
