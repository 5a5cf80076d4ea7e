/* Batch: one minibatch as compute and client need it. Its content is a function of (data, seed, epoch,
 * number) alone.
 * Thread    Belongs to one thread at a time.
 * Memory    The batch owns its arrays, which are sized for the worst batch when it is made: filling allocates
 *           nothing.
 * Failure   DP_NOMEM names the bytes that were requested. */
#ifndef DP_READ_BATCH_H
#define DP_READ_BATCH_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_BATCH_GROUPS_MAX 32u
#define DP_BATCH_LISTS_MAX  64u

/* The size of the worst batch. A *list* gives each example some (key, value) entries: its words, its user,
 * the item it is compared with. A *group* is the lists whose keys are of one kind, and so of the same
 * tables. */
struct dp_batch_shape {
    uint32_t examples;
    uint32_t width; /* dense columns; 0: none */
    uint32_t groups, lists;
    struct dp_list_shape {
        uint32_t group;
        uint32_t entries; /* at most, of all examples together */
        uint32_t each;    /* in every example; 0: it varies */
    } list[DP_BATCH_LISTS_MAX];
};

/* The largest number of distinct keys of a group: all entries of its lists. */
static inline uint32_t dp_batch_distinct_max(const struct dp_batch_shape *shape, uint32_t group)
{
    uint32_t entries = 0;
    for (uint32_t l = 0; l < shape->lists; l++)
        if (shape->list[l].group == group)
            entries += shape->list[l].entries;
    return entries;
}
/* The maximum of both, which must have the same lists (asserted). */
struct dp_batch_shape dp_batch_shape_max(const struct dp_batch_shape *a, const struct dp_batch_shape *b);

struct dp_batch_scratch;

struct dp_batch {
    uint32_t epoch;
    uint64_t number;
    uint32_t examples;
    float *labels; /* [examples], mapped by dp_dataset_options.labels */
    bool weighted;
    float *weights; /* weighted: [examples], by which each example's loss is multiplied */

    /* Example i has entries offsets[i] .. offsets[i+1]-1 of a list. Entry j is the row of distinct key
         * slots[j] of the list's group, times values[j]. */
    struct dp_batch_list {
        uint32_t *offsets; /* [examples + 1] */
        uint32_t *slots;   /* [offsets[examples]] */
        float *values;     /* [offsets[examples]] */
    } list[DP_BATCH_LISTS_MAX];
    struct dp_batch_group {
        uint64_t *keys; /* [distinct] mixed keys (common/model/mix.h), strictly ascending */
        uint32_t distinct;
        uint32_t *slots; /* of all its lists, one after the other */
    } group[DP_BATCH_GROUPS_MAX];

    float *dense; /* row-major [examples][width], or NULL */
    uint32_t width;

    struct dp_batch_shape room;       /* capacity of the arrays */
    struct dp_batch_scratch *scratch; /* for the sort of keys */
};

/* An empty batch with arrays for `shape`; dp_batch_new (dataset.h) makes one for a data set. */
enum dp_status dp_batch_reserve(const struct dp_batch_shape *shape, struct dp_batch **out,
                                struct dp_error *err);
/* Accepts NULL inside, leaves NULL. */
void dp_batch_free(struct dp_batch **batch);

#endif
