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
    bool full = why == ENOSPC || why == EDQUOT;
    return dp_fail(err, full ? DP_FULL : DP_IO, "cannot write '%.300s': %s%s", path, strerror(why),
                   full ? "; make room on that disk" : "");
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

/* As Linux decides it (protected_symlinks), which is not asked about what is followed by hand: in a sticky directory that all may
 * write to, only links of one's own and of the directory's owner. */
static bool may_follow(const char *link, const struct stat *info)
{
    char directory[DP_DRAFT_PATH_BYTES];
    struct stat above;
    if (!dp_draft_directory(link, directory, sizeof directory) || stat(directory, &above) != 0)
        return false;
    bool common = (above.st_mode & S_ISVTX) && (above.st_mode & S_IWOTH);
    return !common || info->st_uid == geteuid() || info->st_uid == above.st_uid;
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
        enum dp_status st = i >= LINKS_MAX                      ? failed(err, whole->path, ELOOP)
                            : !may_follow(whole->target, &info) ? failed(err, whole->path, EACCES)
                                                                : follow_one(whole, err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

/* What stands under the target's name is what was looked at, and may be replaced. */
static enum dp_status check_target(const struct dp_whole *whole, const struct stat *is, struct dp_error *err)
{
    char directory[DP_DRAFT_PATH_BYTES];
    struct stat now, above;
    if (access(whole->path, W_OK) != 0)
        return failed(err, whole->path, errno);
    if (lstat(whole->target, &now) != 0)
        return failed(err, whole->path, errno);
    if (now.st_dev != is->st_dev || now.st_ino != is->st_ino)
        return dp_fail(err, DP_IO, "cannot write '%.300s': another file took its place just now",
                       whole->path);
    if (geteuid() != 0 && is->st_uid != geteuid() &&
        dp_draft_directory(whole->target, directory, sizeof directory) && stat(directory, &above) == 0 &&
        (above.st_mode & S_ISVTX) && above.st_uid != geteuid())
        return dp_fail(
            err, DP_IO,
            "cannot write '%.150s': it is another user's, and in '%.150s' only its owner may replace "
            "it (sticky): name another file",
            whole->path, directory);
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
    if (st == DP_OK && is->st_mode != 0 && !whole->direct)
        st = check_target(whole, is, err);
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

/* Rights are an owner's and a group's. Where the file's group cannot be had, another has no more than what both it and all others
 * had, and so have those. */
static enum dp_status keep_rights(const struct dp_whole *whole, const struct stat *is, struct dp_error *err)
{
    struct stat made;
    int fd = whole->draft.fd;
    mode_t mode = is->st_mode & 0777;
    if (fstat(fd, &made) != 0)
        return failed(err, whole->path, errno);
    bool same = made.st_uid == is->st_uid && made.st_gid == is->st_gid;
    if (!same && fchown(fd, is->st_uid, is->st_gid) != 0 && made.st_gid != is->st_gid &&
        fchown(fd, (uid_t)-1, is->st_gid) != 0) {
        mode_t both = mode >> 3 & mode & 07;
        mode = (mode & 0700) | both << 3 | both;
    }
    return fchmod(fd, mode) == 0 ? DP_OK : failed(err, whole->path, errno);
}

static enum dp_status open_draft(struct dp_whole *whole, const struct stat *is, struct dp_error *err)
{
    (void)dp_draft_sweep_of(whole->target);
    enum dp_status st = dp_draft_open(whole->target, &whole->draft, err);
    if (st != DP_OK)
        return st;
    whole->draft.keep = true;
    return is->st_mode == 0 ? DP_OK : keep_rights(whole, is, err);
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

/* A stream keeps that a write failed, and not why: the rest of it, or else more, is likely to fail for the same reason. */
static int why_failed(const struct dp_whole *whole)
{
    const char more[4096] = {0};
    if (fflush(whole->stream) != 0)
        return errno;
    for (int i = 0; i < 16 && !whole->direct; i++)
        if (write(whole->draft.fd, more, sizeof more) < (ssize_t)sizeof more &&
            write(whole->draft.fd, more, sizeof more) < 0)
            return errno;
    return EIO;
}

enum dp_status dp_whole_commit(struct dp_whole *whole, struct dp_error *err)
{
    bool good = ferror(whole->stream) == 0;
    int why = good ? 0 : why_failed(whole);
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
