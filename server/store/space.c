#include "server/store/space.h"

#include <stdint.h>
#include <sys/statvfs.h>

static uint64_t reserve_of(uint64_t disk_bytes)
{
    uint64_t reserve = disk_bytes / DP_SPACE_SHARE;
    reserve = reserve < DP_SPACE_MAX ? reserve : DP_SPACE_MAX;
    return reserve > DP_SPACE_MIN ? reserve : DP_SPACE_MIN;
}

enum dp_status dp_space_check(const char *directory, uint64_t bytes, enum dp_space_use use,
                              struct dp_error *err)
{
    struct statvfs disk;
    if (statvfs(directory, &disk) != 0)
        return DP_OK;
    uint64_t left = (uint64_t)disk.f_bavail * disk.f_frsize;
    uint64_t reserve = reserve_of((uint64_t)disk.f_blocks * disk.f_frsize);
    if (use == DP_SPACE_MARKS)
        reserve /= 2;
    if (left >= bytes + reserve)
        return DP_OK;
    return dp_fail(
        err, DP_FULL,
        "store %s: its disk has %llu KiB left, but needs %llu KiB and a reserve of %llu KiB; make room on "
        "that disk, the server retries",
        directory, (unsigned long long)(left >> 10), (unsigned long long)(bytes >> 10),
        (unsigned long long)(reserve >> 10));
}
