/* Plugin: the CUDA backend out of its shared library (cuda/cuda.h).
 * Promise   Nothing of it is called before its layout is seen to be this program's. What was loaded stays loaded until the
 *           process ends: its operations are in it, and CUDA leaves handlers that are called at the end.
 * Failure   DP_NOT_FOUND: there is none, or it cannot be loaded and the machine has no NVIDIA driver (libcuda.so.1); DP_VERSION: it
 *           is of another build; DP_IO: the machine has a driver and the plugin cannot be loaded (CUDA's libraries are missing, the file is
 *           damaged), or it cannot be told where the program lies; else what opening says. Inside this room only. */
#ifndef DP_COMPUTE_PLUGIN_H
#define DP_COMPUTE_PLUGIN_H

#include "worker/compute/cuda/cuda.h"

/* path: NULL: the first of these that is there: beside the program, as a build has it; where it is installed. */
DP_MUST_USE
enum dp_status dp_plugin_open(const char *path, const struct dp_cuda_options *options, struct dp_backend *out,
                              struct dp_error *err);

#endif
