/* Content: the decoded examples of a file, as flat arrays; which of them there are is the format's (format.h). And what
 * formats share to make them. Private to this room.
 * Thread    Constant after load.
 * Memory    Owns its arrays. */
#ifndef DP_READ_CONTENT_H
#define DP_READ_CONTENT_H

#include "worker/read/dataset.h"

#define DP_CONTENT_FACTS  8
#define DP_CONTENT_GOLDEN 0x9e3779b97f4a7c15u

struct dp_content {
    uint64_t examples; /* in the file */
    float *labels;     /* [examples], as batches have them */
    uint64_t digest; /* of what the file says, not of how it is packed, nor of scale, normalization or form */

    /* libsvm: example i has entries offsets[i] .. offsets[i + 1] - 1. */
    uint64_t *offsets; /* [examples + 1] */
    uint64_t *keys;    /* mixed for DP_FORM_SPARSE, the column for DP_FORM_DENSE */
    float *values;

    /* idx: bytes, scaled as a batch is filled. */
    uint8_t *pixels; /* [examples][options.width] */

    uint8_t *schema; /* csv: as schema.h writes it */

    uint32_t *codes;                  /* places in `keys`, and what else a format numbers */
    uint64_t facts[DP_CONTENT_FACTS]; /* numbers of the format's own */
    /* How long each array is: what a cache keeps of it. */
    uint64_t labels_len, offsets_len, keys_len, values_len, pixels_len, codes_len, schema_len;
    void *mapped; /* NULL, or the cache file that the arrays lie in (cache.h) */
    size_t mapped_bytes;
    uint32_t label_base; /* of numbers: the one of class 0 */
    uint64_t lists; /* ranked together: list l has examples offsets[l] .. offsets[l + 1] - 1; 0: none is */
};

void dp_content_clear(struct dp_content *content);

uint64_t dp_content_digest(uint64_t digest, uint64_t word);
uint64_t dp_content_digest_bytes(uint64_t digest, const void *bytes, uint64_t len);
/* realloc to `count` numbers; DP_NOMEM leaves the array as it was. */
DP_MUST_USE
enum dp_status dp_content_grow_u64(uint64_t **array, uint64_t count, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_content_grow_u32(uint32_t **array, uint64_t count, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_content_grow_f32(float **array, uint64_t count, struct dp_error *err);

#endif
