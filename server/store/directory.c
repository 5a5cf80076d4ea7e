#include "server/store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/statvfs.h>

enum dp_status dp_directory_check(const char *path, struct dp_error *err)
{
    bool current = false, rows = false;
    DIR *list = opendir(path);
    if (!list)
        return dp_fail(err, DP_IO, "store: list directory %s: %s", path, strerror(errno));
    errno = 0;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        size_t len = strlen(entry->d_name);
        current = current || strcmp(entry->d_name, "CURRENT") == 0;
        rows = rows || (len > 4 && strcmp(entry->d_name + len - 4, ".sst") == 0);
    }
    int why = errno;
    (void)closedir(list);
    if (why != 0)
        return dp_fail(err, DP_IO, "store: list directory %s: %s", path, strerror(why));
    struct statvfs disk;
    if (statvfs(path, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < DP_DIRECTORY_ROOM)
        return dp_fail(err, DP_FULL,
                       "store %s: its disk has %llu KiB left, a store is not opened with less than %u KiB; "
                       "make room on that disk",
                       path, (unsigned long long)((uint64_t)disk.f_bavail * disk.f_frsize >> 10),
                       DP_DIRECTORY_ROOM >> 10);
    if (rows && !current)
        return dp_fail(err, DP_CORRUPT,
                       "store %s: there are rows (*.sst), but the file CURRENT is missing; bring it back, or "
                       "use another directory",
                       path);
    return DP_OK;
}
