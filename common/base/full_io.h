/* Full I/O: reads and writes of a file descriptor that continue after a partial transfer and after a
 * signal, like gnulib's full_write.
 * Thread    Any.
 * Failure   errno has the cause. */
#ifndef DP_BASE_FULL_IO_H
#define DP_BASE_FULL_IO_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

#define DP_FULL_IO_PART ((size_t)1 << 30) /* one call moves less than 2 GiB */

static inline bool dp_full_write(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t n = write(fd, at, size < DP_FULL_IO_PART ? size : DP_FULL_IO_PART);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static inline bool dp_full_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t n = pwrite(fd, at, size < DP_FULL_IO_PART ? size : DP_FULL_IO_PART, offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        offset += n;
        size -= (size_t)n;
    }
    return true;
}

/* Returns the bytes read: fewer than `size` if the file ends there or, with errno not 0, after a failure. */
static inline size_t dp_full_pread(int fd, void *to, size_t size, off_t offset)
{
    size_t have = 0;
    errno = 0;
    while (have < size) {
        size_t left = size - have < DP_FULL_IO_PART ? size - have : DP_FULL_IO_PART;
        ssize_t n = pread(fd, (char *)to + have, left, offset + (off_t)have);
        if (n < 0 && errno == EINTR)
            errno = 0;
        else if (n <= 0)
            break;
        else
            have += (size_t)n;
    }
    return have;
}

#endif
