#include "worker/read/batch.h"

#include "common/base/memory.h"
#include "worker/read/batch_fill.h"

#include <stdbool.h>

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

struct dp_batch_shape dp_batch_shape_max(const struct dp_batch_shape *a, const struct dp_batch_shape *b)
{
    struct dp_batch_shape out = *a;
    DP_ASSERT(a->groups == b->groups && a->lists == b->lists && a->width == b->width);
    out.examples = larger(a->examples, b->examples);
    for (uint32_t l = 0; l < a->lists; l++) {
        DP_ASSERT(a->list[l].group == b->list[l].group && a->list[l].each == b->list[l].each);
        out.list[l].entries = larger(a->list[l].entries, b->list[l].entries);
    }
    return out;
}

static void *reserve(size_t count, size_t each, size_t *wanted)
{
    *wanted = each > 0 && count > (SIZE_MAX - 64) / each ? SIZE_MAX : count * each;
    return *wanted == SIZE_MAX ? NULL : dp_alloc_aligned(*wanted);
}

/* One scratch, sized for the group with most entries: groups are filled one after the other. */
static bool reserve_groups(struct dp_batch *batch, size_t *wanted)
{
    uint32_t most = 0;
    struct dp_distinct_scratch *sort = &batch->scratch->sort;
    for (uint32_t g = 0; g < batch->room.groups; g++) {
        uint32_t entries = dp_batch_distinct_max(&batch->room, g);
        most = larger(most, entries);
        if (!(batch->group[g].keys = reserve(entries, sizeof(uint64_t), wanted)) ||
            !(batch->group[g].slots = reserve(entries, sizeof(uint32_t), wanted)))
            return false;
    }
    return batch->room.groups == 0 ||
           ((sort->entries = reserve(most, sizeof *sort->entries, wanted)) &&
            (sort->sorted = reserve(most, sizeof *sort->sorted, wanted)) &&
            (sort->table = reserve(dp_distinct_table_len(most), sizeof *sort->table, wanted)));
}

static bool reserve_lists(struct dp_batch *batch, size_t *wanted)
{
    for (uint32_t l = 0; l < batch->room.lists; l++)
        if (!(batch->list[l].values = reserve(batch->room.list[l].entries, sizeof(float), wanted)))
            return false;
    for (uint32_t l = 0; l < batch->room.lists; l++)
        if (!(batch->list[l].offsets = reserve((size_t)batch->room.examples + 1, sizeof(uint32_t), wanted)))
            return false;
    return true;
}

enum dp_status dp_batch_reserve(const struct dp_batch_shape *shape, struct dp_batch **out,
                                struct dp_error *err)
{
    size_t wanted = sizeof(struct dp_batch), examples = shape->examples;
    DP_ASSERT(shape->groups <= DP_BATCH_GROUPS_MAX && shape->lists <= DP_BATCH_LISTS_MAX);
    bool ok = false;
    struct dp_batch *batch = calloc(1, sizeof *batch);
    if (batch) {
        batch->room = *shape;
        batch->width = shape->width;
        ok = (batch->scratch = reserve(1, sizeof *batch->scratch, &wanted));
    }
    /* The largest arrays first, so that a refusal comes before memory is touched for the rest. */
    if (ok && shape->width > 0)
        ok = (batch->dense = reserve(examples * shape->width, sizeof *batch->dense, &wanted));
    if (ok)
        ok = (batch->scratch->order = reserve(examples, sizeof(uint64_t), &wanted));
    if (ok)
        ok = reserve_groups(batch, &wanted) && reserve_lists(batch, &wanted) &&
             (batch->labels = reserve(examples, sizeof *batch->labels, &wanted)) &&
             (batch->weights = reserve(examples, sizeof *batch->weights, &wanted));
    if (!ok) {
        dp_batch_free(&batch);
        *out = NULL;
        return dp_fail(err, DP_NOMEM,
                       "no memory for %zu bytes of a minibatch of %u examples: use smaller minibatches",
                       wanted, shape->examples);
    }
    *out = batch;
    return DP_OK;
}

void dp_batch_free(struct dp_batch **batch)
{
    struct dp_batch *b = *batch;
    if (!b)
        return;
    if (b->scratch) {
        free(b->scratch->order);
        free(b->scratch->sort.entries);
        free(b->scratch->sort.sorted);
        free(b->scratch->sort.table);
    }
    for (uint32_t g = 0; g < b->room.groups; g++) {
        free(b->group[g].keys);
        free(b->group[g].slots);
    }
    for (uint32_t l = 0; l < b->room.lists; l++) {
        free(b->list[l].offsets);
        free(b->list[l].values); /* slots are the group's */
    }
    free(b->scratch);
    free(b->labels);
    free(b->weights);
    free(b->dense);
    free(b);
    *batch = NULL;
}

void dp_batch_fill_group(struct dp_batch *batch, uint32_t group)
{
    DP_ASSERT(group < batch->room.groups);
    batch->scratch->group = group;
    batch->scratch->have = 0;
}

void dp_batch_fill_list(struct dp_batch *batch, uint32_t list)
{
    struct dp_batch_scratch *scratch = batch->scratch;
    DP_ASSERT(list < batch->room.lists && batch->room.list[list].group == scratch->group);
    scratch->list = list;
    scratch->base = scratch->have;
    scratch->examples = 0;
    batch->list[list].offsets[0] = 0;
    batch->list[list].slots = batch->group[scratch->group].slots + scratch->base;
}

void dp_batch_fill_group_end(struct dp_batch *batch)
{
    struct dp_batch_scratch *scratch = batch->scratch;
    struct dp_batch_group *group = &batch->group[scratch->group];
    group->distinct =
        scratch->have > 0 ? dp_distinct(&scratch->sort, scratch->have, group->keys, group->slots) : 0;
}
