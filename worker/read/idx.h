/* Idx: the images (idx3, bytes) and labels (idx1, bytes) of MNIST (LeCun, Cortes, Burges), read from unpacked
 * files.
 * Promise   Magic number, counts and sizes are checked to the byte. Memory grows with the bytes that come,
 *           not with what a header claims.
 * Thread    One at a time.
 * Memory    The caller frees the arrays with free().
 * Failure   DP_DATA ("name: byte N: expected form"; N counts decoded bytes from 0), DP_NOMEM, or unpack's. */
#ifndef DP_READ_IDX_H
#define DP_READ_IDX_H

#include "worker/read/unpack.h"

#include <stdint.h>

#define DP_IDX_LABELS_HEADER 8 /* bytes before the first label */

struct dp_idx_images {
    uint32_t count, rows, columns;
    uint8_t *pixels; /* [count][rows * columns] */
};

DP_MUST_USE
enum dp_status dp_idx_read_images(struct dp_unpack *unpack, struct dp_idx_images *out, struct dp_error *err);
/* DP_DATA unless there are exactly `count` labels. */
DP_MUST_USE
enum dp_status dp_idx_read_labels(struct dp_unpack *unpack, uint32_t count, uint8_t **out,
                                  struct dp_error *err);

#endif
