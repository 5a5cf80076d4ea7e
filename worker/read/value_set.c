#include "worker/read/value_set.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t *place_of(uint64_t *slot, uint32_t slots, uint64_t hash)
{
    uint32_t at = (uint32_t)hash & (slots - 1);
    while (slot[at] != 0 && slot[at] != hash)
        at = (at + 1) & (slots - 1);
    return &slot[at];
}

static enum dp_status grow(struct dp_value_set *set, struct dp_error *err)
{
    uint32_t slots = set->slots ? set->slots * 2 : 16;
    uint64_t *slot = calloc(slots, sizeof *slot);
    if (!slot)
        return dp_fail(err, DP_NOMEM, "no memory to count %" PRIu32 " values", slots);
    for (uint32_t i = 0; i < set->slots; i++)
        if (set->slot[i])
            *place_of(slot, slots, set->slot[i]) = set->slot[i];
    free(set->slot);
    set->slot = slot;
    set->slots = slots;
    return DP_OK;
}

enum dp_status dp_value_set_see(struct dp_value_set *set, uint64_t hash, struct dp_error *err)
{
    if (set->full)
        return DP_OK;
    enum dp_status st = set->count * 2 >= set->slots ? grow(set, err) : DP_OK;
    if (st != DP_OK)
        return st;
    hash += hash == 0;
    uint64_t *place = place_of(set->slot, set->slots, hash);
    set->full = *place == 0 && set->count == set->max;
    if (set->full)
        return DP_OK;
    set->count += *place == 0;
    set->cells++;
    *place = hash;
    return DP_OK;
}

void dp_value_set_clear(struct dp_value_set *set)
{
    free(set->slot);
    set->slot = NULL;
    set->slots = 0;
}
