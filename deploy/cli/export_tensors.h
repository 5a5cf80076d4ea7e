/* Export tensors: the parameters of a run as one file of tensors (tensor_file.h).
 *     dense   TABLE: its weights, in the model's shape
 *     sparse  TABLE.keys: the keys of all rows that were pushed, ascending; TABLE.weights: [keys, width], in their order
 *     slots   TABLE.step: how many pushes were applied to each row (dense: to each block of `dim` elements, the last one may
 *             reach past the end), and what the optimizer keeps, in the shape of the weights: TABLE.m and .v (Adam),
 *             .velocity (SGD with momentum), .squares (Adagrad), .z and .n (FTRL)
 *             dense, where its last block reaches past the end: TABLE.padding, [1 + slots, floats]: what lies there, in the order of
 *             weights and slots. No model reads it; an import needs it for equal bits
 * Keys are I64 where all are below 2^63, else U64.
 * Slots     are read off the stores, which must have been closed cleanly: what only a journal has is in no store.
 * Failure   As run_tables.h and tensor_file.h. DP_UNCLEAN: slots of a store that was not closed cleanly. */
#ifndef DP_CLI_EXPORT_TENSORS_H
#define DP_CLI_EXPORT_TENSORS_H

#include "deploy/cli/run_tables.h"

/* only: NULL, or the one parameter that is written. *tensors: how many there are. */
DP_MUST_USE
enum dp_status dp_export_tensors(struct dp_run_tables *run, const struct dp_parameter *only, bool slots,
                                 const char *path, size_t *tensors, struct dp_error *err);

#endif
