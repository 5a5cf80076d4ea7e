#include "common/env/installed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SELF_BYTES 4096

enum dp_status dp_installed_program(const char *name, char *out, size_t size, struct dp_error *err)
{
    char self[SELF_BYTES];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return dp_fail(err, DP_IO, "cannot find this program's own path: %s", strerror(errno));
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    DP_ASSERT(slash);
    *slash = '\0';
    if (snprintf(out, size, "%s/%s", self, name) >= (int)size)
        return dp_fail(err, DP_ARGUMENT, "the path of this program is too long");
    if (access(out, X_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "cannot execute '%s': %s; it belongs in the directory of the other programs", out,
                       strerror(errno));
    return DP_OK;
}
