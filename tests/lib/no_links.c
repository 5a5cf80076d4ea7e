/* A file system without hard links, as a library in front of libc: each attempt fails with the next of the errors that
 * such file systems give (FAT and exFAT: EPERM; FUSE without the operation: ENOSYS; SMB: EOPNOTSUPP; a bind mount: EXDEV). */
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

static int refuse(void)
{
    static const int errors[] = {EPERM, ENOSYS, EOPNOTSUPP, EMLINK, EXDEV};
    static atomic_uint next;
    errno = errors[atomic_fetch_add(&next, 1) % (sizeof errors / sizeof errors[0])];
    return -1;
}

int link(const char *from, const char *to)
{
    return refuse();
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags)
{
    return refuse();
}
