/* Npy files: tensors as NumPy's files in one directory, NAME.npy for the tensor NAME, which npy_read.h reads back.
 *     add (each tensor; tensor_file.h) -> open (headers) -> put (any part, in any order) -> commit | drop
 * Format    NumPy's 1.0: little-endian f32, i64 or u64, C order; the head has DP_NPY_HEAD bytes.
 * Promise   As atomic_file.h: each file is there whole or not at all. Disk space is reserved by open. Commit goes through them in their
 *           order: where it fails the earlier ones are there.
 * Thread    One.
 * Failure   DP_FULL, DP_IO naming the file; DP_ARGUMENT: the path is too long, or no regular file. */
#ifndef DP_TENSORS_NPY_FILES_H
#define DP_TENSORS_NPY_FILES_H

#include "common/tensors/tensor_file.h"

#define DP_NPY_HEAD 128u
/* The first DP_NPY_HEAD bytes of a .npy file. width 0: it has one dimension. */
void dp_npy_head(char out[DP_NPY_HEAD], enum dp_tensor_type type, uint64_t rows, uint64_t width);

struct dp_npy_files { /* {0}: none */
    const struct dp_tensors *tensors;
    struct dp_atomic_file *file; /* [count] */
};

/* tensors: outlive the files. What is not put is 0. */
DP_MUST_USE
enum dp_status dp_npy_files_open(const char *directory, const struct dp_tensors *tensors,
                                 struct dp_npy_files *out, struct dp_error *err);
/* Elements at .. at + count - 1 of a tensor, row-major, little endian. */
DP_MUST_USE
enum dp_status dp_npy_files_put(struct dp_npy_files *files, size_t index, uint64_t at, const void *elements,
                                uint64_t count, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_npy_files_commit(struct dp_npy_files *files, struct dp_error *err);
void dp_npy_files_drop(struct dp_npy_files *files); /* accepts a cleared struct */

#endif
