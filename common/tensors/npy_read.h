/* Npy read: a directory of NumPy's files, NAME.npy for the tensor NAME, as a set of tensors.
 * Format    "\x93NUMPY" | version 1.0 (or 2.0) | u16 (or u32) bytes of the header | header: a Python dict of
 *           'descr', 'fortran_order' and 'shape', padded with blanks | data. Accepted are little-endian f32,
 *           i64 and u64 in C order, of at most 8 dimensions.
 * Promise   An accepted file keeps the format, and its data is as long as shape and type say. Other files of
 *           the directory (names, manifest) are not looked at. Nothing is read past the bytes.
 * Thread    One.
 * Failure   DP_DATA naming the fault and the remedy; DP_IO, DP_NOT_FOUND naming the file. */
#ifndef DP_TENSORS_NPY_READ_H
#define DP_TENSORS_NPY_READ_H

#include "common/tensors/tensor_set.h"

/* As many bytes of a file as the header may have. */
#define DP_NPY_HEAD_MAX 65536u

/* bytes: the first ones of a file of file_bytes, all or DP_NPY_HEAD_MAX. Fills all but name and source. */
enum dp_status dp_npy_read_head(const void *bytes, size_t size, uint64_t file_bytes, struct dp_tensor_in *out,
                                struct dp_error *err);
enum dp_status dp_npy_read_open(const char *directory, struct dp_tensor_set *out, struct dp_error *err);

#endif
