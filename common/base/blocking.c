#include "common/base/blocking.h"

#include "common/base/status.h"

static _Thread_local bool forbidden;

bool dp_blocking_set(bool allowed)
{
    bool before = !forbidden;
    forbidden = !allowed;
    return before;
}

void dp_blocking(void)
{
    DP_ASSERT(!forbidden);
}
