#include "worker/read/batch.h"

#include "common/base/memory.h"
#include "worker/read/batch_scratch.h"

#include <stdbool.h>

static void *reserve(size_t count, size_t each, size_t *wanted)
{
    *wanted = each > 0 && count > (SIZE_MAX - 64) / each ? SIZE_MAX : count * each;
    return *wanted == SIZE_MAX ? NULL : dp_alloc_aligned(*wanted);
}

static bool reserve_sparse(struct dp_batch *batch, size_t *wanted)
{
    size_t entries = batch->room.entries;
    struct dp_distinct_scratch *sort = &batch->scratch->sort;
    return (batch->slots = reserve(entries, sizeof *batch->slots, wanted)) &&
           (batch->values = reserve(entries, sizeof *batch->values, wanted)) &&
           (batch->keys = reserve(entries, sizeof *batch->keys, wanted)) &&
           (sort->entries = reserve(entries, sizeof *sort->entries, wanted)) &&
           (sort->sorted = reserve(entries, sizeof *sort->sorted, wanted)) &&
           (sort->table = reserve(dp_distinct_table_len(batch->room.entries), sizeof *sort->table, wanted));
}

enum dp_status dp_batch_reserve(const struct dp_batch_shape *shape, struct dp_batch **out,
                                struct dp_error *err)
{
    size_t wanted = sizeof(struct dp_batch), examples = shape->examples;
    bool ok = false;
    struct dp_batch *batch = calloc(1, sizeof *batch);
    if (batch) {
        batch->room = *shape;
        batch->width = shape->form == DP_FORM_DENSE ? shape->width : 0;
        ok = (batch->scratch = reserve(1, sizeof *batch->scratch, &wanted));
    }
    /* The largest arrays first: what cannot be had is refused before memory is touched for the rest. */
    if (ok && shape->form == DP_FORM_DENSE)
        ok = (batch->dense = reserve(examples * shape->width, sizeof *batch->dense, &wanted));
    if (ok && shape->form == DP_FORM_SPARSE)
        ok = reserve_sparse(batch, &wanted);
    if (ok)
        ok = (batch->labels = reserve(examples, sizeof *batch->labels, &wanted)) &&
             (batch->offsets = reserve(examples + 1, sizeof *batch->offsets, &wanted));
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
        free(b->scratch->sort.entries);
        free(b->scratch->sort.sorted);
        free(b->scratch->sort.table);
    }
    free(b->scratch);
    free(b->labels);
    free(b->offsets);
    free(b->slots);
    free(b->values);
    free(b->keys);
    free(b->dense);
    free(b);
    *batch = NULL;
}
