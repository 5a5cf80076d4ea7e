#define _DEFAULT_SOURCE /* fts */
#include "common/env/directory.h"

#include "common/env/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum dp_status failed(struct dp_error *err, const char *what, const char *path, int why)
{
    if (why == ENOSPC || why == EDQUOT)
        return dp_fail(err, DP_FULL, "%s directory %s: %s; make room on that disk", what, path,
                       strerror(why));
    return dp_fail(err, DP_IO, "%s directory %s: %s; check that path", what, path,
                   why == EEXIST ? "a file is in the way" : strerror(why));
}

static enum dp_status sync_path(const char *path, struct dp_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(err, "open", path, errno);
    int why = fsync(fd) ? errno : 0;
    (void)close(fd);
    return why ? failed(err, "sync", path, why) : DP_OK;
}

/* path is made; its name is synced in the directory above it, which exists. */
static enum dp_status make_one(char *path, struct dp_error *err)
{
    struct stat found;
    if (mkdir(path, 0777) != 0) {
        int why = errno;
        if (why == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
            return DP_OK;
        return failed(err, "make", path, why);
    }
    char *slash = strrchr(path, '/');
    if (!slash)
        return sync_path(".", err);
    if (slash == path)
        return sync_path("/", err);
    *slash = 0;
    enum dp_status st = sync_path(path, err);
    *slash = '/';
    return st;
}

enum dp_status dp_directory_make(const char *path, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (!*path)
        return dp_fail(err, DP_ARGUMENT, "the directory's name is empty");
    char *part = strdup(path);
    if (!part)
        return dp_fail(err, DP_NOMEM, "path %s", path);
    size_t len = strlen(part);
    while (len > 1 && part[len - 1] == '/')
        part[--len] = 0;
    for (char *at = part + 1; st == DP_OK && *at; at++) {
        if (*at != '/' || at[-1] == '/')
            continue;
        *at = 0;
        st = make_one(part, err);
        *at = '/';
    }
    if (st == DP_OK)
        st = make_one(part, err);
    free(part);
    return st;
}

/* 0: it was removed, or is to stay, or was not there. */
static int remove_entry(const FTSENT *at, bool itself)
{
    if (at->fts_info == FTS_DNR || at->fts_info == FTS_ERR || at->fts_info == FTS_NS)
        return at->fts_errno == ENOENT ? 0 : at->fts_errno;
    if (at->fts_level == FTS_ROOTLEVEL && at->fts_info != FTS_D && at->fts_info != FTS_DP)
        return ENOTDIR;
    if (at->fts_info == FTS_D || (at->fts_level == FTS_ROOTLEVEL && !itself))
        return 0; /* a directory comes again, after what is in it */
    int removed = at->fts_info == FTS_DP ? rmdir(at->fts_accpath) : unlink(at->fts_accpath);
    return removed == 0 || errno == ENOENT ? 0 : errno;
}

enum dp_status dp_directory_remove(const char *path, bool itself, uint32_t depth_max, struct dp_error *err)
{
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    enum dp_status st = DP_OK;
    if (!tree)
        return dp_fail(err, DP_NOMEM, "no memory to remove %s", path);
    for (const FTSENT *at; st == DP_OK && (errno = 0, at = fts_read(tree));) {
        int why = remove_entry(at, itself);
        if (why != 0)
            st = dp_fail(err, dp_limits_full(why) ? DP_FULL : DP_IO, "remove %s: %s%s", at->fts_path,
                         strerror(why), dp_limits_remedy(why));
        else if (at->fts_info == FTS_D && depth_max > 0 && at->fts_level > (int)depth_max)
            st =
                dp_fail(err, DP_IO, "remove %s: there are directories in it that are not ours", at->fts_path);
    }
    if (st == DP_OK && errno != 0)
        st = dp_fail(err, DP_IO, "remove %s: %s", path, strerror(errno));
    (void)fts_close(tree);
    return st;
}

enum dp_status dp_directory_absolute(const char *path, char *out, size_t size, struct dp_error *err)
{
    char here[PATH_MAX] = "";
    if (!path[0]) /* which would be the present one */
        return dp_fail(err, DP_ARGUMENT, "the name of a file or directory is empty");
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return dp_fail(err, DP_IO, "cannot find the current directory: %s", strerror(errno));
    int n = snprintf(out, size, "%s%s%s", here, path[0] == '/' ? "" : "/", path);
    if (n < 0 || (size_t)n >= size)
        return dp_fail(err, DP_ARGUMENT, "path '%.200s...' is longer than %zu bytes", path, size - 1);
    return DP_OK;
}
