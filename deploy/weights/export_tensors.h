/* Export tensors: the parameters of a run as one file of tensors (tensor_file.h), or as a directory of .npy
 * files, one a tensor.
 *     dense   TABLE: its weights, in the model's shape
 *     sparse  TABLE.keys; TABLE.weights (in a directory: TABLE): [keys, width], in the order of the keys.
 *             One file: the keys of all pushed rows, ascending. A directory: the order of weight_tables.h.
 *             Keys with a name come first, pushed or not
 *     slots   TABLE.step: the number of pushes that were applied to each row. For a dense table: to each
 *             block of `dim` elements; the last block may reach past the end.
 *             TABLE.SLOT: a slot of the optimizer, in the shape of the weights
 *             (common/model/optimizer_kinds.c has the slots' names).
 *             TABLE.padding: [1 + slots, floats], if the last block of a dense table reaches past the end:
 *             the values there, weights first. No model reads it; an import needs it for equal bits
 * Keys are I64 if all are below 2^63, else U64. `downpour import` reads both.
 * Failure   As weight_tables.h, tensor_file.h and slot_rows.h. */
#ifndef DP_WEIGHTS_EXPORT_TENSORS_H
#define DP_WEIGHTS_EXPORT_TENSORS_H

#include "deploy/weights/export_file.h"

/* only: NULL, or the one parameter that is written. *tensors: how many there are. */
enum dp_status dp_export_tensors(struct dp_weight_tables *run, const struct dp_parameter *only, bool slots,
                                 const char *path, size_t *tensors, struct dp_error *err);
/* All, into a directory that is there, with the names of rows (export_file.h), which come before what they
 * belong to. out: [parameters of the model]. */
enum dp_status dp_export_npy(struct dp_weight_tables *run, bool slots, const char *directory,
                             struct dp_exported *out, struct dp_error *err);

#endif
