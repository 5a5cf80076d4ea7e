/* Pinned: host memory that a device copies from and to while the host continues.
 * Promise   Memory is zero-filled and aligned to 64 bytes. On a backend that pins it has pages of its own,
 *           since only complete pages can be pinned. Memory that a lost device may still write to is never
 *           freed.
 * Failure   DP_NOMEM. Memory that cannot be pinned is used as it is, and the log says so: copies then block
 *           the host. */
#ifndef DP_COMPUTE_PINNED_H
#define DP_COMPUTE_PINNED_H

#include "worker/compute/backend.h"

/* backend: NULL to pin nothing. free: with the same backend, still open. */
enum dp_status dp_pinned_new(const struct dp_backend *backend, size_t bytes, void **out,
                             struct dp_error *err);
void dp_pinned_free(const struct dp_backend *backend, void **block);

#endif
