/* Content: the decoded examples of a data set, and the reading of a file into them.
 * Promise   Keys are mixed and values scaled and normalized once, here. The digest depends on what the files
 *           say, not on how they are packed, nor on scale, normalization or form.
 * Thread    Constant after load.
 * Memory    Owns its arrays.
 * Failure   As dataset.h says; after a failed load the content is empty. */
#ifndef DP_READ_CONTENT_H
#define DP_READ_CONTENT_H

#include "worker/read/dataset.h"

struct dp_content {
    uint64_t examples;
    float *labels; /* [examples], as batches have them */
    uint64_t digest;

    /* Text: example i has entries offsets[i] .. offsets[i + 1] - 1. */
    uint64_t *offsets; /* [examples + 1] */
    uint64_t *keys;    /* mixed for DP_FORM_SPARSE, the column for DP_FORM_DENSE */
    float *values;

    /* Idx: bytes, scaled as a batch is filled. */
    uint8_t *pixels; /* [examples][options.width], else NULL */
};

DP_MUST_USE
enum dp_status dp_content_load(const struct dp_dataset_options *options, struct dp_content *out,
                               struct dp_error *err);
void dp_content_clear(struct dp_content *content);

#endif
