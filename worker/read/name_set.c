#include "worker/read/name_set.h"

#include "common/model/mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void dp_name_set_clear(struct dp_name_set *set)
{
    free(set->texts);
    free(set->entry);
    free(set->slots);
    *set = (struct dp_name_set){0};
}

/* Finds the slot of the name, or the free slot where it belongs; half of them are free. */
static uint32_t *slot_of(struct dp_name_set *set, uint32_t group, uint64_t hash)
{
    for (uint64_t at = dp_mix(hash + group);; at++) {
        set->probes++;
        uint32_t *slot = &set->slots[at & set->mask];
        const struct dp_name_entry *entry = *slot ? &set->entry[*slot - 1] : NULL;
        if (!entry || (entry->hash == hash && entry->group == group))
            return slot;
    }
}

const struct dp_name_entry *dp_name_set_find(struct dp_name_set *set, uint32_t group, uint64_t hash)
{
    uint32_t place = set->slots ? *slot_of(set, group, hash) : 0;
    return place ? &set->entry[place - 1] : NULL;
}

const char *dp_name_set_text(struct dp_name_set *set, uint32_t group, uint64_t hash)
{
    const struct dp_name_entry *entry = dp_name_set_find(set, group, hash);
    return entry ? set->texts + entry->at : NULL;
}

static enum dp_status no_memory(const struct dp_name_set *set, struct dp_error *err)
{
    return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " names", set->count + 1);
}

static enum dp_status grow_entries(struct dp_name_set *set, struct dp_error *err)
{
    uint64_t room = set->room ? set->room * 2 : 1024;
    struct dp_name_entry *entry = realloc(set->entry, room * sizeof *entry);
    if (!entry)
        return no_memory(set, err);
    set->entry = entry;
    uint32_t *slots = calloc(room * 2, sizeof *slots);
    if (!slots)
        return no_memory(set, err);
    free(set->slots);
    set->slots = slots;
    set->mask = room * 2 - 1;
    set->room = room;
    for (uint64_t i = 0; i < set->count; i++)
        *slot_of(set, entry[i].group, entry[i].hash) = (uint32_t)i + 1;
    return DP_OK;
}

static enum dp_status grow_texts(struct dp_name_set *set, uint64_t len, struct dp_error *err)
{
    uint64_t max = (set->texts_max + len) * 2 + 4096;
    char *texts = realloc(set->texts, max);
    if (!texts)
        return no_memory(set, err);
    set->texts = texts;
    set->texts_max = max;
    return DP_OK;
}

enum dp_status dp_name_set_add(struct dp_name_set *set, const struct dp_vocab_name *name, uint64_t hash,
                               uint64_t rank, struct dp_error *err)
{
    uint64_t len = name->len;
    enum dp_status st = DP_OK;
    if (dp_name_set_find(set, name->group, hash))
        return DP_OK;
    if (set->max > 0 && set->count == set->max) {
        set->cut = true;
        return DP_OK;
    }
    if (set->count == UINT32_MAX - 1 || len > UINT32_MAX)
        return no_memory(set, err);
    if (set->count == set->room)
        st = grow_entries(set, err);
    if (st == DP_OK && set->texts_max - set->texts_len < len + 1)
        st = grow_texts(set, len + 1, err);
    if (st != DP_OK)
        return st;
    struct dp_name_entry *entry = &set->entry[set->count];
    *entry = (struct dp_name_entry){.rank = rank,
                                    .key = name->key,
                                    .hash = hash,
                                    .at = set->texts_len,
                                    .group = name->group,
                                    .len = (uint32_t)len,
                                    .order = (uint32_t)set->count};
    memcpy(set->texts + set->texts_len, name->text, len);
    set->texts[set->texts_len + len] = '\0';
    set->texts_len += len + 1;
    *slot_of(set, name->group, hash) = (uint32_t)++set->count;
    return DP_OK;
}

static int by_rank(const void *left, const void *right)
{
    const struct dp_name_entry *a = left, *b = right;
    int c = (a->rank > b->rank) - (a->rank < b->rank);
    return c ? c : (a->order > b->order) - (a->order < b->order);
}

enum dp_status dp_name_set_visit(struct dp_name_set *set, struct dp_vocab_sink sink, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (set->count > 0)
        qsort(set->entry, (size_t)set->count, sizeof *set->entry, by_rank);
    free(set->slots); /* invalid after sorting */
    set->slots = NULL;
    for (uint64_t i = 0; st == DP_OK && i < set->count; i++) {
        const struct dp_name_entry *e = &set->entry[i];
        const struct dp_vocab_name name = {e->group, e->key, set->texts + e->at,
                                           e->len < DP_VOCAB_TEXT_MAX ? e->len : DP_VOCAB_TEXT_MAX};
        st = sink.visit(sink.context, &name, err);
    }
    return st;
}
