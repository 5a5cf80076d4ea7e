/* Any bytes as a .npy file: refused with a text, or a tensor that lies within the bytes as npy_read.h promises. */
#include "common/tensors/npy_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct dp_tensor_in t;
    struct dp_error err = {0};
    char shape[DP_TENSOR_SHAPE_BYTES];
    size_t part = size < DP_NPY_HEAD_MAX ? size : DP_NPY_HEAD_MAX;
    if (dp_npy_read_head(bytes, part, size, &t, &err) != DP_OK) {
        DP_ASSERT(err.text[0] != '\0');
        return 0;
    }
    uint64_t elements = 1;
    for (uint32_t i = 0; i < t.dimensions; i++)
        elements *= t.shape[i];
    DP_ASSERT(t.dimensions <= DP_TENSOR_DIMENSIONS && t.elements == elements);
    DP_ASSERT(t.begin >= 10 && t.begin <= t.end && t.end == size);
    DP_ASSERT(t.end - t.begin == t.elements * (strcmp(t.type, "F32") == 0 ? 4 : 8));
    DP_ASSERT(strlen(dp_tensor_set_shape(&t, shape)) < sizeof shape);
    return 0;
}
