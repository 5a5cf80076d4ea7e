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
    return dp_fail(err, DP_EXISTS,
                   "store %s: a server has it open and may be writing to it: stop that server, or ask it",
                   directory);
}

void dp_read_lock_give_back(int *lock)
{
    if (*lock >= 0)
        (void)close(*lock);
    *lock = -1;
}
