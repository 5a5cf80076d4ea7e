#define _GNU_SOURCE /* mount, unshare */
#include "tests/system/small_disk.h"

#include "tests/lib/test.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#define PAGES_LEFT 4u
#define TRIES      100 /* who writes meanwhile may take more than that between two calls */

static int mount_it(const char *path, uint64_t bytes, unsigned long flags)
{
    char size[48];
    (void)snprintf(size, sizeof size, "size=%" PRIu64, bytes);
    return mount("none", path, "tmpfs", flags, size);
}

bool dp_small_disk_mount(const char *path, uint64_t bytes)
{
    if (unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount_it(path, bytes, 0) == 0)
        return true;
    print_message("skipped: no tmpfs could be mounted (%s)\n", strerror(errno));
    return false;
}

void dp_small_disk_resize(const char *path, uint64_t bytes)
{
    assert_int_equal(mount_it(path, bytes, MS_REMOUNT), 0);
}

void dp_small_disk_fill(const char *path)
{
    struct statvfs space;
    int failed = 1;
    for (int tries = 0; failed != 0 && tries < TRIES; tries++) {
        assert_int_equal(statvfs(path, &space), 0);
        failed = mount_it(path, (uint64_t)(space.f_blocks - space.f_bfree + PAGES_LEFT) * space.f_frsize,
                          MS_REMOUNT);
    }
    assert_int_equal(failed, 0);
}

void dp_small_disk_unmount(const char *path)
{
    (void)umount(path);
}
