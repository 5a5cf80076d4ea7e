/* Memory: aligned heap blocks, and page blocks that ask for 2 MB pages, zero-filled both; arrays that grow.
 * Failure   NULL; the caller names the purpose (DP_NOMEM). */
#ifndef DP_BASE_MEMORY_H
#define DP_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* 64-byte aligned, zero-filled; free with free(). */
static inline void *dp_alloc_aligned(size_t bytes)
{
    size_t rounded = (bytes + 63) / 64 * 64;
    if (rounded < bytes)
        return NULL;
    void *block = aligned_alloc(64, rounded ? rounded : 64);
    if (block)
        memset(block, 0, rounded ? rounded : 64);
    return block;
}

/* Asks for the cache lines of [at, at + bytes) ahead of their use; `at` may be any address. Without the empty
 * asm GCC takes this for a function without effect and drops the calls: pulls and pushes then wait for every
 * row, at half the speed. */
static inline void dp_prefetch(const void *at, size_t bytes)
{
    __asm__ volatile("");
    const char *line = (const char *)at - ((uintptr_t)at & 63); /* the last one too, wherever it begins */
    for (; line < (const char *)at + bytes; line += 64)
        __builtin_prefetch(line);
}

/* Makes room behind the `count` things, of `each` bytes, of an array; a full one doubles. array: the address
 * of its pointer. False: no memory; the array is as before. */
bool dp_array_reserve(void *array, size_t count, size_t *room, size_t each);

/* Address space of whole 2 MB pages (transparent huge pages asked for); pages are taken as they are touched.
 */
void *dp_pages_alloc(size_t bytes);
void dp_pages_free(void *block, size_t bytes);

#endif
