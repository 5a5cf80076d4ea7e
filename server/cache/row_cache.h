/* Row cache: rows of one table of one shard in memory: an index from mixed key to row number, and the rows.
 * Index     Up to 256 partitions, each an interval of the shard's mixed keys. Each has open addressing with
 *           16-byte slots, doubles by itself and is written back by itself. So growth never stalls a turn
 *           for the complete table. Places come from a product with a secret odd number, so that a peer
 *           with chosen keys cannot make them all meet in one place. ABSENT and FORGOTTEN keys cost a slot
 *           and no row. Those not wanted lately are dropped if they are a quarter of a partition that would
 *           grow; at most half of it is dropped. So pulls of unknown keys do not grow the index without
 *           bound: they are read again. Rows lie in chunks of about 4 MB on 2 MB pages. A key is UNKNOWN or
 *           FORGOTTEN (the store must be asked), READING (it was asked), ABSENT (it has none), or a row
 *           number.
 * Eviction  Second chance: a hand goes round the index, slot by slot (rows know no key), takes the touched
 *           bit from rows that have it and evicts those that have not. These stay: dirty and due rows, all
 *           rows of a partition while a portion of it is written, and keys that the caller names. FORGOTTEN
 *           keys go as the hand meets them, ABSENT ones as rows do. The memory of an evicted row is used
 *           for the next row of this cache. Shrinking returns memory: rows above a number are moved below
 *           it or evicted, then the pages after it are returned.
 * Charge    The bytes that budgets count: those taken, but 43 for each entry of the index, which is a
 *           partition's emptiest (3/8) after it doubled. So room for n rows costs the same whatever their
 *           keys, and a row that goes gives all of it back. (A partition from which rows went may be at
 *           9/32: 57 bytes an entry, until they come again.)
 * Thread    The shard's. Memory: the cache's; row numbers and pointers to rows hold until the next evict or
 *           shrink.
 * Failure   DP_NOMEM leaves the cache as it was. */
#ifndef DP_CACHE_ROW_CACHE_H
#define DP_CACHE_ROW_CACHE_H

#include "common/base/memory.h"
#include "common/base/status.h"
#include "common/model/range.h"
#include "server/cache/index_pages.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_ROW_UNKNOWN   0xffffffffu
#define DP_ROW_ABSENT    0xfffffffeu
#define DP_ROW_READING   0xfffffffdu
#define DP_ROW_FORGOTTEN 0xfffffffcu
#define DP_ROW_MAX       0xfffffff0u

#define DP_ROW_PARTITIONS 256u
#define DP_ROW_SLOT_COST                                                                                     \
    ((uint64_t)43) /* of the index, for an entry: a slot at 3/8 load, the least after a doubling */

static inline bool dp_row_is_number(uint32_t row)
{
    return row < DP_ROW_MAX;
}

struct dp_row_cache {
    size_t row_bytes;
    uint32_t chunk_shift; /* rows in a chunk: 1 << chunk_shift */
    uint32_t rows;        /* numbers given out: those in use and the free ones are all below it */
    uint32_t chunks;
    char **chunk;
    /* One bit a row: changed since the present write-back cycle began; changed before, and not written yet; used since the
     * hand came by. */
    uint64_t *dirty, *due, *touched;
    uint32_t dirty_rows, due_rows;
    /* Free rows, linked through their memory. While rows move below `target`: freed below it; free before, not sorted yet;
     * free at or above it. */
    struct dp_row_list {
        uint32_t first, last, count;
    } free, unsorted, above;
    uint32_t target;     /* DP_ROW_MAX: the cache does not shrink */
    uint64_t shrink_lap; /* when it began */
    uint32_t hand_partition, hand_place;
    uint64_t laps;        /* of the hand */
    uint64_t first;       /* of the shard's range */
    uint32_t range_shift; /* mixed - first, shifted: the partition */
    uint64_t salt;        /* odd */
    uint64_t bytes;       /* taken: rows and free rows, index, bits, list of chunks */
    uint64_t index_bytes, index_charge;
    uint64_t slots;   /* of all partitions */
    uint64_t entries; /* index entries, absent ones too */
    uint32_t empty;   /* partitions without slots */
    uint8_t
        writing[DP_ROW_PARTITIONS]; /* portions copied and not in the store yet: nothing is evicted there */
    struct dp_row_partition {
        struct dp_row_slot *slots;
        uint32_t used, capacity; /* a power of two, or 0 */
    } partition[DP_ROW_PARTITIONS];
    struct dp_index_pages index_pages;
};

struct dp_row_slot {
    uint64_t mixed;
    uint32_t row;     /* as above; DP_ROW_UNKNOWN: a free slot */
    uint32_t touched; /* ABSENT: since the hand came by; rows have a bit for it */
};

enum dp_status dp_row_cache_new(size_t row_bytes, uint64_t salt, struct dp_range range,
                                struct dp_row_cache **out);
void dp_row_cache_free(struct dp_row_cache **cache);

static inline void *dp_row_cache_row(const struct dp_row_cache *cache, uint32_t row)
{
    return cache->chunk[row >> cache->chunk_shift] +
           (size_t)(row & ((1u << cache->chunk_shift) - 1)) * cache->row_bytes;
}
static inline void dp_row_cache_prefetch(const struct dp_row_cache *cache, uint32_t row)
{
    dp_prefetch(dp_row_cache_row(cache, row), cache->row_bytes);
}

uint32_t dp_row_cache_find(const struct dp_row_cache *cache, uint64_t mixed);
/* keys: u64[n] little endian, any alignment -> rows[n]. */
void dp_row_cache_find_many(const struct dp_row_cache *cache, const void *keys, uint32_t n, uint32_t *rows);
/* The key must not have a row: it gets a new one, touched, what is in it undefined. */
enum dp_status dp_row_cache_insert(struct dp_row_cache *cache, uint64_t mixed, uint32_t *row);
/* The key must not have a row. state: ABSENT, READING or FORGOTTEN. Cannot fail when the key had one of them
 * already. */
enum dp_status dp_row_cache_set_state(struct dp_row_cache *cache, uint64_t mixed, uint32_t state);
static inline uint64_t dp_row_cache_charge(const struct dp_row_cache *cache)
{
    return cache->bytes - cache->index_bytes + cache->index_charge;
}
/* By how much the charge may grow at most when n more rows come, whatever their keys; of which so many have no entry in the
 * index yet. */
uint64_t dp_row_cache_cost_of(const struct dp_row_cache *cache, uint64_t rows, uint64_t entries);
static inline uint32_t dp_row_cache_free_rows(const struct dp_row_cache *cache)
{
    return cache->free.count + cache->unsorted.count + cache->above.count;
}

static inline void dp_row_cache_touch(struct dp_row_cache *cache, uint32_t row)
{
    cache->touched[row / 64] |= (uint64_t)1 << row % 64;
}

static inline void dp_row_cache_set_dirty(struct dp_row_cache *cache, uint32_t row)
{
    cache->dirty_rows += !(cache->dirty[row / 64] >> row % 64 & 1);
    cache->dirty[row / 64] |= (uint64_t)1 << row % 64;
}

/* Back to due: the caller could not have it written. */
static inline void dp_row_cache_set_due(struct dp_row_cache *cache, uint32_t row)
{
    cache->due_rows += !(cache->due[row / 64] >> row % 64 & 1);
    cache->due[row / 64] |= (uint64_t)1 << row % 64;
}

/* A write-back cycle begins: dirty rows become due. None may be due. */
void dp_row_cache_begin_cycle(struct dp_row_cache *cache);
/* Calls visit(context, mixed, row) for due rows of one partition, in no order, `most` at most; they are neither due nor
 * dirty then: the caller has them written as they are. Returns how many. */
uint32_t dp_row_cache_take_due(struct dp_row_cache *cache, uint32_t partition, uint32_t most,
                               void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context);

/* Called for rows that leave; keys that stay. */
struct dp_row_leaving {
    void (*evicted)(void *context, const void *row); /* which is there during the call */
    void *context;
    const void *kept; /* keys (u64 little endian, ascending) that do not leave, ABSENT ones too */
    uint32_t kept_count;
};

/* Evicts `want` rows at most; the hand looks at *steps slots at most, which are taken from it. Returns how many. */
uint32_t dp_row_cache_evict(struct dp_row_cache *cache, uint32_t want, uint32_t *steps,
                            const struct dp_row_leaving *leaving);

/* Shrinking: `rows` is to come down to `target`; what does not fit below it is evicted. */
static inline bool dp_row_cache_is_shrinking(const struct dp_row_cache *cache)
{
    return cache->target != DP_ROW_MAX;
}
void dp_row_cache_shrink(struct dp_row_cache *cache, uint32_t target);
/* True: done, the memory is given back. False: not yet; or given up, after the hand went round six times and could not
 * move all (they are dirty, or new rows came): freed rows are for new ones then. */
bool dp_row_cache_shrink_step(struct dp_row_cache *cache, uint32_t *steps,
                              const struct dp_row_leaving *leaving);

#endif
