/* Distinct: the distinct keys of a batch in ascending order, and each entry's place among them.
 * Promise   No allocation. Fastest on keys that are spread evenly (mixed keys); at worst 8 passes.
 * Thread    One, with its own scratch.
 * Method    Linear probing with a key's top bits as its home, and smaller keys first in a run. So each
 *           distinct key is stored once, and the table is in order. If keys cluster, the entries are sorted
 *           instead: one scatter by the top bits into small buckets, then insertion sort in each; a bucket
 *           that is still large is split by its next 8 bits. */
#ifndef DP_READ_DISTINCT_H
#define DP_READ_DISTINCT_H

#include <stddef.h>
#include <stdint.h>

#define DP_DISTINCT_TOP_BITS 12

struct dp_distinct_entry {
    uint64_t key;
    uint32_t at; /* which entry of the batch */
};

struct dp_distinct_scratch {
    struct dp_distinct_entry *entries, *sorted; /* [entries of the worst batch] each */
    struct dp_distinct_entry *table;            /* [dp_distinct_table_len(entries of the worst batch)] */
    uint32_t starts[(1u << DP_DISTINCT_TOP_BITS) + 1];
};

size_t dp_distinct_table_len(uint32_t entries);

/* Takes the n entries (in any order) that the caller put into scratch->entries. Writes the distinct keys to
 * keys [n], and for each entry's `at` the row of its key to slots [n]. Returns the number of distinct
 * keys. */
uint32_t dp_distinct(struct dp_distinct_scratch *scratch, uint32_t n, uint64_t *keys, uint32_t *slots);

#endif
