/* Tensor set: named tensors of files in any of the formats (tensor_read.h, npy_read.h): their list, and any
 * part of each.
 *     a format's open or parse -> find, get parts of each tensor -> unchanged -> close
 * Promise   A part is the bytes that the file has there. A file that became shorter is an error, and nothing
 *           is mapped: another program that changes a file cannot end the process. A check holds while
 *           dp_tensor_set_unchanged says so.
 * Memory    Tensors live until close. Their data stay in the files.
 * Thread    One.
 * Failure   DP_DATA: a file was changed, with the name of a tensor in it; DP_IO. */
#ifndef DP_TENSORS_TENSOR_SET_H
#define DP_TENSORS_TENSOR_SET_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define DP_TENSOR_DIMENSIONS 8u

struct dp_tensor_source { /* an open file as it was found */
    int fd;
    uint64_t size;
    struct timespec changed;
};

struct dp_tensor_in {
    const char *name;
    const char *type; /* "F32", "I64", ...: as safetensors calls them */
    uint32_t dimensions;
    uint64_t shape[DP_TENSOR_DIMENSIONS];
    uint64_t elements, begin, end; /* begin, end: bytes of its source; little endian, of any alignment */
    size_t source;
    bool taken; /* for the caller */
};

struct dp_tensor_set {        /* {0}: none */
    struct dp_tensor_in *one; /* ascending by place */
    size_t count;
    struct dp_tensor_source *source;
    size_t sources;
    void *header;   /* json_t: names, and types of a file's tensors, are its own */
    bool directory; /* each tensor is a file, NAME.npy */
};

/* Opens a file as the set's next source. Its text is the cause alone. */
enum dp_status dp_tensor_set_open_file(struct dp_tensor_set *set, const char *path, struct dp_error *err);
/* Bytes at .. at + size - 1 of a source, all within the size that it had. */
enum dp_status dp_tensor_set_read(const struct dp_tensor_set *set, size_t source, uint64_t at, void *to,
                                  uint64_t size, struct dp_error *err);

/* NULL: there is none of that name. */
struct dp_tensor_in *dp_tensor_set_find(const struct dp_tensor_set *set, const char *name);
/* Bytes at .. at + size - 1 of a tensor's data, all within it. */
enum dp_status dp_tensor_set_get(const struct dp_tensor_set *set, const struct dp_tensor_in *tensor,
                                 uint64_t at, void *to, uint64_t size, struct dp_error *err);
/* DP_DATA: the tensor's file has another size or time than when it was opened. */
enum dp_status dp_tensor_set_unchanged(const struct dp_tensor_set *set, const struct dp_tensor_in *tensor,
                                       struct dp_error *err);
/* "F32 [3, 4]" */
#define DP_TENSOR_SHAPE_BYTES 200u
const char *dp_tensor_set_shape(const struct dp_tensor_in *tensor, char text[DP_TENSOR_SHAPE_BYTES]);
void dp_tensor_set_close(struct dp_tensor_set *set); /* accepts {0} */

#endif
