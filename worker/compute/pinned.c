#include "worker/compute/pinned.h"

#include "common/base/log.h"
#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t page_bytes(void)
{
    long page = sysconf(_SC_PAGESIZE);
    return page > 0 ? (size_t)page : 4096;
}

static bool pins(const struct dp_backend *backend)
{
    return backend && backend->ops && backend->ops->pin;
}

enum dp_status dp_pinned_new(const struct dp_backend *backend, size_t bytes, void **out, struct dp_error *err)
{
    struct dp_error why = {0};
    size_t page = page_bytes(), pages = bytes / page + (bytes % page != 0 || bytes == 0);
    *out = NULL;
    if (!pins(backend))
        *out = dp_alloc_aligned(bytes);
    else if (pages <= SIZE_MAX / page)
        *out = aligned_alloc(page, pages * page);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for %zu bytes", bytes);
    if (!pins(backend))
        return DP_OK;
    memset(*out, 0, pages * page);
    if (backend->ops->pin(backend->self, *out, pages * page, &why) != DP_OK)
        dp_log(DP_LOG_WARN, "cannot pin %zu bytes, so copying them is slower: %s", bytes, why.text);
    return DP_OK;
}

void dp_pinned_free(const struct dp_backend *backend, void **block)
{
    bool ours = !*block || !pins(backend) || backend->ops->unpin(backend->self, *block);
    if (ours) /* otherwise the lost device may still write to it */
        free(*block);
    *block = NULL;
}
