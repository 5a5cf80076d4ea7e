/* Small disk: a tmpfs of a few MB in place of a directory, which fills up and gets room again at the test's word. It is seen by this
 * process and its children alone, and goes with them.
 * Thread    The test's own: the checks here are CMocka's. */
#ifndef DP_TESTS_SYSTEM_SMALL_DISK_H
#define DP_TESTS_SYSTEM_SMALL_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* Over an existing directory. False: this process may not mount; it has said so, and the test skips. */
bool dp_small_disk_mount(const char *path, uint64_t bytes);
void dp_small_disk_resize(const char *path, uint64_t bytes);
/* Nothing more fits than four pages: no file of rows, no segment. */
void dp_small_disk_fill(const char *path);
void dp_small_disk_unmount(const char *path);

#endif
