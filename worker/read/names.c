#include "worker/read/names.h"

#include "common/base/hash.h"
#include "common/model/mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_names_init(struct dp_names *out, uint32_t max, struct dp_error *err)
{
    uint64_t slots = 4;
    while (slots < 2 * (uint64_t)max) /* half of the slots stay free */
        slots *= 2;
    *out = (struct dp_names){.mask = slots - 1};
    out->slots = calloc(slots, sizeof *out->slots);
    return out->slots ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " names", max);
}

void dp_names_clear(struct dp_names *names)
{
    free(names->slots);
    *names = (struct dp_names){0};
}

/* Finds the slot of this name, or the free slot where it belongs. */
static struct dp_name *slot_of(struct dp_names *names, uint64_t hash, const char *text, size_t len)
{
    for (uint64_t at = dp_mix(hash);; at++) {
        struct dp_name *slot = &names->slots[at & names->mask];
        names->looked_at++;
        if (!slot->text || (slot->hash == hash && slot->len == len && memcmp(slot->text, text, len) == 0))
            return slot;
    }
}

uint32_t dp_names_add(struct dp_names *names, const char *text, size_t len, uint32_t place)
{
    uint64_t hash = dp_hash_bytes(DP_HASH_BEGIN, text, len);
    struct dp_name *slot = slot_of(names, hash, text, len);
    if (!slot->text)
        *slot = (struct dp_name){.hash = hash, .text = text, .len = (uint32_t)len, .place = place};
    return slot->place;
}

uint32_t dp_names_find(struct dp_names *names, const char *text, size_t len)
{
    if (!names->slots)
        return DP_NAMES_NONE;
    const struct dp_name *slot = slot_of(names, dp_hash_bytes(DP_HASH_BEGIN, text, len), text, len);
    return slot->text ? slot->place : DP_NAMES_NONE;
}
