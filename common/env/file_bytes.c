#include "common/env/file_bytes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum dp_status dp_file_bytes_read(const char *path, char **bytes, size_t *size, struct dp_error *err)
{
    FILE *file = fopen(path, "rbe");
    *bytes = NULL;
    *size = 0;
    if (!file)
        return dp_fail(err, DP_IO, "open %s: %s", path, strerror(errno));
    FILE *to = open_memstream(bytes, size);
    char part[4096];
    for (size_t n; to && (n = fread(part, 1, sizeof part, file)) > 0;)
        (void)fwrite(part, 1, n, to);
    bool bad = ferror(file) || !to;
    (void)fclose(file);
    if (to && fclose(to) != 0)
        bad = true;
    return bad ? dp_fail(err, DP_IO, "read %s: %s", path, strerror(errno)) : DP_OK;
}
