/* Export tensors: the parameters of a run as one file of tensors (tensor_file.h), or as a directory of .npy
 * files, one a tensor.
 *     dense   TABLE: its weights, in the model's shape sparse  TABLE.keys; TABLE.weights (a directory:
 *     TABLE): [keys, width], in their order. One file: the keys of all rows that were
 *             pushed, ascending. A directory: in the order of weight_tables.h, those that have a name first,
 *             pushed or not
 *     slots   TABLE.step: how many pushes were applied to each row (dense: to each block of `dim` elements,
 *     the last one may
 *             reach past the end), and what the optimizer keeps, in the shape of the weights: TABLE.SLOT,
 *             with the slots' names (common/model/optimizer_kinds.c) dense, where its last block reaches past
 *             the end: TABLE.padding, [1 + slots, floats]: what lies there, in the order of weights and
 *             slots. No model reads it; an import needs it for equal bits
 * Keys are I64 where all are below 2^63, else U64. `downpour import` takes both forms back.
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
