/* Tensor read: a file of the safetensors format (tensor_file.h has the format), from any program, as a set
 * of tensors.
 * Promise   An accepted file has the correct format. Its header is JSON and lies within the file. Each
 *           tensor has the size of its type and shape. All tensors together fill the data without gap,
 *           overlap or rest. Names are unique. Nothing is read past the bytes.
 * Memory    The set's, and while it is opened the header's text.
 * Thread    One.
 * Failure   DP_DATA naming the fault and the tensor; DP_IO, DP_NOT_FOUND naming the file. */
#ifndef DP_TENSORS_TENSOR_READ_H
#define DP_TENSORS_TENSOR_READ_H

#include "common/tensors/tensor_set.h"

enum dp_status dp_tensor_read_open(const char *path, struct dp_tensor_set *out, struct dp_error *err);

#endif
