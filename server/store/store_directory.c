#include "server/store/store_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum dp_status dp_store_directory_check(const char *path, struct dp_error *err)
{
    bool current = false, rows = false;
    DIR *list = opendir(path);
    if (!list)
        return dp_fail(err, DP_IO, "store: cannot list directory %s: %s", path, strerror(errno));
    errno = 0;
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        size_t len = strlen(entry->d_name);
        current = current || strcmp(entry->d_name, "CURRENT") == 0;
        rows = rows || (len > 4 && strcmp(entry->d_name + len - 4, ".sst") == 0);
    }
    int why = errno;
    (void)closedir(list);
    if (why != 0)
        return dp_fail(err, DP_IO, "store: cannot list directory %s: %s", path, strerror(why));
    struct statvfs disk;
    if (statvfs(path, &disk) == 0 && (uint64_t)disk.f_bavail * disk.f_frsize < DP_STORE_DIRECTORY_ROOM)
        return dp_fail(err, DP_FULL,
                       "store %s: its disk has %llu KiB left, but opening a store needs %u KiB; make room on "
                       "that disk",
                       path, (unsigned long long)((uint64_t)disk.f_bavail * disk.f_frsize >> 10),
                       DP_STORE_DIRECTORY_ROOM >> 10);
    if (rows && !current)
        return dp_fail(err, DP_CORRUPT,
                       "store %s has rows (*.sst), but its file CURRENT is missing; restore that file, "
                       "or " DP_STORE_RESTORE,
                       path);
    return DP_OK;
}

int dp_store_directory_lock(const char *path)
{
    char lock_path[1400];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (snprintf(lock_path, sizeof lock_path, "%s/LOCK", path) >= (int)sizeof lock_path)
        return -1;
    int fd = open(lock_path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && fcntl(fd, F_SETLK, &lock) != 0) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}
