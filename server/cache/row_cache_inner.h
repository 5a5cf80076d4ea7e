/* Shared by row_cache.c and row_evict.c: the index and the lists of free rows of row_cache.h. Nothing else
 * includes it. */
#ifndef DP_CACHE_ROW_CACHE_INNER_H
#define DP_CACHE_ROW_CACHE_INNER_H

#include "server/cache/row_cache.h"

#define EXTENT_CHUNKS   16u /* mapped as one: 2 MB pages for each would waste up to a quarter */
#define CAPACITY_MIN    8u
#define PARTITION_COUNT DP_ROW_PARTITIONS
#define HUGE_PAGE       ((size_t)2 << 20)

/* What may be forgotten: the store is asked again. READING may not: a read will come back for it. */
static inline bool dp_row_cache_is_droppable(const struct dp_row_slot *slot)
{
    return (slot->row == DP_ROW_ABSENT || slot->row == DP_ROW_FORGOTTEN) && !slot->touched;
}

/* The entries into `capacity` slots; of the droppable ones `drops` are left out. DP_NOMEM leaves it as it was. */
enum dp_status dp_row_cache_rebuild(struct dp_row_cache *cache, struct dp_row_partition *partition,
                                    uint32_t capacity, uint32_t drops);
void dp_row_cache_drop_slots(struct dp_row_cache *cache, struct dp_row_partition *partition);
/* Another entry may be at its place then. */
void dp_row_cache_remove_slot(struct dp_row_cache *cache, struct dp_row_partition *partition, uint32_t at);

void dp_row_cache_put_free(const struct dp_row_cache *cache, struct dp_row_list *list, uint32_t row);
uint32_t dp_row_cache_take_free(const struct dp_row_cache *cache, struct dp_row_list *list);
/* Appends to `list`; leaves `from` empty. */
void dp_row_cache_join_free(const struct dp_row_cache *cache, struct dp_row_list *list,
                            struct dp_row_list *from);
void dp_row_cache_sort_one(struct dp_row_cache *cache);
/* Memory of the first `rows` rows: the first chunk as they are touched, extents in complete pages. */
uint64_t dp_row_cache_rows_bytes(const struct dp_row_cache *cache, uint64_t rows);

#endif
