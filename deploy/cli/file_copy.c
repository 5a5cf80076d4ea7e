#include "deploy/cli/file_copy.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum dp_status dp_file_copy(const char *path, bool removed, FILE *to, const char *name, struct dp_error *err)
{
    char bytes[65536];
    FILE *from = fopen(path, "re");
    enum dp_status st = DP_OK;
    if (!from)
        return dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    if (removed)
        (void)unlink(path);
    for (size_t n; st == DP_OK && (n = fread(bytes, 1, sizeof bytes, from)) > 0;)
        if (fwrite(bytes, 1, n, to) != n)
            st = dp_fail(err, DP_IO, "cannot write to %s: %s", name, strerror(errno));
    if (st == DP_OK && ferror(from))
        st = dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    if (st == DP_OK && fflush(to) != 0)
        st = dp_fail(err, DP_IO, "cannot write to %s: %s", name, strerror(errno));
    (void)fclose(from);
    return st;
}
