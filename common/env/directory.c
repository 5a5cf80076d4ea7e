#include "common/env/directory.h"

#include <errno.h>
#include <fcntl.h>
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
