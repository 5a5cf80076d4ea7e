/* Tensor read: a file of the safetensors format (tensor_file.h has its form), from whatever program.
 *     open (mapped) or parse (bytes) -> find, take each tensor -> close
 * Promise   What is accepted is what the format asks: a header of JSON within the file, each tensor's bytes as its type and shape say,
 *           all of them together the data without gap, overlap or rest. Names are unique. Nothing is read past the bytes.
 * Memory    Tensors and their data live until close.
 * Thread    One.
 * Failure   DP_DATA naming what is wrong, and the tensor; DP_IO, DP_NOT_FOUND naming the file. */
#ifndef DP_TENSORS_TENSOR_READ_H
#define DP_TENSORS_TENSOR_READ_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_TENSOR_DIMENSIONS 8u

struct dp_tensor_in {
    const char *name;
    const char *type; /* "F32", "I64", ...: as the format calls them */
    uint32_t dimensions;
    uint64_t shape[DP_TENSOR_DIMENSIONS];
    uint64_t elements, begin, end;
    const unsigned char *data; /* little endian, of any alignment */
    bool taken;                /* for the caller */
};

struct dp_tensor_set {        /* {0}: none */
    struct dp_tensor_in *one; /* ascending by place in the data */
    size_t count;
    void *header; /* json_t: names and types are its own */
    void *map;
    size_t map_bytes;
};

DP_MUST_USE
enum dp_status dp_tensor_read_parse(const void *bytes, size_t size, struct dp_tensor_set *out,
                                    struct dp_error *err);
DP_MUST_USE
enum dp_status dp_tensor_read_open(const char *path, struct dp_tensor_set *out, struct dp_error *err);
/* NULL: there is none of that name. */
struct dp_tensor_in *dp_tensor_read_find(const struct dp_tensor_set *set, const char *name);
/* "F32 [3, 4]" */
#define DP_TENSOR_SHAPE_BYTES 200u
const char *dp_tensor_read_shape(const struct dp_tensor_in *tensor, char text[DP_TENSOR_SHAPE_BYTES]);
void dp_tensor_read_close(struct dp_tensor_set *set); /* accepts {0} */

#endif
