/* Tensor bytes: parts of tensors into a file that is being written. Private to the room.
 * Failure   DP_FULL, DP_IO naming the file. */
#ifndef DP_TENSORS_TENSOR_BYTES_H
#define DP_TENSORS_TENSOR_BYTES_H

#include "common/tensors/tensor_file.h"

uint64_t dp_tensor_type_bytes(enum dp_tensor_type type); /* of an element */
uint64_t dp_tensor_bytes(const struct dp_tensor *tensor);

/* All of the file's space, as zeros. */
DP_MUST_USE
enum dp_status dp_tensor_bytes_reserve(const struct dp_atomic_file *file, uint64_t bytes,
                                       struct dp_error *err);
DP_MUST_USE
enum dp_status dp_tensor_bytes_put(const struct dp_atomic_file *file, uint64_t at, const void *bytes,
                                   uint64_t size, struct dp_error *err);

#endif
