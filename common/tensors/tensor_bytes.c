#define _POSIX_C_SOURCE 200809L
#include "common/tensors/tensor_bytes.h"

#include "common/env/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

uint64_t dp_tensor_type_bytes(enum dp_tensor_type type)
{
    return type == DP_TENSOR_F32 ? 4 : 8;
}

uint64_t dp_tensor_bytes(const struct dp_tensor *tensor)
{
    return tensor->rows * (tensor->width ? tensor->width : 1) * dp_tensor_type_bytes(tensor->type);
}

static enum dp_status fails(const struct dp_atomic_file *file, int error, struct dp_error *err)
{
    return dp_fail(err, dp_limits_full(error) ? DP_FULL : DP_IO, "cannot write '%s': %s%s", file->path,
                   strerror(error), dp_limits_remedy(error));
}

enum dp_status dp_tensor_bytes_reserve(const struct dp_atomic_file *file, uint64_t bytes,
                                       struct dp_error *err)
{
    int error = posix_fallocate(fileno(file->stream), 0, (off_t)bytes);
    return error ? fails(file, error, err) : DP_OK;
}

enum dp_status dp_tensor_bytes_put(const struct dp_atomic_file *file, uint64_t at, const void *bytes,
                                   uint64_t size, struct dp_error *err)
{
    const char *from = bytes;
    while (size > 0) {
        ssize_t n = pwrite(fileno(file->stream), from, size < 1u << 30 ? size : 1u << 30, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return fails(file, n < 0 ? errno : EIO, err);
        from += n;
        at += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return DP_OK;
}
