#include "deploy/cli/path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum dp_status dp_path_absolute(const char *path, char *out, struct dp_error *err)
{
    char here[PATH_MAX] = "";
    if (!path[0]) /* which would be the present one */
        return dp_fail(err, DP_ARGUMENT, "the name of a file or directory is empty");
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return dp_fail(err, DP_IO, "cannot find the current directory: %s", strerror(errno));
    int n = snprintf(out, DP_PATH_MAX + 1, "%s%s%s", here, path[0] == '/' ? "" : "/", path);
    if (n > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "path '%.200s...' is longer than %d bytes", path, DP_PATH_MAX);
    return DP_OK;
}

const char *dp_path_quote(const char *path, char out[DP_PATH_QUOTED])
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:,@%=";
    size_t n = 0;
    bool bare = path[0] && strspn(path, plain) == strlen(path);
    DP_ASSERT(strlen(path) <= DP_PATH_MAX);
    if (!bare)
        out[n++] = '\'';
    for (const char *c = path; *c; c++) {
        if (*c == '\'') {
            memcpy(out + n, "'\\''", 4);
            n += 4;
        } else {
            out[n++] = *c;
        }
    }
    if (!bare)
        out[n++] = '\'';
    out[n] = '\0';
    return out;
}

bool dp_path_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
