/* Opens: libc's functions that open a file, in the place of libc's own. Included once, by a preloaded library, behind its
 *     static int open_any(int at, const char *path, int flags, mode_t mode);
 * which all of them call. */
#ifndef DP_TESTS_FAULT_OPENS_H
#define DP_TESTS_FAULT_OPENS_H

#include <fcntl.h>
#include <stdarg.h>

static mode_t mode_of(int flags, va_list rest)
{
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
}

#define OPENS(name)                                                                                          \
    int name(const char *path, int flags, ...)                                                               \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        mode_t mode = mode_of(flags, rest);                                                                  \
        va_end(rest);                                                                                        \
        return open_any(AT_FDCWD, path, flags, mode);                                                        \
    }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name)                                                                                       \
    int name(int at, const char *path, int flags, ...)                                                       \
    {                                                                                                        \
        va_list rest;                                                                                        \
        va_start(rest, flags);                                                                               \
        mode_t mode = mode_of(flags, rest);                                                                  \
        va_end(rest);                                                                                        \
        return open_any(at, path, flags, mode);                                                              \
    }
OPENS_AT(openat)
OPENS_AT(openat64)

int creat(const char *path, mode_t mode)
{
    return open_any(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

#endif
