#include "worker/read/distinct.h"

#include <stdbool.h>
#include <string.h>

/* Up to this size insertion sort is cheaper than a pass with 256 counters. */
#define INSERTION_MAX 32

#define FREE UINT32_MAX
/* Slots after the last home: for the runs there, and one that stays free and ends every probe. */
#define TAIL 64u
/* Probes and moves for each entry, beyond which keys count as clustered. */
#define STEPS_MAX 4u

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

/* Sorts a[0 .. n-1], which differ only in their low `bits` bits; b is scratch of the same size. */
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

static uint32_t by_sorting(struct dp_distinct_scratch *scratch, uint32_t n, uint64_t *keys, uint32_t *slots)
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

/* At most two thirds of the homes are taken, if all keys differ. */
static uint32_t home_bits(uint32_t n)
{
    uint32_t bits = 1;
    while (bits < 31 && (uint64_t)1 << bits < (uint64_t)n + n / 2)
        bits++;
    return bits;
}

size_t dp_distinct_table_len(uint32_t entries)
{
    return ((size_t)1 << home_bits(entries)) + TAIL;
}

/* Puts the entries' keys into the table, each with its number in order of first appearance, and each entry's
 * number into `slots`. Returns how many are distinct; 0: keys cluster, nothing was done. */
static uint32_t fill_table(struct dp_distinct_scratch *scratch, uint32_t n, uint32_t *slots)
{
    struct dp_distinct_entry *table = scratch->table;
    const struct dp_distinct_entry *end = table + dp_distinct_table_len(n) - 1;
    uint32_t shift = 64 - home_bits(n), distinct = 0;
    ptrdiff_t steps = (ptrdiff_t)STEPS_MAX * n;
    memset(table, 0xff, dp_distinct_table_len(n) * sizeof *table); /* every `at` FREE */
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t key = scratch->entries[i].key;
        struct dp_distinct_entry *home = table + (key >> shift), *here = home, *next;
        while (here->at != FREE && here->key < key)
            here++;
        if (here->at == FREE || here->key != key) {
            for (next = here; next->at != FREE;)
                next++;
            steps -= next - home;
            if (next == end || steps < 0)
                return 0;
            for (; next > here; next--)
                *next = next[-1];
            *here = (struct dp_distinct_entry){.key = key, .at = distinct++};
        } else if ((steps -= here - home) < 0) {
            return 0;
        }
        slots[scratch->entries[i].at] = here->at;
    }
    return distinct;
}

uint32_t dp_distinct(struct dp_distinct_scratch *scratch, uint32_t n, uint64_t *keys, uint32_t *slots)
{
    uint32_t distinct = fill_table(scratch, n, slots), row = 0;
    if (distinct == 0)
        return by_sorting(scratch, n, keys, slots);
    struct dp_distinct_entry *sorted = scratch->sorted, *rows = scratch->entries;
    /* No branch on free slots, which no processor could predict. */
    for (const struct dp_distinct_entry *at = scratch->table; row < distinct; at++) {
        sorted[row] = *at;
        row += at->at != FREE;
    }
    for (row = 0; row < distinct; row++) {
        keys[row] = sorted[row].key;
        rows[sorted[row].at].at = row;
    }
    for (uint32_t i = 0; i < n; i++)
        slots[i] = rows[slots[i]].at;
    return distinct;
}
