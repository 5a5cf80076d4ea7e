/* Plugins of another build, one for each way in which one may be: STALE is its layout (or nothing of it), and LACKS an operation.
 * None may be opened, or called: opening ends the program. */
#include "worker/compute/cuda/cuda.h"

#include <stdlib.h>

#ifdef STALE
const struct dp_cuda_layout dp_cuda_layout = STALE;
#endif

#ifdef LACKS
enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err)
{
    static struct dp_backend_ops ops;
    struct dp_backend cpu;
    enum dp_status st = dp_backend_cpu(1, &cpu, err);
    ops = *cpu.ops;
    ops.LACKS = NULL;
    *out = (struct dp_backend){&ops, NULL};
    return st;
}
#elif defined(NEEDS) /* what is not there: a symbol, or a library */
int NEEDS(void);
enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err)
{
    return (enum dp_status)NEEDS();
}
#elif !defined(CLOSED)
enum dp_status dp_cuda_open(const struct dp_cuda_options *options, struct dp_backend *out,
                            struct dp_error *err)
{
    abort();
}
#endif
