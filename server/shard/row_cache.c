#include "server/shard/row_cache.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"

#define CHUNK_BYTES     ((size_t)4 << 20)
#define CAPACITY_MIN    8u
#define PREFETCH_AHEAD  12u
#define PARTITION_BITS  8u
#define PARTITION_COUNT (1u << PARTITION_BITS)

enum dp_status dp_row_cache_new(size_t row_bytes, struct dp_row_cache **out)
{
    struct dp_row_cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return DP_NOMEM;
    cache->row_bytes = row_bytes;
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
    for (uint32_t i = 0; i < (*cache)->chunks; i++) {
        if (i == 0)
            free((*cache)->chunk[i]);
        else
            dp_pages_free((*cache)->chunk[i], chunk_bytes(*cache));
    }
    free((*cache)->chunk);
    free((*cache)->dirty);
    free(*cache);
    *cache = NULL;
}

static uint32_t partition_of(uint64_t mixed)
{
    return (uint32_t)mixed & (PARTITION_COUNT - 1);
}
static uint32_t home_of(uint64_t mixed, uint32_t capacity)
{
    return (uint32_t)(mixed >> PARTITION_BITS) & (capacity - 1);
}

/* The key's slot, or the free slot where it belongs. capacity > 0. */
static struct dp_row_slot *slot_of(const struct dp_row_partition *partition, uint64_t mixed)
{
    uint32_t mask = partition->capacity - 1;
    for (uint32_t at = home_of(mixed, partition->capacity);; at = (at + 1) & mask) {
        struct dp_row_slot *slot = &partition->slots[at];
        if (slot->row == DP_ROW_UNKNOWN || slot->mixed == mixed)
            return slot;
    }
}

uint32_t dp_row_cache_find(const struct dp_row_cache *cache, uint64_t mixed)
{
    const struct dp_row_partition *partition = &cache->partition[partition_of(mixed)];
    return partition->capacity == 0 ? DP_ROW_UNKNOWN : slot_of(partition, mixed)->row;
}

void dp_row_cache_find_many(const struct dp_row_cache *cache, const void *keys, uint32_t n, uint32_t *rows)
{
    const char *at = keys;
    for (uint32_t i = 0; i < n; i++) {
        if (i + PREFETCH_AHEAD < n) {
            uint64_t ahead = dp_load_u64le(at + (size_t)(i + PREFETCH_AHEAD) * 8);
            const struct dp_row_partition *partition = &cache->partition[partition_of(ahead)];
            if (partition->capacity != 0)
                __builtin_prefetch(&partition->slots[home_of(ahead, partition->capacity)]);
        }
        rows[i] = dp_row_cache_find(cache, dp_load_u64le(at + (size_t)i * 8));
    }
}

static enum dp_status grow_partition(struct dp_row_cache *cache, struct dp_row_partition *partition)
{
    struct dp_row_partition larger = {
        .used = partition->used, .capacity = partition->capacity ? partition->capacity * 2 : CAPACITY_MIN};
    larger.slots = malloc(larger.capacity * sizeof larger.slots[0]);
    if (!larger.slots)
        return DP_NOMEM;
    for (uint32_t i = 0; i < larger.capacity; i++)
        larger.slots[i] = (struct dp_row_slot){.row = DP_ROW_UNKNOWN};
    for (uint32_t i = 0; i < partition->capacity; i++)
        if (partition->slots[i].row != DP_ROW_UNKNOWN)
            *slot_of(&larger, partition->slots[i].mixed) = partition->slots[i];
    cache->bytes += (larger.capacity - partition->capacity) * sizeof larger.slots[0];
    free(partition->slots);
    *partition = larger;
    return DP_OK;
}

/* The key's slot, or a free one for it. */
static struct dp_row_slot *slot_for_entry(struct dp_row_cache *cache, uint64_t mixed)
{
    struct dp_row_partition *partition = &cache->partition[partition_of(mixed)];
    struct dp_row_slot *there = partition->capacity ? slot_of(partition, mixed) : NULL;
    if (there && there->row != DP_ROW_UNKNOWN)
        return there;
    /* At most 3/4 full: a probe stays within a cache line or two. */
    if ((partition->used + 1) * 4 > partition->capacity * 3 && grow_partition(cache, partition) != DP_OK)
        return NULL;
    return slot_of(partition, mixed);
}

static void take_slot(struct dp_row_cache *cache, struct dp_row_slot *slot, uint64_t mixed, uint32_t row)
{
    if (slot->row == DP_ROW_UNKNOWN) {
        cache->partition[partition_of(mixed)].used++;
        cache->entries++;
    }
    *slot = (struct dp_row_slot){.mixed = mixed, .row = row};
}

static enum dp_status add_chunk(struct dp_row_cache *cache)
{
    char **list = realloc(cache->chunk, (cache->chunks + 1) * sizeof list[0]);
    if (!list)
        return DP_NOMEM;
    cache->chunk = list;
    size_t bits_before = ((size_t)cache->chunks << cache->chunk_shift) / 64 + 1;
    size_t bits_after = ((size_t)(cache->chunks + 1) << cache->chunk_shift) / 64 + 1;
    uint64_t *dirty = realloc(cache->dirty, bits_after * sizeof dirty[0]);
    if (!dirty)
        return DP_NOMEM;
    cache->dirty = dirty;
    if (cache->chunks == 0)
        dirty[0] = 0;
    memset(dirty + bits_before, 0, (bits_after - bits_before) * sizeof dirty[0]);
    /* A small table stays within its first chunk: plain memory, of which only what is touched is taken. */
    char *chunk = cache->chunks == 0 ? calloc(1, chunk_bytes(cache)) : dp_pages_alloc(chunk_bytes(cache));
    if (!chunk)
        return DP_NOMEM;
    cache->chunk[cache->chunks++] = chunk;
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
    /* A slot at 3/8 load, the least after a doubling, is 43 bytes. */
    return n * (cache->row_bytes + 43) + n / 8;
}

void dp_row_cache_each_dirty(const struct dp_row_cache *cache,
                             void (*visit)(void *context, uint64_t mixed, uint32_t row), void *context)
{
    for (uint32_t p = 0; p < PARTITION_COUNT; p++)
        for (uint32_t i = 0; i < cache->partition[p].capacity; i++) {
            const struct dp_row_slot *slot = &cache->partition[p].slots[i];
            if (dp_row_is_number(slot->row) && (cache->dirty[slot->row / 64] >> slot->row % 64 & 1))
                visit(context, slot->mixed, slot->row);
        }
}

uint64_t dp_row_cache_dirty_count(const struct dp_row_cache *cache)
{
    uint64_t n = 0;
    if (cache->chunks > 0)
        for (uint64_t i = 0; i <= cache->rows / 64; i++)
            n += (uint64_t)__builtin_popcountll(cache->dirty[i]);
    return n;
}
