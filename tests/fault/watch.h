/* Watch: which of a process's descriptors are files below one directory. For libraries that stand in front of libc.
 * Promise   Names are relative to the directory; "" is the directory itself.
 * Thread    begin: one, before the others. inside, name: any. add, forget: the caller serializes the calls for one descriptor.
 * Memory    Names live until forget. */
#ifndef DP_TESTS_FAULT_WATCH_H
#define DP_TESTS_FAULT_WATCH_H

#include <limits.h>
#include <stdbool.h>

#define DP_WATCH_FDS 4096

/* false: there is no such directory. Until begin has succeeded nothing is inside. */
bool dp_watch_begin(const char *root);
/* The name of a path; false: it lies elsewhere. at: as openat's. */
bool dp_watch_inside(int at, const char *path, char out[PATH_MAX]);
const char *dp_watch_name(int fd); /* NULL: it is not watched */
bool dp_watch_add(int fd, const char *name);
void dp_watch_forget(int fd);

#endif
