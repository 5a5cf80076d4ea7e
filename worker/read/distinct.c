#include "worker/read/distinct.h"

#include <stdbool.h>
#include <string.h>

/* Up to here insertion sort is cheaper than a pass with 256 counters. */
#define INSERTION_MAX 32

static void insertion_sort(struct dp_distinct_entry *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct dp_distinct_entry e = a[i];
        uint32_t j = i;
        for (; j > 0 && a[j - 1].key > e.key; j--)
            a[j] = a[j - 1];
        a[j] = e;
    }
}

static bool all_equal(const struct dp_distinct_entry *a, uint32_t n)
{
    uint64_t differs = 0;
    for (uint32_t i = 1; i < n; i++)
        differs |= a[i].key ^ a[0].key;
    return differs == 0;
}

/* Sorts a[0 .. n-1], which agree in all but their low `bits` bits; b is room for as many. */
static void refine(struct dp_distinct_entry *a, struct dp_distinct_entry *b, uint32_t n, uint32_t bits)
{
    if (n <= INSERTION_MAX) {
        insertion_sort(a, n);
        return;
    }
    /* The keys that most examples have fill a bucket with copies of one. It also ends the recursion: with no
     * bits left all are equal. */
    if (all_equal(a, n))
        return;
    uint32_t digit = bits < 8 ? bits : 8, shift = bits - digit;
    uint32_t mask = (1u << digit) - 1, starts[257] = {0};
    for (uint32_t i = 0; i < n; i++)
        starts[((uint32_t)(a[i].key >> shift) & mask) + 1]++;
    for (uint32_t d = 0; d < 256; d++)
        starts[d + 1] += starts[d];
    for (uint32_t i = 0; i < n; i++)
        b[starts[(uint32_t)(a[i].key >> shift) & mask]++] = a[i];
    memcpy(a, b, n * sizeof *a);
    /* After the scatter starts[d] is the end of bucket d. */
    for (uint32_t d = 0, from = 0; d <= mask; from = starts[d++])
        if (starts[d] - from > 1)
            refine(a + from, b + from, starts[d] - from, shift);
}

/* About one entry a bucket. */
static uint32_t top_bits(uint32_t n)
{
    uint32_t bits = 1;
    while (bits < DP_DISTINCT_TOP_BITS && n >> bits > 1)
        bits++;
    return bits;
}

uint32_t dp_distinct(struct dp_distinct_scratch *scratch, uint32_t n, uint64_t *keys, uint32_t *slots)
{
    struct dp_distinct_entry *from = scratch->entries, *to = scratch->sorted;
    uint32_t *starts = scratch->starts;
    uint32_t bits = top_bits(n), shift = 64 - bits, buckets = 1u << bits;
    memset(starts, 0, (buckets + 1) * sizeof *starts);
    for (uint32_t i = 0; i < n; i++)
        starts[(from[i].key >> shift) + 1]++;
    for (uint32_t b = 0; b < buckets; b++)
        starts[b + 1] += starts[b];
    for (uint32_t i = 0; i < n; i++)
        to[starts[from[i].key >> shift]++] = from[i];
    uint32_t distinct = 0;
    for (uint32_t b = 0, begin = 0; b < buckets; begin = starts[b++]) {
        if (starts[b] - begin > 1)
            refine(to + begin, from + begin, starts[b] - begin, shift);
        for (uint32_t i = begin; i < starts[b]; i++) {
            if (i == begin || to[i].key != to[i - 1].key)
                keys[distinct++] = to[i].key;
            slots[to[i].at] = distinct - 1;
        }
    }
    return distinct;
}
