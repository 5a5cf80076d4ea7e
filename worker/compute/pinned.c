#include "worker/compute/pinned.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

static bool pins(const struct dp_backend *backend)
{
    return backend && backend->ops && backend->ops->pin;
}

enum dp_status dp_pinned_new(const struct dp_backend *backend, size_t bytes, void **out, struct dp_error *err)
{
    struct dp_error why = {0};
    size_t pages = bytes / PAGE + (bytes % PAGE != 0 || bytes == 0);
    *out = NULL;
    if (!pins(backend))
        *out = dp_alloc_aligned(bytes);
    else if (pages <= SIZE_MAX / PAGE)
        *out = aligned_alloc(PAGE, pages * PAGE);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for %zu bytes", bytes);
    if (!pins(backend))
        return DP_OK;
    memset(*out, 0, pages * PAGE);
    if (backend->ops->pin(backend->self, *out, pages * PAGE, &why) != DP_OK)
        dp_log(DP_LOG_WARN, "%zu bytes are copied without being pinned, which is slower: %s", bytes,
               why.text);
    return DP_OK;
}

void dp_pinned_free(const struct dp_backend *backend, void **block)
{
    if (*block && pins(backend) && backend->ops->unpin)
        backend->ops->unpin(backend->self, *block);
    free(*block);
    *block = NULL;
}
