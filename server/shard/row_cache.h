/* Row cache: the rows of one table of one shard in memory: an index from mixed key to row number, and the
 * rows.
 * Index     Up to 256 partitions, each an interval of the shard's mixed keys, of open addressing with 16-byte
 *           slots; each doubles by itself, so that growing never stalls a turn for the whole table, and is
 *           written back by itself. Places come from a product with a secret odd number, so that a peer who
 *           picks his keys cannot make them all meet in one place. ABSENT and FORGOTTEN keys, which cost a slot
 *           and no row, are dropped where they are half of a partition that would grow: pulls of keys that are
 *           nowhere do not grow the index without bound, they are read again.
 *           Rows lie in chunks of about 4 MB on 2 MB pages; a row never moves. A key is UNKNOWN or
 *           FORGOTTEN (the store must be asked), READING (it was asked), ABSENT (it has none), or a row
 *           number.
 * Thread    The shard's. Memory: the cache's; pointers to rows live as long as the cache.
 * Failure   DP_NOMEM leaves the cache as it was. */
#ifndef DP_SHARD_ROW_CACHE_H
#define DP_SHARD_ROW_CACHE_H

#include "common/base/memory.h"
#include "common/base/status.h"
#include "common/model/range.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_ROW_UNKNOWN   0xffffffffu
#define DP_ROW_ABSENT    0xfffffffeu
#define DP_ROW_READING   0xfffffffdu
#define DP_ROW_FORGOTTEN 0xfffffffcu
#define DP_ROW_MAX       0xfffffff0u

#define DP_ROW_PARTITIONS 256u

static inline bool dp_row_is_number(uint32_t row)
{
    return row < DP_ROW_MAX;
}

struct dp_row_cache {
    size_t row_bytes;
    uint32_t chunk_shift; /* rows in a chunk: 1 << chunk_shift */
    uint32_t rows;        /* in use, all below it */
    uint32_t chunks;
    char **chunk;
    /* One bit a row: changed since the write-back cycle at hand began; changed before, and not written yet. */
    uint64_t *dirty, *due;
    uint64_t first;       /* of the shard's range */
    uint32_t range_shift; /* mixed - first, shifted: the partition */
    uint64_t salt;        /* odd */
    uint64_t bytes;       /* taken: rows in use, index, dirty bits, list of chunks */
    uint64_t entries;     /* index entries, absent ones too */
    struct dp_row_partition {
        struct dp_row_slot *slots;
        uint32_t used, capacity; /* a power of two, or 0 */
    } partition[DP_ROW_PARTITIONS];
};

struct dp_row_slot {
    uint64_t mixed;
    uint32_t row; /* as above; DP_ROW_UNKNOWN: a free slot */
    uint32_t reserved;
};

DP_MUST_USE
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
/* The key must not have a row: it gets a new, zero-filled one. */
DP_MUST_USE
enum dp_status dp_row_cache_insert(struct dp_row_cache *cache, uint64_t mixed, uint32_t *row);
/* The key must not have a row. state: ABSENT, READING or FORGOTTEN. Cannot fail when the key had one of them
 * already. */
DP_MUST_USE
enum dp_status dp_row_cache_set_state(struct dp_row_cache *cache, uint64_t mixed, uint32_t state);
/* Bytes that n more rows may take at most, whatever their keys. */
uint64_t dp_row_cache_cost(const struct dp_row_cache *cache, uint64_t n);

static inline void dp_row_cache_set_dirty(struct dp_row_cache *cache, uint32_t row)
{
    cache->dirty[row / 64] |= (uint64_t)1 << row % 64;
}

/* Back to due: the caller could not have it written. */
static inline void dp_row_cache_set_due(struct dp_row_cache *cache, uint32_t row)
{
    cache->due[row / 64] |= (uint64_t)1 << row % 64;
}

/* A write-back cycle begins: what is dirty becomes due. Nothing may be due. */
void dp_row_cache_begin_cycle(struct dp_row_cache *cache);
/* Calls visit(context, mixed, row) for due rows of one partition, in no order, `most` at most; they are neither due nor
 * dirty then: the caller has them written as they are. Returns how many. */
uint32_t dp_row_cache_take_due(struct dp_row_cache *cache, uint32_t partition, uint32_t most,
                               void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context);

#endif
