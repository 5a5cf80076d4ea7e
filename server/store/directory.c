#include "server/store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static enum dp_status sync_directory(const char *path, struct dp_error *err)
{
    int file = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0)
        return dp_fail(err, DP_IO, "store: open directory %s: %s", path, strerror(errno));
    int failed = fsync(file);
    int why = errno;
    (void)close(file);
    return failed ? dp_fail(err, DP_IO, "store: sync directory %s: %s", path, strerror(why)) : DP_OK;
}

/* path[0..len) is made; its name is synced in the directory above it, which exists. */
static enum dp_status make_one(char *path, struct dp_error *err)
{
    struct stat found;
    if (mkdir(path, 0777) != 0) {
        int why = errno;
        if (why == EEXIST && stat(path, &found) == 0 && S_ISDIR(found.st_mode))
            return DP_OK;
        return dp_fail(err, DP_IO, "store: make directory %s: %s; check that path", path,
                       why == EEXIST ? "a file is in the way" : strerror(why));
    }
    char *slash = strrchr(path, '/');
    if (!slash)
        return sync_directory(".", err);
    if (slash == path)
        return sync_directory("/", err);
    *slash = 0;
    enum dp_status st = sync_directory(path, err);
    *slash = '/';
    return st;
}

enum dp_status dp_directory_make(const char *path, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (!*path)
        return dp_fail(err, DP_ARGUMENT, "store: the directory's name is empty");
    char *part = strdup(path);
    if (!part)
        return dp_fail(err, DP_NOMEM, "store: path %s", path);
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
                       "make room and start again",
                       path, (unsigned long long)((uint64_t)disk.f_bavail * disk.f_frsize >> 10),
                       DP_DIRECTORY_ROOM >> 10);
    if (rows && !current)
        return dp_fail(err, DP_CORRUPT,
                       "store %s: there are rows (*.sst), but the file CURRENT is missing; bring it back, or "
                       "use another directory",
                       path);
    return DP_OK;
}
