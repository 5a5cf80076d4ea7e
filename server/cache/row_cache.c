#include "server/cache/row_cache.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"
#include "server/cache/row_cache_inner.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES   ((size_t)4 << 20)
#define FIND_AHEAD    16u
#define PARTITION_MIN ((uint64_t)CAPACITY_MIN * sizeof(struct dp_row_slot))
#define BITMAPS       3u /* dirty, due, touched */

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
    cache->empty = PARTITION_COUNT;
    cache->target = DP_ROW_MAX;
    *out = cache;
    return DP_OK;
}

static size_t chunk_bytes(const struct dp_row_cache *cache)
{
    return ((size_t)1 << cache->chunk_shift) * cache->row_bytes;
}

static void free_slots(struct dp_row_cache *cache, struct dp_row_partition *partition)
{
    dp_index_pages_give(&cache->index_pages, partition->slots,
                        partition->capacity * sizeof partition->slots[0]);
}

void dp_row_cache_free(struct dp_row_cache **cache)
{
    if (!*cache)
        return;
    for (uint32_t i = 0; i < PARTITION_COUNT; i++)
        free_slots(*cache, &(*cache)->partition[i]);
    dp_index_pages_clear(&(*cache)->index_pages);
    if ((*cache)->chunks > 0)
        free((*cache)->chunk[0]);
    for (uint32_t i = 1; i < (*cache)->chunks; i += EXTENT_CHUNKS)
        dp_pages_free((*cache)->chunk[i], EXTENT_CHUNKS * chunk_bytes(*cache));
    free((*cache)->chunk);
    free((*cache)->dirty);
    free((*cache)->due);
    free((*cache)->touched);
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

/* slot: NULL, too, to which C allows nothing to be added. */
static void prefetch_slots(const struct dp_row_slot *slot)
{
    __builtin_prefetch(slot);
    __builtin_prefetch((const void *)((uintptr_t)slot + sizeof *slot));
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
        prefetch_slots(ring[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t mixed = dp_load_u64le(at + (size_t)i * 8);
        const struct dp_row_slot *slot = ring[i % FIND_AHEAD];
        if (i + FIND_AHEAD < n) {
            const struct dp_row_slot *next =
                first_slot(cache, dp_load_u64le(at + (size_t)(i + FIND_AHEAD) * 8));
            prefetch_slots(next);
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

/* What the partition is charged: a line, so that an entry that goes gives back what it took. */
static uint64_t charge_of(const struct dp_row_partition *partition)
{
    return partition->capacity ? DP_ROW_SLOT_COST * partition->used + PARTITION_MIN : 0;
}

/* The entries into `capacity` slots; of the droppable ones `drops` are left out. */
enum dp_status dp_row_cache_rebuild(struct dp_row_cache *cache, struct dp_row_partition *partition,
                                    uint32_t capacity, uint32_t drops)
{
    struct dp_row_partition next = {.capacity = capacity};
    next.slots = dp_index_pages_take(&cache->index_pages, capacity * sizeof next.slots[0]);
    if (!next.slots)
        return DP_NOMEM;
    for (uint32_t i = 0; i < capacity; i++)
        next.slots[i] = (struct dp_row_slot){.row = DP_ROW_UNKNOWN};
    for (uint32_t i = 0; i < partition->capacity; i++) {
        if (drops > 0 && dp_row_cache_is_droppable(&partition->slots[i])) {
            drops--;
        } else if (partition->slots[i].row != DP_ROW_UNKNOWN) {
            uint64_t mixed = partition->slots[i].mixed;
            struct dp_row_slot *to = slot_of(&next, mixed, mixed * cache->salt);
            *to = partition->slots[i];
            to->touched = 0;
            next.used++;
        }
    }
    uint64_t bytes = (uint64_t)capacity * sizeof next.slots[0];
    uint64_t before = (uint64_t)partition->capacity * sizeof next.slots[0];
    cache->empty -= partition->capacity == 0;
    cache->entries -= partition->used - next.used;
    cache->slots = cache->slots - partition->capacity + capacity;
    cache->bytes = cache->bytes - before + bytes;
    cache->index_bytes = cache->index_bytes - before + bytes;
    cache->index_charge = cache->index_charge - charge_of(partition) + charge_of(&next);
    free_slots(cache, partition);
    *partition = next;
    return DP_OK;
}

void dp_row_cache_drop_slots(struct dp_row_cache *cache, struct dp_row_partition *partition)
{
    cache->empty++;
    cache->slots -= partition->capacity;
    cache->bytes -= (uint64_t)partition->capacity * sizeof partition->slots[0];
    cache->index_bytes -= (uint64_t)partition->capacity * sizeof partition->slots[0];
    cache->index_charge -= charge_of(partition);
    free_slots(cache, partition);
    *partition = (struct dp_row_partition){0};
}

/* ABSENT keys that were wanted since the last time stay, so that a request does not lose some of its keys to the others. Half
 * of the partition goes at most: where more went, so many new ones would come before the next time that few of them were
 * droppable then, and it would grow, slowly, without end. */
static enum dp_status grow_partition(struct dp_row_cache *cache, struct dp_row_partition *partition)
{
    uint32_t dropped = 0, capacity = partition->capacity, used = partition->used;
    for (uint32_t i = 0; i < capacity; i++)
        dropped += dp_row_cache_is_droppable(&partition->slots[i]);
    if (used == 0 || dropped < used / 4)
        return dp_row_cache_rebuild(cache, partition, capacity ? capacity * 2 : CAPACITY_MIN, 0);
    return dp_row_cache_rebuild(cache, partition, capacity, dropped < used / 2 ? dropped : used / 2);
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
        struct dp_row_partition *partition = &cache->partition[partition_of(cache, mixed)];
        cache->index_charge -= charge_of(partition);
        partition->used++;
        cache->index_charge += charge_of(partition);
        cache->entries++;
        DP_ASSERT(partition->used < partition->capacity); /* a search ends at a free slot */
    }
    DP_ASSERT(slot->row == DP_ROW_UNKNOWN || slot->mixed == mixed);
    *slot = (struct dp_row_slot){.mixed = mixed, .row = row, .touched = row == DP_ROW_ABSENT};
}

/* The entries after it that would not be found any more move up (Knuth 6.4, algorithm R): no search meets a gap. */
void dp_row_cache_remove_slot(struct dp_row_cache *cache, struct dp_row_partition *partition, uint32_t at)
{
    uint32_t mask = partition->capacity - 1;
    DP_ASSERT(partition->used > 0 && cache->entries > 0 && partition->slots[at].row != DP_ROW_UNKNOWN);
    for (uint32_t next = (at + 1) & mask; partition->slots[next].row != DP_ROW_UNKNOWN;
         next = (next + 1) & mask) {
        uint32_t home = home_of(partition->slots[next].mixed * cache->salt, partition->capacity);
        if (((next - home) & mask) >= ((next - at) & mask)) {
            partition->slots[at] = partition->slots[next];
            at = next;
        }
    }
    partition->slots[at] = (struct dp_row_slot){.row = DP_ROW_UNKNOWN};
    cache->index_charge -= charge_of(partition);
    partition->used--;
    cache->index_charge += charge_of(partition);
    cache->entries--;
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

/* A small table stays within its first chunk: plain memory, taken page by page as it is touched. The
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
    size_t before = cache->chunks ? ((size_t)cache->chunks << cache->chunk_shift) / 64 + 1 : 0;
    size_t after = ((size_t)(cache->chunks + 1) << cache->chunk_shift) / 64 + 1;
    if (grow_bits(&cache->dirty, before, after) != DP_OK || grow_bits(&cache->due, before, after) != DP_OK ||
        grow_bits(&cache->touched, before, after) != DP_OK)
        return DP_NOMEM;
    char *chunk = new_chunk(cache);
    if (!chunk)
        return DP_NOMEM;
    cache->chunk[cache->chunks] = chunk;
    cache->bytes += sizeof list[0] + (after - before) * BITMAPS * sizeof cache->dirty[0];
    cache->chunks++;
    return DP_OK;
}

/* ---- rows in use and free ones */

/* Memory of the first `rows` rows: the first chunk as they are touched, extents in complete pages. */
uint64_t dp_row_cache_rows_bytes(const struct dp_row_cache *cache, uint64_t rows)
{
    uint64_t first = (uint64_t)1 << cache->chunk_shift;
    if (rows <= first)
        return rows * cache->row_bytes;
    uint64_t in_extent = first * EXTENT_CHUNKS, behind = rows - first;
    uint64_t whole = (in_extent * cache->row_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    uint64_t rest = (behind % in_extent * cache->row_bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    return first * cache->row_bytes + behind / in_extent * whole + rest;
}

static void link_row(const struct dp_row_cache *cache, uint32_t row, uint32_t next)
{
    memcpy(dp_row_cache_row(cache, row), &next, sizeof next);
}

void dp_row_cache_put_free(const struct dp_row_cache *cache, struct dp_row_list *list, uint32_t row)
{
    link_row(cache, row, list->first);
    list->last = list->count ? list->last : row;
    list->first = row;
    list->count++;
}

uint32_t dp_row_cache_take_free(const struct dp_row_cache *cache, struct dp_row_list *list)
{
    uint32_t row = list->first;
    DP_ASSERT(list->count > 0);
    memcpy(&list->first, dp_row_cache_row(cache, row), sizeof list->first);
    list->count--;
    return row;
}

/* Appends to `list`; leaves `from` empty. */
void dp_row_cache_join_free(const struct dp_row_cache *cache, struct dp_row_list *list,
                            struct dp_row_list *from)
{
    if (from->count > 0 && list->count > 0) {
        link_row(cache, list->last, from->first);
        list->last = from->last;
        list->count += from->count;
    } else if (from->count > 0) {
        *list = *from;
    }
    *from = (struct dp_row_list){0};
}

void dp_row_cache_sort_one(struct dp_row_cache *cache)
{
    uint32_t row = dp_row_cache_take_free(cache, &cache->unsorted);
    dp_row_cache_put_free(cache, row < cache->target ? &cache->free : &cache->above, row);
}

/* Low numbers first: rows above the target stay free. */
static enum dp_status new_row(struct dp_row_cache *cache, uint32_t *row)
{
    while (cache->free.count == 0 && cache->unsorted.count > 0)
        dp_row_cache_sort_one(cache);
    if (cache->free.count > 0 || cache->above.count > 0) {
        *row = dp_row_cache_take_free(cache, cache->free.count > 0 ? &cache->free : &cache->above);
        return DP_OK;
    }
    if (cache->rows == DP_ROW_MAX ||
        (cache->rows >> cache->chunk_shift == cache->chunks && add_chunk(cache) != DP_OK))
        return DP_NOMEM;
    cache->bytes += dp_row_cache_rows_bytes(cache, (uint64_t)cache->rows + 1) -
                    dp_row_cache_rows_bytes(cache, cache->rows);
    *row = cache->rows++;
    return DP_OK;
}

enum dp_status dp_row_cache_insert(struct dp_row_cache *cache, uint64_t mixed, uint32_t *row)
{
    struct dp_row_slot *slot = slot_for_entry(cache, mixed);
    if (!slot || new_row(cache, row) != DP_OK)
        return DP_NOMEM;
    DP_ASSERT(!dp_row_is_number(slot->row));
    DP_ASSERT(*row < cache->rows);
    take_slot(cache, slot, mixed, *row);
    dp_row_cache_touch(cache, *row);
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

uint64_t dp_row_cache_cost_of(const struct dp_row_cache *cache, uint64_t n, uint64_t entries)
{
    uint64_t free = dp_row_cache_free_rows(cache), more = n > free ? n - free : 0, rows = cache->rows + more;
    uint64_t chunks = more ? ((rows - 1) >> cache->chunk_shift) + 1 : 0;
    uint64_t new_chunks = chunks > cache->chunks ? chunks - cache->chunks : 0;
    uint64_t each = sizeof cache->chunk[0] +
                    BITMAPS * (((uint64_t)1 << cache->chunk_shift) / 8 + 2 * sizeof cache->dirty[0]);
    return DP_ROW_SLOT_COST * entries + PARTITION_MIN * (entries < cache->empty ? entries : cache->empty) +
           dp_row_cache_rows_bytes(cache, rows) - dp_row_cache_rows_bytes(cache, cache->rows) +
           new_chunks * each;
}

static size_t words_of(const struct dp_row_cache *cache)
{
    return cache->chunks ? ((size_t)cache->chunks << cache->chunk_shift) / 64 + 1 : 0;
}

void dp_row_cache_begin_cycle(struct dp_row_cache *cache)
{
    uint64_t *due = cache->dirty;
    DP_ASSERT(cache->due_rows == 0 && cache->dirty_rows <= cache->rows);
    cache->dirty = cache->due;
    cache->due = due;
    cache->due_rows = cache->dirty_rows;
    cache->dirty_rows = 0;
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
            DP_ASSERT(cache->due_rows > 0 && slot->row < cache->rows);
            cache->due[slot->row / 64] &= ~bit;
            cache->due_rows--;
            cache->dirty_rows -= (cache->dirty[slot->row / 64] & bit) != 0;
            cache->dirty[slot->row / 64] &= ~bit;
            visit(context, slot->mixed, slot->row);
            taken++;
        }
    }
    return taken;
}
