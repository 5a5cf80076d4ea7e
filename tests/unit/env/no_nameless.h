/* No nameless: a file system that makes no files without names, where NAMED is 1: open() is wrapped and refuses O_TMPFILE. */
#ifndef DP_TESTS_ENV_NO_NAMELESS_H
#define DP_TESTS_ENV_NO_NAMELESS_H

#ifndef NAMED
#define NAMED 0
#endif

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

#endif
