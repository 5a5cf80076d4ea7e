/* Misses: finding the rows of a lookup, and reading those that only the store has.
 *     find -> (some unknown: room for them (cache_budget.h), one read for all of them: park) -> read -> (some rows a turn)
 *     found: into the cache, else: ABSENT -> all are: ended() -> parked requests try again
 * Promise   One read a key is under way at a time. A row that is in the cache is never overwritten by a
 *           read. A failed read is reported to the lookup that asked; other waiting lookups ask for
 *           themselves.
 * Thread    The shard's. Memory: keys of a lookup are copied into its read. */
#ifndef DP_CACHE_MISSES_H
#define DP_CACHE_MISSES_H

#include "server/cache/cache_budget.h"
#include "server/cache/damage.h"
#include "server/cache/io_jobs.h"

struct dp_misses {
    struct dp_shard_base *base;
    struct dp_cached_tables *tables;
    struct dp_io_jobs *jobs;
    struct dp_cache_budget *budget;
    uint32_t turn_rows; /* of reads that are done, taken in in one turn at most */
    /* A read was taken in completely: requests that wait for it are to be tried. err: why it failed. */
    void (*ended)(void *context, const struct dp_io_job *read, const struct dp_error *err);
    void *context;
    uint32_t *rows; /* row numbers of the present lookup, section after section */
    size_t rows_room;
    struct dp_io_job *first, *last; /* reads that are done and not taken in in full, oldest first */
    uint32_t untaken;               /* so many */
};

enum dp_found {
    DP_FOUND,         /* misses->rows: no key needs reading, and a push's new rows have room */
    DP_FOUND_READING, /* rows are being read: park it for the store */
    DP_FOUND_PARK,    /* park it for room */
    DP_FOUND_REFUSED, /* why in err */
};
/* first: no other that waits for room came before it. */
enum dp_found dp_misses_find(struct dp_misses *misses, struct dp_lookup *lookup, bool first,
                             struct dp_error *err);
/* For the request after one that waits: reads what it lacks, if there is room. Once; where none waits for room. */
void dp_misses_read_ahead(struct dp_misses *misses, struct dp_lookup *lookup);
/* Takes some rows of reads that are done in. last_lsn: of the last push; no row may be ahead of it. */
void dp_misses_turn(struct dp_misses *misses, uint64_t last_lsn);
void dp_misses_clear(struct dp_misses *misses);

#endif
