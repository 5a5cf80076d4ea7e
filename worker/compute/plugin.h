/* Plugin: loads the CUDA backend from its shared library (cuda/cuda.h). Private to this room.
 * Promise   Nothing in it is called before its layout is known to match this program's. It stays loaded until
 *           the process ends: its operations are in it, and CUDA installs exit handlers.
 * Failure   DP_NOT_FOUND: there is none, or it cannot be loaded and the machine has no NVIDIA driver
 *           (libcuda.so.1); DP_VERSION: it is from another build; DP_IO: the machine has a driver but the
 *           plugin cannot be loaded (CUDA's libraries are missing, the file is damaged), or the program's
 *           directory is unknown; else the status of the opening. */
#ifndef DP_COMPUTE_PLUGIN_H
#define DP_COMPUTE_PLUGIN_H

#include "worker/compute/cuda/cuda.h"

/* path: NULL: next to the program, as in a build, or else in the installed library folder. */
enum dp_status dp_plugin_open(const char *path, const struct dp_cuda_options *options, struct dp_backend *out,
                              struct dp_error *err);

#endif
