#include "deploy/cli/path.h"

#include "common/env/directory.h"

#include <string.h>
#include <sys/stat.h>

enum dp_status dp_path_absolute(const char *path, char *out, struct dp_error *err)
{
    return dp_directory_absolute(path, out, DP_PATH_MAX + 1, err);
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
