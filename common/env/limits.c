#define _GNU_SOURCE /* pthread_getattr_default_np */
#include "common/env/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t dp_limits_begin(void)
{
    struct rlimit limit, all;
    (void)signal(SIGXFSZ, SIG_IGN);
    /* Each arena of malloc reserves 64 MB of address space: only where that costs nothing. */
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        (void)mallopt(M_ARENA_MAX, 2);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return 0;
    all = limit;
    all.rlim_cur = all.rlim_max;
    return (uint64_t)(setrlimit(RLIMIT_NOFILE, &all) == 0 ? all : limit).rlim_cur;
}

/* UINT64_MAX: none. */
static uint64_t limit_of(int resource)
{
    struct rlimit limit;
    return getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
               ? UINT64_MAX
               : (uint64_t)limit.rlim_cur;
}

static uint64_t stack_bytes(void)
{
    pthread_attr_t attr;
    size_t bytes = 0, guard = 0;
    if (pthread_getattr_default_np(&attr) != 0)
        return 8u << 20;
    (void)pthread_attr_getstacksize(&attr, &bytes);
    (void)pthread_attr_getguardsize(&attr, &guard);
    (void)pthread_attr_destroy(&attr);
    return bytes + guard;
}

/* The kernel counts what is reserved, as it counts what is used. */
static bool can_reserve(uint64_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return block != MAP_FAILED && munmap(block, bytes) == 0;
}

/* What is used now counts. */
static uint64_t used_bytes(void)
{
    uint64_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%" SCNu64, &pages) != 1)
        pages = 0;
    (void)fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* "1000 KiB", "16 MiB". Returns out. */
static const char *amount(uint64_t bytes, char out[32])
{
    bool small = bytes < 10u << 20;
    (void)snprintf(out, 32, "%" PRIu64 " %s", bytes >> (small ? 10 : 20), small ? "KiB" : "MiB");
    return out;
}

enum dp_status dp_limits_check(const char *who, const struct dp_limits_need *need, struct dp_error *err)
{
    const uint64_t files = limit_of(RLIMIT_NOFILE), memory = limit_of(RLIMIT_AS),
                   size = limit_of(RLIMIT_FSIZE);
    char needed[32], limit[32];
    if (files < need->files)
        return dp_fail(err, DP_FULL,
                       "%s needs about %" PRIu64 " open files and connections, and its limit is %" PRIu64
                       ": raise 'ulimit -n'",
                       who, need->files, files);
    if (size < need->file_bytes)
        return dp_fail(err, DP_FULL, "%s needs files of %s, and their limit is %s: raise 'ulimit -f'", who,
                       amount(need->file_bytes, needed), amount(size, limit));
    const uint64_t bytes = need->memory_bytes + need->threads * stack_bytes();
    if (memory != UINT64_MAX && bytes > 0 && !can_reserve(bytes))
        return dp_fail(err, DP_FULL,
                       "%s needs about %s of address space, and its limit is %s: raise 'ulimit -v'", who,
                       amount(bytes + used_bytes(), needed), amount(memory, limit));
    return DP_OK;
}

const char *dp_limits_remedy(int why)
{
    return why == ENOSPC || why == EDQUOT ? "; make room on that disk"
           : why == EFBIG                 ? "; raise 'ulimit -f'"
                                          : "";
}

bool dp_limits_full(int why)
{
    return dp_limits_remedy(why)[0] != '\0';
}
