/* A CUDA backend that is none, for machines without a GPU: late_device.h behind the plugin's two symbols, so that the worker
 * trains as it does on a device that copies while it computes. Ends the worker where memory it copied was not pinned. */
#include "late_device.h"
#include "worker/compute/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>

static void plugin_close(void *self)
{
    struct late_device *late = self;
    if (late->unpinned > 0 || late->pins > 0) {
        (void)fprintf(stderr, "late device: %d copies of memory that is not pinned, %d blocks left pinned\n",
                      late->unpinned, late->pins);
        abort();
    }
    (void)fprintf(stderr, "late device: %s steps overlapped\n", late->overlapped > 0 ? "some" : "no");
    free(late);
}

const struct dp_cuda_layout dp_cuda_layout = DP_CUDA_LAYOUT;

enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err)
{
    struct late_device *late = malloc(sizeof *late);
    if (!late)
        return dp_fail(err, DP_NOMEM, "no memory for the late device");
    late_device_init(late, out);
    late->ops.close = plugin_close;
    return DP_OK;
}
