/* A plugin that answers what the test asks it to: the status whose number is wait_ms. */
#include "worker/compute/cuda/cuda.h"

const struct dp_cuda_layout dp_cuda_layout = DP_CUDA_LAYOUT;

enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err)
{
    enum dp_status st = (enum dp_status)options->wait_ms;
    return st == DP_OK ? dp_backend_cpu(1, out, err) : dp_fail(err, st, "the plugin says so");
}
