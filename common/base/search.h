/* Search: the first place in an ascending array that is not below the wanted value, `count` if all are;
 * and the comparisons of numbers for qsort and bsearch. */
#ifndef DP_BASE_SEARCH_H
#define DP_BASE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* below: whether the element at `at` comes before `wanted`. */
static inline size_t dp_lower_bound(const void *array, size_t count, size_t each, const void *wanted,
                                    bool (*below)(const void *at, const void *wanted))
{
    size_t low = 0;
    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (below((const char *)array + middle * each, wanted))
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static inline bool dp_below_u32(const void *at, const void *wanted)
{
    return *(const uint32_t *)at < *(const uint32_t *)wanted;
}

static inline bool dp_below_u64(const void *at, const void *wanted)
{
    return *(const uint64_t *)at < *(const uint64_t *)wanted;
}

static inline size_t dp_lower_bound_u32(const uint32_t *array, size_t count, uint32_t wanted)
{
    return dp_lower_bound(array, count, sizeof *array, &wanted, dp_below_u32);
}

static inline size_t dp_lower_bound_u64(const uint64_t *array, size_t count, uint64_t wanted)
{
    return dp_lower_bound(array, count, sizeof *array, &wanted, dp_below_u64);
}

static inline int dp_compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static inline int dp_compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#endif
