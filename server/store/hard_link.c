#include "server/store/hard_link.h"

#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static bool a_copy_would_do(int error)
{
    return error == EPERM || error == ENOSYS || error == EOPNOTSUPP || error == EMLINK || error == EXDEV;
}

void dp_hard_link_use(void) {}

/* libc's link() goes through this definition, the calls of shared libraries included. */
int link(const char *from, const char *to)
{
    static atomic_flag is_logged = ATOMIC_FLAG_INIT;
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) == 0)
        return 0;
    if (!a_copy_would_do(errno))
        return -1;
    /* Two file systems, as when a checkpoint on another disk is restored, lack nothing. */
    if (errno != EXDEV && !atomic_flag_test_and_set(&is_logged))
        dp_log(DP_LOG_WARN,
               "cannot make a hard link %s: %s. Files are copied instead: this costs time and, for "
               "checkpoints, disk space",
               to, strerror(errno));
    errno = EOPNOTSUPP;
    return -1;
}
