#include "server/store/read_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum dp_status dp_read_lock_take(const char *directory, int *out, struct dp_error *err)
{
    char path[4096];
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    (void)snprintf(path, sizeof path, "%s/LOCK", directory);
    *out = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*out < 0 && errno == ENOENT)
        return DP_OK;
    if (*out < 0)
        return dp_fail(err, DP_IO, "store %s: cannot read LOCK: %s", directory, strerror(errno));
    if (fcntl(*out, F_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES))
        return DP_OK;
    dp_read_lock_give_back(out);
    return dp_fail(err, DP_IN_USE,
                   "store %s is in use by a server that may write to it: stop that server first", directory);
}

bool dp_read_lock_is_used(const char *directory)
{
    char path[4096];
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    (void)snprintf(path, sizeof path, "%s/LOCK", directory);
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool used = file >= 0 && fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    dp_read_lock_give_back(&file);
    return used;
}

void dp_read_lock_give_back(int *lock)
{
    if (*lock >= 0)
        (void)close(*lock);
    *lock = -1;
}
