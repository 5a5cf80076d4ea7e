/* Batch: one minibatch as compute and client need it. What is in number n of epoch e is a function of (data,
 * seed, e, n) alone.
 * Thread    Belongs to one thread at a time.
 * Memory    The arrays belong to the batch and are sized for the worst batch when it is made: filling one
 *           allocates nothing.
 * Failure   DP_NOMEM, with the bytes that were wanted. */
#ifndef DP_READ_BATCH_H
#define DP_READ_BATCH_H

#include "common/base/status.h"

#include <stdint.h>

/* The examples of a data set come in one of two forms. */
enum dp_data_form {
    DP_FORM_SPARSE, /* per example a list of (key, value) */
    DP_FORM_DENSE,  /* per example `width` f32 */
};

/* What the worst batch needs. */
struct dp_batch_shape {
    enum dp_data_form form;
    uint32_t examples;
    uint32_t entries; /* DP_FORM_SPARSE */
    uint32_t width;   /* DP_FORM_DENSE */
};

struct dp_batch_scratch;

struct dp_batch {
    uint32_t epoch;
    uint64_t number;
    uint32_t examples;
    float *labels; /* [examples] as the file has them, after dp_dataset_options.labels */

    /* DP_FORM_SPARSE: example i has entries offsets[i] .. offsets[i+1]-1; entry j is row slots[j] of the
     * batch's distinct keys, times values[j]. */
    uint32_t *offsets; /* [examples + 1] */
    uint32_t *slots;   /* [offsets[examples]] */
    float *values;     /* [offsets[examples]] */
    uint64_t *keys;    /* [distinct] mixed keys (common/model/mix.h), strictly ascending */
    uint32_t distinct;

    /* DP_FORM_DENSE: row-major [examples][width]. */
    float *dense;
    uint32_t width;

    struct dp_batch_shape room;       /* what the arrays hold at most */
    struct dp_batch_scratch *scratch; /* for the sort of keys */
};

/* An empty batch with arrays for `shape`; dp_batch_new (dataset.h) makes one for a data set. */
DP_MUST_USE
enum dp_status dp_batch_reserve(const struct dp_batch_shape *shape, struct dp_batch **out,
                                struct dp_error *err);
/* Accepts NULL inside, leaves NULL. */
void dp_batch_free(struct dp_batch **batch);

#endif
