#include "server/store/rocks_current.h"

#include "common/base/text.h"
#include "server/store/inspect_disk.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PREFIX "MANIFEST-"

/* "MANIFEST-000005" and a newline, which is cut off. */
static bool is_name(char *name, size_t bytes)
{
    size_t digits = strlen(PREFIX) < bytes ? strspn(name + strlen(PREFIX), "0123456789") : 0;
    bool whole = digits > 0 && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
                 bytes == strlen(PREFIX) + digits + 1 && name[bytes - 1] == '\n';
    if (whole)
        name[bytes - 1] = '\0';
    return whole;
}

enum dp_status dp_rocks_current_check(const char *directory, struct dp_error *err)
{
    char path[4096], name[64];
    int file;
    (void)snprintf(path, sizeof path, "%s/CURRENT", directory);
    if (dp_inspect_file(AT_FDCWD, path, &file, NULL) != DP_OK)
        return DP_OK; /* none, or none that can be read: others say that */
    ssize_t bytes = read(file, name, sizeof name - 1);
    (void)close(file);
    name[bytes > 0 ? bytes : 0] = '\0';
    if (bytes < 0)
        return DP_OK;
    if (!is_name(name, (size_t)bytes)) {
        dp_text_clean(name);
        return dp_fail(
            err, DP_CORRUPT,
            "store %s: the file CURRENT is damaged: it says '%s', which names no manifest; bring it "
            "back, or take the last checkpoint",
            directory, name);
    }
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    if (access(path, F_OK) != 0)
        return dp_fail(
            err, DP_CORRUPT,
            "store %s: the file CURRENT names %s, which is missing; bring it back, or take the last "
            "checkpoint",
            directory, name);
    return DP_OK;
}
