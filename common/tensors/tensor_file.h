/* Tensor file: named tensors in one file of the safetensors format, or in NumPy's files, NAME.npy for the
 * tensor NAME, in one directory, as other programs (and tensor_read.h, npy_read.h) read them.
 *     add (each tensor) -> open (layout, header) -> put (any part, in any order) -> commit | drop
 * Format    u64 bytes of the header, little endian | header: JSON, padded with blanks to a multiple of 8 |
 *           data. The header has for each tensor {"dtype", "shape", "data_offsets": [begin, end)} and
 *           "__metadata__", texts by name. Tensors lie one after the other without gaps, those of 8 bytes an
 *           element first, so each is aligned to its elements.
 *           .npy: NumPy's 1.0, little-endian f32, i64 or u64, C order; the head has DP_NPY_HEAD bytes.
 * Promise   As atomic_file.h: each file is complete or missing. Disk space is reserved by open. commit
 *           writes several files in their order. If one fails, the earlier ones are already there.
 * Thread    One.
 * Failure   DP_FULL, DP_IO naming the file; DP_ARGUMENT: the path is too long, or not a
 *           regular file. */
#ifndef DP_TENSORS_TENSOR_FILE_H
#define DP_TENSORS_TENSOR_FILE_H

#include "common/env/atomic_file.h"
#include "common/model/table.h"

#include <stddef.h>

enum dp_tensor_type { DP_TENSOR_F32, DP_TENSOR_I64, DP_TENSOR_U64 };

struct dp_tensor {
    char name[DP_TABLE_NAME_MAX + 16];
    enum dp_tensor_type type;
    uint64_t rows, width; /* width 0: it has one dimension */
    uint64_t begin;       /* in the data; set by open */
};

struct dp_tensors { /* {0}: none */
    struct dp_tensor *one;
    size_t count, room;
};

struct dp_tensor_text {
    const char *name, *value;
};

#define DP_NPY_HEAD 128u

struct dp_tensor_file { /* {0}: none */
    const struct dp_tensors *tensors;
    struct dp_atomic_file *file; /* [files]: one, or one for each tensor */
    size_t files;
    uint64_t data; /* where it begins in the one file; 0: the files are .npy */
};

/* *index: by which it is put. */
enum dp_status dp_tensors_add(struct dp_tensors *tensors, const struct dp_tensor *tensor, size_t *index,
                              struct dp_error *err);
void dp_tensors_clear(struct dp_tensors *tensors);

/* tensors: outlive the file. Elements that are not put are 0. */
enum dp_status dp_tensor_file_open(const char *path, struct dp_tensors *tensors,
                                   const struct dp_tensor_text *metadata, size_t texts,
                                   struct dp_tensor_file *out, struct dp_error *err);
/* The same as .npy files in a directory. */
enum dp_status dp_npy_files_open(const char *directory, const struct dp_tensors *tensors,
                                 struct dp_tensor_file *out, struct dp_error *err);
/* The first DP_NPY_HEAD bytes of a .npy file. width 0: it has one dimension. */
void dp_npy_head(char out[DP_NPY_HEAD], enum dp_tensor_type type, uint64_t rows, uint64_t width);
/* Elements at .. at + count - 1 of a tensor, row-major, little endian. */
enum dp_status dp_tensor_file_put(struct dp_tensor_file *file, size_t index, uint64_t at,
                                  const void *elements, uint64_t count, struct dp_error *err);
enum dp_status dp_tensor_file_commit(struct dp_tensor_file *file, struct dp_error *err);
void dp_tensor_file_drop(struct dp_tensor_file *file); /* accepts a cleared struct */

#endif
