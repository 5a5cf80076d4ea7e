#define _GNU_SOURCE /* O_TMPFILE */
#include "tests/unit/env/no_nameless.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

int __wrap_open(const char *path, int flags, ...)
{
    int mode = 0;
    if ((flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, int);
        va_end(args);
    }
    return __real_open(path, flags, mode);
}
