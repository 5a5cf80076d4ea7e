/* Batch fill: how a data set's format puts entries into a batch. Private to this room.
 *     for each group: fill_group -> for each of its lists: (fill_list -> for each example: entries* ->
 *     fill_example)
 *                     -> fill_group_end: the group's keys are sorted, and each entry's slot is known
 * Memory    Nothing is allocated. More entries than the batch's capacity are a caller's error (asserted). */
#ifndef DP_READ_BATCH_FILL_H
#define DP_READ_BATCH_FILL_H

#include "common/base/memory.h"
#include "worker/read/batch.h"
#include "worker/read/distinct.h"

#include <string.h>

struct dp_batch_scratch {
    struct dp_distinct_scratch sort;
    uint64_t *order; /* [room.examples]: the examples of the batch */
    /* The position while filling. */
    uint32_t group, list, base, have, examples;
};

void dp_batch_fill_group(struct dp_batch *batch, uint32_t group);
void dp_batch_fill_list(struct dp_batch *batch, uint32_t list);
void dp_batch_fill_group_end(struct dp_batch *batch);

/* Adds entries to the current example. keys[count] are mixed; values: NULL: each is 1. */
static inline void dp_batch_fill_entries(struct dp_batch *batch, const uint64_t *keys, const float *values,
                                         uint32_t count)
{
    struct dp_batch_scratch *scratch = batch->scratch;
    struct dp_batch_list *list = &batch->list[scratch->list];
    uint32_t have = scratch->have, at = have - scratch->base;
    DP_ASSERT(count <= batch->room.list[scratch->list].entries - at);
    for (uint32_t i = 0; i < count; i++)
        scratch->sort.entries[have + i] = (struct dp_distinct_entry){.key = keys[i], .at = have + i};
    if (values && count > 0)
        memcpy(list->values + at, values, count * sizeof *values);
    for (uint32_t i = 0; !values && i < count; i++)
        list->values[at + i] = 1.0f;
    scratch->have = have + count;
}

/* Ends the current example. */
static inline void dp_batch_fill_example(struct dp_batch *batch)
{
    struct dp_batch_scratch *scratch = batch->scratch;
    DP_ASSERT(scratch->examples < batch->room.examples);
    batch->list[scratch->list].offsets[++scratch->examples] = scratch->have - scratch->base;
}

#endif
