/* Lookup: the keys of one request, and their state in the cache.
 * Holds     to_read = sum of unknown, to_make = sum of fresh, as of the last check by misses.c.
 * Memory    The owner's, keys included. Budget and misses keep pointers to it (until
 *           dp_cache_budget_forget). */
#ifndef DP_CACHE_LOOKUP_H
#define DP_CACHE_LOOKUP_H

#include "server/cache/cached_tables.h"

#define DP_LOOKUP_SECTIONS_MAX 64u

struct dp_io_job;

struct dp_lookup_section {
    struct dp_cached_table *table;
    const void *keys; /* u64[rows] little endian, any alignment, mixed, strictly ascending */
    uint32_t rows;
    uint32_t unknown, fresh;           /* to be read; new rows of a push */
    uint32_t entries, unknown_entries; /* those of either that are not in the index */
};

struct dp_lookup {
    bool makes; /* a push: a key without a row gets one */
    bool ahead; /* it was looked at while the one before it waited */
    bool reading;
    uint32_t to_read, to_make;
    uint64_t read_bytes;          /* memory of a read of the unknown keys */
    uint64_t share;               /* bytes of rows that it needs in the cache at once */
    uint32_t reads;               /* how often it had rows read */
    const struct dp_io_job *read; /* that reads for it; NULL: none */
    uint32_t sections;
    struct dp_lookup_section section[DP_LOOKUP_SECTIONS_MAX];
};

#endif
