/* Content: the decoded examples of a file, as flat arrays. Each format uses some of them (format.h). Private
 * to this room.
 * Thread    Constant after load.
 * Memory    Owns its arrays. */
#ifndef DP_READ_CONTENT_H
#define DP_READ_CONTENT_H

#include "common/base/hash.h"
#include "worker/read/dataset.h"

#define DP_CONTENT_FACTS 8
#define DP_CONTENT_MINUS (DP_CONTENT_FACTS - 1) /* a fact: class 0 has the label -1 */

struct dp_content {
    uint64_t examples; /* in the file */
    float *labels;     /* [examples], as batches have them */
    float *weights;    /* [weights_len]: 0 or, of csv with options.weighs, examples; as the file has them */
    /* Of the file's content, whatever its compression, scale, normalization or form. */
    uint64_t digest;

    /* libsvm: example i has entries offsets[i] .. offsets[i + 1] - 1. */
    uint64_t *offsets; /* [examples + 1] */
    uint64_t *keys;    /* mixed for DP_FORM_SPARSE, the column for DP_FORM_DENSE */
    float *values;

    /* idx: bytes, scaled as a batch is filled. */
    uint8_t *pixels; /* [examples][options.width] */

    uint8_t *schema; /* csv: written by schema.h */

    uint32_t *codes;                  /* places in `keys`, and other numbers of a format */
    uint64_t facts[DP_CONTENT_FACTS]; /* single numbers of a format */
    /* The lengths of the arrays, for the cache. */
    uint64_t labels_len, weights_len, offsets_len, keys_len, values_len, pixels_len, codes_len, schema_len;
    void *mapped; /* NULL, or the mapped cache file that holds the arrays (cache.h) */
    size_t mapped_bytes;
    uint32_t label_base; /* the number of class 0, when labels are numbers */
    uint64_t lists;      /* ranked lists: list l has examples offsets[l] .. offsets[l + 1] - 1; 0: none */
};

void dp_content_clear(struct dp_content *content);
/* The most entries that `take` examples have together. */
uint64_t dp_content_worst(const struct dp_content *content, uint64_t take, uint32_t list,
                          uint64_t (*entries)(const struct dp_content *content, uint64_t example,
                                              uint32_t list));

uint64_t dp_content_digest(uint64_t digest, uint64_t word);
uint64_t dp_content_digest_bytes(uint64_t digest, const void *bytes, uint64_t len);
/* realloc of an array (a pointer's lvalue) to `count` numbers; DP_NOMEM leaves it as it was. */
#define DP_CONTENT_GROW(array, count, err) dp_content_grow(&(array), (count), sizeof *(array), (err))
enum dp_status dp_content_grow(void *array, uint64_t count, size_t each, struct dp_error *err);

#endif
