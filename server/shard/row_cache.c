#include "server/shard/row_cache.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"

#define CHUNK_BYTES     ((size_t)4 << 20)
#define EXTENT_CHUNKS   16u /* mapped as one: whole 2 MB pages for each would waste up to a quarter */
#define CAPACITY_MIN    8u
#define FIND_AHEAD      16u
#define PARTITION_COUNT DP_ROW_PARTITIONS
#define SLOT_COST       ((uint64_t)43)
#define PARTITION_MIN   ((uint64_t)CAPACITY_MIN * sizeof(struct dp_row_slot))

enum dp_status dp_row_cache_new(size_t row_bytes, uint64_t salt, struct dp_range range,
                                struct dp_row_cache **out)
{
    struct dp_row_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return DP_NOMEM;
    cache->row_bytes = row_bytes;
    cache->salt = salt | 1;
    cache->first = range.first;
    uint64_t span = range.last - range.first;
    while (span >> cache->range_shift >= PARTITION_COUNT)
        cache->range_shift++;
    while (((size_t)2 << cache->chunk_shift) * row_bytes <= CHUNK_BYTES)
        cache->chunk_shift++;
    cache->bytes = sizeof *cache;
    *out = cache;
    return DP_OK;
}

static size_t chunk_bytes(const struct dp_row_cache *cache)
{
    return ((size_t)1 << cache->chunk_shift) * cache->row_bytes;
}

void dp_row_cache_free(struct dp_row_cache **cache)
{
    if (!*cache)
        return;
    for (uint32_t i = 0; i < PARTITION_COUNT; i++)
        free((*cache)->partition[i].slots);
    if ((*cache)->chunks > 0)
        free((*cache)->chunk[0]);
    for (uint32_t i = 1; i < (*cache)->chunks; i += EXTENT_CHUNKS)
        dp_pages_free((*cache)->chunk[i], EXTENT_CHUNKS * chunk_bytes(*cache));
    free((*cache)->chunk);
    free((*cache)->dirty);
    free((*cache)->due);
    free(*cache);
    *cache = NULL;
}

static uint32_t partition_of(const struct dp_row_cache *cache, uint64_t mixed)
{
    return (uint32_t)((mixed - cache->first) >> cache->range_shift);
}
/* Multiply-shift (Dietzfelbinger et al. 1997): the highest bits of the product are the place in a partition. */
static uint32_t home_of(uint64_t hash, uint32_t capacity)
{
    return (uint32_t)(hash >> (33 + __builtin_clz(capacity)));
}

/* The key's slot, or the free slot where it belongs. capacity > 0. */
static struct dp_row_slot *slot_of(const struct dp_row_partition *partition, uint64_t mixed, uint64_t hash)
{
    uint32_t mask = partition->capacity - 1;
    for (uint32_t at = home_of(hash, partition->capacity);; at = (at + 1) & mask) {
        struct dp_row_slot *slot = &partition->slots[at];
        if (slot->row == DP_ROW_UNKNOWN || slot->mixed == mixed)
            return slot;
    }
}

uint32_t dp_row_cache_find(const struct dp_row_cache *cache, uint64_t mixed)
{
    uint64_t hash = mixed * cache->salt;
    const struct dp_row_partition *partition = &cache->partition[partition_of(cache, mixed)];
    return partition->capacity == 0 ? DP_ROW_UNKNOWN : slot_of(partition, mixed, hash)->row;
}

/* The slot where a key's search begins; NULL: its partition is empty. */
static const struct dp_row_slot *first_slot(const struct dp_row_cache *cache, uint64_t mixed)
{
    uint64_t hash = mixed * cache->salt;
    const struct dp_row_partition *partition = &cache->partition[partition_of(cache, mixed)];
    return partition->capacity == 0 ? NULL : &partition->slots[home_of(hash, partition->capacity)];
}

/* Two stages over a ring of slots: where the search begins, fetched; then, AHEAD keys later, what is there:
 * nearly always the key itself or nothing. */
void dp_row_cache_find_many(const struct dp_row_cache *cache, const void *keys, uint32_t n, uint32_t *rows)
{
    const struct dp_row_slot *ring[FIND_AHEAD];
    const char *at = keys;
    uint32_t ahead = n < FIND_AHEAD ? n : FIND_AHEAD;
    for (uint32_t i = 0; i < ahead; i++) {
        ring[i] = first_slot(cache, dp_load_u64le(at + (size_t)i * 8));
        __builtin_prefetch(ring[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mixed = dp_load_u64le(at + (size_t)i * 8);
        const struct dp_row_slot *slot = ring[i % FIND_AHEAD];
        if (i + FIND_AHEAD < n) {
            const struct dp_row_slot *next =
                first_slot(cache, dp_load_u64le(at + (size_t)(i + FIND_AHEAD) * 8));
            __builtin_prefetch(next);
            ring[i % FIND_AHEAD] = next;
        }
        if (!slot)
            rows[i] = DP_ROW_UNKNOWN;
        else if (slot->mixed == mixed || slot->row == DP_ROW_UNKNOWN)
            rows[i] = slot->row;
        else
            rows[i] = dp_row_cache_find(cache, mixed);
    }
}

/* What may be forgotten: the store is asked again. READING may not: a read will come back for it. */
static bool is_droppable(uint32_t row)
{
    return row == DP_ROW_ABSENT || row == DP_ROW_FORGOTTEN;
}

static enum dp_status grow_partition(struct dp_row_cache *cache, struct dp_row_partition *partition)
{
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < partition->capacity; i++)
        dropped += is_droppable(partition->slots[i].row);
    bool grows = partition->used == 0 || dropped < partition->used / 2;
    struct dp_row_partition larger = {.capacity = !grows                ? partition->capacity
                                                  : partition->capacity ? partition->capacity * 2
                                                                        : CAPACITY_MIN};
    larger.slots = malloc(larger.capacity * sizeof larger.slots[0]);
    if (!larger.slots)
        return DP_NOMEM;
    for (uint32_t i = 0; i < larger.capacity; i++)
        larger.slots[i] = (struct dp_row_slot){.row = DP_ROW_UNKNOWN};
    for (uint32_t i = 0; i < partition->capacity; i++)
        if (partition->slots[i].row != DP_ROW_UNKNOWN && (grows || !is_droppable(partition->slots[i].row))) {
            uint64_t mixed = partition->slots[i].mixed;
            *slot_of(&larger, mixed, mixed * cache->salt) = partition->slots[i];
            larger.used++;
        }
    cache->entries -= partition->used - larger.used;
    cache->bytes += (larger.capacity - partition->capacity) * sizeof larger.slots[0];
    free(partition->slots);
    *partition = larger;
    return DP_OK;
}

/* The key's slot, or a free one for it. */
static struct dp_row_slot *slot_for_entry(struct dp_row_cache *cache, uint64_t mixed)
{
    uint64_t hash = mixed * cache->salt;
    struct dp_row_partition *partition = &cache->partition[partition_of(cache, mixed)];
    struct dp_row_slot *there = partition->capacity ? slot_of(partition, mixed, hash) : NULL;
    if (there && there->row != DP_ROW_UNKNOWN)
        return there;
    /* At most 3/4 full: a probe stays within a cache line or two. */
    if ((partition->used + 1) * 4 > partition->capacity * 3 && grow_partition(cache, partition) != DP_OK)
        return NULL;
    return slot_of(partition, mixed, hash);
}

static void take_slot(struct dp_row_cache *cache, struct dp_row_slot *slot, uint64_t mixed, uint32_t row)
{
    if (slot->row == DP_ROW_UNKNOWN) {
        cache->partition[partition_of(cache, mixed)].used++;
        cache->entries++;
    }
    *slot = (struct dp_row_slot){.mixed = mixed, .row = row};
}

static enum dp_status grow_bits(uint64_t **bits, size_t before, size_t after)
{
    uint64_t *more = realloc(*bits, after * sizeof more[0]);
    if (!more)
        return DP_NOMEM;
    memset(more + before, 0, (after - before) * sizeof more[0]);
    *bits = more;
    return DP_OK;
}

/* A small table stays within its first chunk: plain memory, of which only what is touched is taken. The
 * others are parts of extents: address space whose pages are taken as they are touched. */
static char *new_chunk(const struct dp_row_cache *cache)
{
    if (cache->chunks == 0)
        return calloc(1, chunk_bytes(cache));
    if ((cache->chunks - 1) % EXTENT_CHUNKS == 0)
        return dp_pages_alloc(EXTENT_CHUNKS * chunk_bytes(cache));
    return cache->chunk[cache->chunks - 1] + chunk_bytes(cache);
}

static enum dp_status add_chunk(struct dp_row_cache *cache)
{
    char **list = realloc(cache->chunk, (cache->chunks + 1) * sizeof list[0]);
    if (!list)
        return DP_NOMEM;
    cache->chunk = list;
    size_t bits_before = ((size_t)cache->chunks << cache->chunk_shift) / 64 + 1;
    size_t bits_after = ((size_t)(cache->chunks + 1) << cache->chunk_shift) / 64 + 1;
    if (grow_bits(&cache->dirty, cache->chunks ? bits_before : 0, bits_after) != DP_OK ||
        grow_bits(&cache->due, cache->chunks ? bits_before : 0, bits_after) != DP_OK)
        return DP_NOMEM;
    char *chunk = new_chunk(cache);
    if (!chunk)
        return DP_NOMEM;
    cache->chunk[cache->chunks] = chunk;
    cache->bytes +=
        sizeof list[0] + (bits_after - (cache->chunks ? bits_before : 0)) * 2 * sizeof cache->dirty[0];
    cache->chunks++;
    return DP_OK;
}

enum dp_status dp_row_cache_insert(struct dp_row_cache *cache, uint64_t mixed, uint32_t *row)
{
    if (cache->rows == DP_ROW_MAX)
        return DP_NOMEM;
    if (cache->rows >> cache->chunk_shift == cache->chunks && add_chunk(cache) != DP_OK)
        return DP_NOMEM;
    struct dp_row_slot *slot = slot_for_entry(cache, mixed);
    if (!slot)
        return DP_NOMEM;
    DP_ASSERT(!dp_row_is_number(slot->row));
    *row = cache->rows++;
    cache->bytes += cache->row_bytes;
    take_slot(cache, slot, mixed, *row);
    return DP_OK;
}

enum dp_status dp_row_cache_set_state(struct dp_row_cache *cache, uint64_t mixed, uint32_t state)
{
    DP_ASSERT(state == DP_ROW_ABSENT || state == DP_ROW_READING || state == DP_ROW_FORGOTTEN);
    struct dp_row_slot *slot = slot_for_entry(cache, mixed);
    if (!slot)
        return DP_NOMEM;
    DP_ASSERT(!dp_row_is_number(slot->row));
    take_slot(cache, slot, mixed, state);
    return DP_OK;
}

uint64_t dp_row_cache_cost(const struct dp_row_cache *cache, uint64_t n)
{
    if (n == 0)
        return 0;
    /* A slot at 3/8 load, the least after a doubling, is 43 bytes an entry; no partition has less than 8. All
     * that the new entries may bring a partition to, less what it has. */
    uint64_t index = SLOT_COST * (cache->entries + n) + PARTITION_COUNT * PARTITION_MIN;
    for (uint32_t i = 0; i < PARTITION_COUNT; i++) {
        const struct dp_row_partition *p = &cache->partition[i];
        uint64_t has = (uint64_t)p->capacity * sizeof p->slots[0];
        uint64_t due = SLOT_COST * p->used + PARTITION_MIN;
        index -= has < due ? has : due;
    }
    uint64_t chunks = ((cache->rows + n - 1) >> cache->chunk_shift) + 1;
    uint64_t new_chunks = chunks > cache->chunks ? chunks - cache->chunks : 0;
    uint64_t each =
        sizeof cache->chunk[0] + ((uint64_t)1 << cache->chunk_shift) / 8 * 2 + 4 * sizeof cache->dirty[0];
    return n * cache->row_bytes + index + new_chunks * each;
}

static size_t words_of(const struct dp_row_cache *cache)
{
    return cache->chunks ? ((size_t)cache->chunks << cache->chunk_shift) / 64 + 1 : 0;
}

void dp_row_cache_begin_cycle(struct dp_row_cache *cache)
{
    uint64_t *due = cache->dirty;
    cache->dirty = cache->due;
    cache->due = due;
    if (words_of(cache) > 0)
        memset(cache->dirty, 0, words_of(cache) * sizeof cache->dirty[0]);
}

uint32_t dp_row_cache_take_due(struct dp_row_cache *cache, uint32_t partition, uint32_t most,
                               void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context)
{
    const struct dp_row_partition *p = &cache->partition[partition];
    uint32_t taken = 0;
    for (uint32_t i = 0; i < p->capacity && taken < most; i++) {
        const struct dp_row_slot *slot = &p->slots[i];
        if (!dp_row_is_number(slot->row))
            continue;
        uint64_t bit = (uint64_t)1 << slot->row % 64;
        if (cache->due[slot->row / 64] & bit) {
            cache->due[slot->row / 64] &= ~bit;
            cache->dirty[slot->row / 64] &= ~bit;
            visit(context, slot->mixed, slot->row);
            taken++;
        }
    }
    return taken;
}
