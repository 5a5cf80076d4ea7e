/* Example weights: by which number the loss of each example of a training file is multiplied.
 *     its cell of the weights' column (else 1)  x  the weight of its class (else 1)  /  their mean
 * Why       The mean over the complete training file, held-out examples included, is 1. So a rate that fits
 *           without weights fits with them, and each minibatch, of any worker, divides by its number of
 *           examples alone.
 * Thread    Any.
 * Failure   DP_ARGUMENT: a class that there is not, or a weight that is none; DP_DATA: all weights are 0. */
#ifndef DP_READ_EXAMPLE_WEIGHTS_H
#define DP_READ_EXAMPLE_WEIGHTS_H

#include "worker/read/content.h"

/* *out: [content->examples], which the caller frees; NULL: all are 1, as in files that are evaluated, and in
 * held-out parts. */
enum dp_status dp_example_weights_new(const struct dp_dataset_options *options,
                                      const struct dp_content *content, const struct dp_schema *schema,
                                      float **out, struct dp_error *err);
/* "weight: w (0.1 to 12); class weights: no 0.6, yes 3.1"; "": all are 1. */
void dp_example_weights_text(const struct dp_dataset_options *options, const struct dp_content *content,
                             const struct dp_schema *schema, char *out, size_t size);

#endif
