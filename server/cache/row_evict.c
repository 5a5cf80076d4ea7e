/* Eviction from a row cache, and its shrinking (row_cache.h). */
#define _DEFAULT_SOURCE
#include "common/base/bytes.h"
#include "server/cache/row_cache_inner.h"

#include <string.h>
#include <sys/mman.h>

#define SMALL_PAGE  ((size_t)4096)
#define SHRINK_LAPS 6u /* one takes the touched bits, one evicts, one moves; some rows are dirty at first */

/* ---- the hand */

static bool has_bit(const uint64_t *bits, uint32_t row)
{
    return bits[row / 64] >> row % 64 & 1;
}

static void move_bit(uint64_t *bits, uint32_t from, uint32_t to)
{
    bits[to / 64] |= (uint64_t)has_bit(bits, from) << to % 64; /* a free row has none */
    bits[from / 64] &= ~((uint64_t)1 << from % 64);
}

static void free_row(struct dp_row_cache *cache, uint32_t row)
{
    DP_ASSERT(row < cache->rows && !has_bit(cache->dirty, row) && !has_bit(cache->due, row));
    cache->touched[row / 64] &= ~((uint64_t)1 << row % 64);
    dp_row_cache_put_free(cache, row < cache->target ? &cache->free : &cache->above, row);
}

static void move_row(struct dp_row_cache *cache, struct dp_row_slot *slot)
{
    uint32_t from = slot->row, to = dp_row_cache_take_free(cache, &cache->free);
    DP_ASSERT(to < cache->target && from >= cache->target);
    memcpy(dp_row_cache_row(cache, to), dp_row_cache_row(cache, from), cache->row_bytes);
    move_bit(cache->dirty, from, to);
    move_bit(cache->due, from, to);
    move_bit(cache->touched, from, to);
    slot->row = to;
    free_row(cache, from);
}

/* On to the next partition; one that has become too large is made smaller. (Above 9/32, at half the capacity 9/16, there is
 * room for it to come and go.) */
static void pass_partition(struct dp_row_cache *cache)
{
    struct dp_row_partition *partition = &cache->partition[cache->hand_partition];
    bool is_empty = partition->used == 0 && partition->capacity > 0;
    bool is_sparse = (uint64_t)partition->used * 32 < (uint64_t)partition->capacity * 9;
    if (is_empty)
        dp_row_cache_drop_slots(cache, partition);
    else if (is_sparse && partition->capacity > CAPACITY_MIN)
        (void)dp_row_cache_rebuild(cache, partition, partition->capacity / 2,
                                   0); /* no memory: another time */
    cache->hand_place = 0;
    cache->hand_partition = (cache->hand_partition + 1) % PARTITION_COUNT;
    cache->laps += cache->hand_partition == 0;
}

/* The second chance. */
static bool is_victim(struct dp_row_cache *cache, uint32_t row)
{
    bool touched = has_bit(cache->touched, row);
    cache->touched[row / 64] &= ~((uint64_t)1 << row % 64);
    return !touched && !has_bit(cache->dirty, row) && !has_bit(cache->due, row) &&
           cache->writing[cache->hand_partition] == 0;
}

static bool is_kept(const struct dp_row_leaving *leaving, uint64_t mixed)
{
    uint32_t low = 0, high = leaving->kept_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        uint64_t key = dp_load_u64le((const char *)leaving->kept + (size_t)middle * 8);
        if (key == mixed)
            return true;
        low = key < mixed ? middle + 1 : low;
        high = key < mixed ? high : middle;
    }
    return false;
}

/* Rows below `from` are passed by. */
static uint32_t go_round(struct dp_row_cache *cache, uint32_t from, uint32_t want, uint32_t *steps,
                         const struct dp_row_leaving *leaving)
{
    uint32_t count = 0;
    for (; *steps > 0 && count < want; --*steps) {
        struct dp_row_partition *partition = &cache->partition[cache->hand_partition];
        if (cache->hand_place >= partition->capacity) {
            pass_partition(cache);
            continue;
        }
        struct dp_row_slot *slot = &partition->slots[cache->hand_place];
        bool goes = dp_row_cache_is_droppable(slot) && !is_kept(leaving, slot->mixed);
        slot->touched = 0;
        if (goes) {
            dp_row_cache_remove_slot(cache, partition,
                                     cache->hand_place); /* and another entry may be there now */
            continue;
        }
        if (dp_row_is_number(slot->row) && slot->row >= cache->target && cache->free.count > 0)
            move_row(cache, slot);
        else if (dp_row_is_number(slot->row) && slot->row >= from && is_victim(cache, slot->row) &&
                 !is_kept(leaving, slot->mixed)) {
            leaving->evicted(leaving->context, dp_row_cache_row(cache, slot->row));
            free_row(cache, slot->row);
            dp_row_cache_remove_slot(cache, partition, cache->hand_place);
            count++;
            continue;
        }
        cache->hand_place++;
    }
    /* What it has just emptied goes at once: the hand might not come past again. */
    struct dp_row_partition *at = &cache->partition[cache->hand_partition];
    if (at->used == 0 && at->capacity > 0) {
        dp_row_cache_drop_slots(cache, at);
        cache->hand_place = 0;
    }
    return count;
}

uint32_t dp_row_cache_evict(struct dp_row_cache *cache, uint32_t want, uint32_t *steps,
                            const struct dp_row_leaving *leaving)
{
    return go_round(cache, 0, want, steps, leaving);
}

/* ---- shrinking */

void dp_row_cache_shrink(struct dp_row_cache *cache, uint32_t target)
{
    DP_ASSERT(!dp_row_cache_is_shrinking(cache));
    cache->target = target;
    cache->shrink_lap = cache->laps;
    dp_row_cache_join_free(cache, &cache->unsorted, &cache->free);
    dp_row_cache_join_free(cache, &cache->unsorted, &cache->above);
}

/* Pages of the rows from `target` on. */
static void give_pages_back(struct dp_row_cache *cache, uint32_t target)
{
    uint32_t first = 1u << cache->chunk_shift, in_extent = first * EXTENT_CHUNKS;
    if (target < first) { /* of the heap's: only what is wholly within */
        uint32_t end = cache->rows < first ? cache->rows : first;
        uintptr_t from = (uintptr_t)cache->chunk[0] + (uint64_t)target * cache->row_bytes;
        uintptr_t to = (uintptr_t)cache->chunk[0] + (uint64_t)end * cache->row_bytes;
        from = (from + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
        to = to / SMALL_PAGE * SMALL_PAGE;
        if (from < to)
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    for (uint64_t start = first; start < cache->rows; start += in_extent) {
        uint64_t kept = target > start ? target - start : 0;
        size_t whole = (size_t)in_extent * cache->row_bytes;
        size_t from = kept < in_extent ? (size_t)kept * cache->row_bytes : whole;
        from = (from + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        whole = (whole + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        if (from < whole)
            (void)madvise(cache->chunk[start >> cache->chunk_shift] + from, whole - from, MADV_DONTNEED);
    }
}

static bool is_shrunk(struct dp_row_cache *cache)
{
    if (cache->unsorted.count > 0 || (uint64_t)cache->target + cache->above.count < cache->rows)
        return false;
    DP_ASSERT(cache->target + cache->above.count == cache->rows);
    give_pages_back(cache, cache->target);
    DP_ASSERT(cache->free.count <= cache->target);
    cache->bytes -=
        dp_row_cache_rows_bytes(cache, cache->rows) - dp_row_cache_rows_bytes(cache, cache->target);
    cache->rows = cache->target;
    cache->above = (struct dp_row_list){0};
    cache->target = DP_ROW_MAX;
    return true;
}

bool dp_row_cache_shrink_step(struct dp_row_cache *cache, uint32_t *steps,
                              const struct dp_row_leaving *leaving)
{
    DP_ASSERT(dp_row_cache_is_shrinking(cache));
    if (cache->target >= cache->rows) { /* others' doing: nothing is above it */
        cache->target = DP_ROW_MAX;
        return true;
    }
    for (; *steps > 0 && cache->unsorted.count > 0; --*steps)
        dp_row_cache_sort_one(cache);
    while (*steps > 0 && !is_shrunk(cache)) {
        uint32_t left = cache->rows - cache->target - cache->above.count, some = *steps < 64 ? *steps : 64;
        uint32_t before = some, places = cache->free.count;
        if (cache->laps - cache->shrink_lap > SHRINK_LAPS) {
            cache->target = DP_ROW_MAX;
            dp_row_cache_join_free(cache, &cache->free, &cache->above);
            return false;
        }
        /* Only as many leave as have no place below. */
        (void)go_round(cache, left > places ? 0 : cache->target, left > places ? left - places : left, &some,
                       leaving);
        *steps -= before - some;
    }
    return !dp_row_cache_is_shrinking(cache);
}
