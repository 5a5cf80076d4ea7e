#include "deploy/cli/scratch.h"
#include "common/env/directory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum dp_status dp_scratch_make(char *path, struct dp_error *err)
{
    char log[DP_PATH_MAX + 8];
    const char *in = getenv("TMPDIR");
    int len = snprintf(path, DP_PATH_MAX + 1, "%s/downpour-XXXXXX", in && in[0] ? in : "/tmp");
    enum dp_status st = DP_OK;
    if (len > DP_PATH_MAX)
        st = dp_fail(err, DP_ARGUMENT, "TMPDIR is longer than %d bytes", DP_PATH_MAX - 16);
    else if (!mkdtemp(path))
        st = dp_fail(err, DP_IO, "cannot make a directory '%s': %s (TMPDIR says where)", path,
                     strerror(errno));
    if (st != DP_OK) {
        path[0] = '\0';
        return st;
    }
    (void)snprintf(log, sizeof log, "%s/log", path);
    if (mkdir(log, 0777) != 0) {
        st = dp_fail(err, DP_IO, "cannot make a directory '%s': %s", log, strerror(errno));
        dp_scratch_remove(path);
    }
    return st;
}

void dp_scratch_remove(char *path)
{
    struct dp_error unheard = {0};
    if (path[0])
        unheard.status = dp_directory_remove(path, true, 0, &unheard);
    path[0] = '\0';
}
