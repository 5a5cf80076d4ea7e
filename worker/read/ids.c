#include "worker/read/ids.h"

#include "common/base/hash.h"
#include "common/model/mix.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool dp_ids_number(const char *at, size_t len, uint64_t *out)
{
    return len > 0 && (at[0] != '0' || len == 1) && dp_number_index(at, at + len, out) == at + len;
}

/* Finds the slot of this key, or the free slot where it belongs. */
static struct dp_ids_slot *slot_of(const struct dp_ids *ids, uint64_t key)
{
    uint64_t at = dp_mix(key);
    while (ids->slots[at & ids->mask].at != 0 && ids->slots[at & ids->mask].key != key)
        at++;
    return &ids->slots[at & ids->mask];
}

/* Half of the slots stay free. */
static enum dp_status grow_slots(struct dp_ids *ids, struct dp_error *err)
{
    struct dp_ids grown = *ids;
    if (ids->slots && 2 * (ids->count + 1) <= ids->mask + 1)
        return DP_OK;
    grown.mask = ids->slots ? 2 * ids->mask + 1 : 63;
    grown.slots = calloc(grown.mask + 1, sizeof *grown.slots);
    if (!grown.slots)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " names", ids->count + 1);
    for (uint64_t i = 0; ids->slots && i <= ids->mask; i++)
        if (ids->slots[i].at != 0)
            *slot_of(&grown, ids->slots[i].key) = ids->slots[i];
    free(ids->slots);
    *ids = grown;
    return DP_OK;
}

static enum dp_status grow_text(struct dp_ids *ids, size_t more, struct dp_error *err)
{
    if (ids->max - ids->len >= more)
        return DP_OK;
    uint64_t max = 2 * (ids->len + more) + 4096;
    char *text = realloc(ids->text, max);
    if (!text)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " bytes of names", max);
    ids->text = text;
    ids->max = max;
    return DP_OK;
}

enum dp_status dp_ids_take(struct dp_ids *ids, const char *at, size_t len, uint64_t *key,
                           struct dp_error *err)
{
    if (dp_ids_number(at, len, key))
        return DP_OK;
    *key = dp_mix(dp_hash_bytes(DP_HASH_BEGIN, at, len)) >> 1;
    enum dp_status st = grow_slots(ids, err);
    struct dp_ids_slot *slot = st == DP_OK ? slot_of(ids, *key) : NULL;
    if (slot && slot->at != 0) {
        const char *there = ids->text + slot->at - 1;
        if (strlen(there) == len && memcmp(there, at, len) == 0)
            return DP_OK;
        return dp_fail(err, DP_DATA,
                       "the names '%.40s' and '%.*s' have the same hash, as happens once in 10^18 pairs: "
                       "rename one of them",
                       there, (int)(len < 40 ? len : 40), at);
    }
    if (st == DP_OK)
        st = grow_text(ids, len + 1, err);
    if (st != DP_OK)
        return st;
    *slot = (struct dp_ids_slot){.key = *key, .at = ids->len + 1};
    memcpy(ids->text + ids->len, at, len);
    ids->text[ids->len + len] = '\0';
    ids->len += len + 1;
    ids->count++;
    return DP_OK;
}

const char *dp_ids_name(const struct dp_ids *ids, uint64_t key)
{
    const struct dp_ids_slot *slot = ids->slots ? slot_of(ids, key) : NULL;
    return slot && slot->at != 0 ? ids->text + slot->at - 1 : NULL;
}

void dp_ids_clear(struct dp_ids *ids)
{
    free(ids->slots);
    free(ids->text);
    *ids = (struct dp_ids){0};
}
