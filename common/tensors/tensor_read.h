/* Tensor read: a file of the safetensors format (tensor_file.h has the format), from any program, as a set
 * of tensors.
 * Promise   An accepted file keeps the format: a header of JSON within the file, each tensor's bytes as its
 *           type and shape say, all of them together the data without gap, overlap or rest. Names are
 *           unique. Nothing is read past the bytes.
 * Memory    The set's, and while it is opened the header's text.
 * Thread    One.
 * Failure   DP_DATA naming the fault and the tensor; DP_IO, DP_NOT_FOUND naming the file. */
#ifndef DP_TENSORS_TENSOR_READ_H
#define DP_TENSORS_TENSOR_READ_H

#include "common/tensors/tensor_set.h"

enum dp_status dp_tensor_read_open(const char *path, struct dp_tensor_set *out, struct dp_error *err);

#endif
