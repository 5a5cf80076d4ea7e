#define _DEFAULT_SOURCE
#include "common/base/memory.h"

#include "common/base/status.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

bool dp_array_reserve(void *array, size_t count, size_t *room, size_t each)
{
    void *things;
    if (count < *room)
        return true;
    const size_t more = *room ? 2 * *room : 16;
    memcpy(&things, array, sizeof things);
    things = realloc(things, more * each);
    if (!things)
        return false;
    memcpy(array, &things, sizeof things);
    *room = more;
    return true;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

void *dp_pages_alloc(size_t bytes)
{
    size_t want = whole_pages(bytes);
    if (want < bytes || want + HUGE_PAGE < want)
        return NULL;
    /* One page more, so that the start can be moved up to a 2 MB boundary; the rest is given back. */
    char *raw = mmap(NULL, want + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t skip = (HUGE_PAGE - (uintptr_t)raw % HUGE_PAGE) % HUGE_PAGE;
    if (skip > 0)
        DP_ASSERT(munmap(raw, skip) == 0);
    if (HUGE_PAGE - skip > 0)
        DP_ASSERT(munmap(raw + skip + want, HUGE_PAGE - skip) == 0);
    (void)madvise(raw + skip, want, MADV_HUGEPAGE); /* a hint: without it only speed is lost */
    return raw + skip;
}

void dp_pages_free(void *block, size_t bytes)
{
    if (block)
        DP_ASSERT(munmap(block, whole_pages(bytes)) == 0);
}
