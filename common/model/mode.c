#include "common/model/mode.h"

#include "common/base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void promise_async(uint32_t slack, char *out, size_t size)
{
    (void)slack;
    (void)snprintf(out, size,
                   "No worker waits for another. Each trains a fixed share of every epoch; a gradient may be "
                   "applied to weights that others have changed since its pull.");
}

static void promise_ssp(uint32_t slack, char *out, size_t size)
{
    (void)snprintf(out, size,
                   "No worker is more than %" PRIu32
                   " steps ahead of the slowest, so weights lack at most so many "
                   "steps of any worker (stale synchronous parallel, Ho et al. 2013).",
                   slack);
}

static void promise_sync(uint32_t slack, char *out, size_t size)
{
    if (slack > 0)
        (void)snprintf(out, size,
                       "As sync, but a step does not wait for the %" PRIu32
                       " slowest workers, whose gradients are dropped "
                       "(backup workers, Chen et al. 2016).",
                       slack);
    else
        (void)snprintf(
            out, size,
            "All workers compute on equal weights, and servers apply the mean of their gradients as one "
            "step: no gradient is late, and a seed gives equal bits in each run.");
}

const struct dp_mode dp_mode_table[DP_MODE_COUNT] = {
    [DP_ASYNC] = {.name = "async",
                  .form = "async",
                  .how = "asynchronously",
                  .bare = true,
                  .usual = "async",
                  .promise = promise_async},
    [DP_SSP] = {.name = "ssp",
                .form = "ssp:S (S: steps that a worker may be ahead of the slowest, 0 .. 1000000)",
                .how = "in bounded staleness (SSP)",
                .waits = true,
                .slack = DP_SLACK_AHEAD,
                .most = 1000000,
                .usual = "ssp:3",
                .promise = promise_ssp},
    [DP_SYNC] = {.name = "sync",
                 .form = "sync or sync:B (B: workers that a step does not wait for, 1 .. 1023)",
                 .how = "synchronously",
                 .waits = true,
                 .by_step = true,
                 .slack = DP_SLACK_BACKUPS,
                 .bare = true,
                 .least = 1,
                 .most = DP_MODE_WORKERS_MAX - 1,
                 .usual = "sync",
                 .promise = promise_sync},
};

bool dp_mode_parse(const char *text, enum dp_consistency *mode, uint32_t *slack)
{
    size_t length = strcspn(text, ":");
    uint64_t number = 0;
    for (size_t m = 0; m < DP_MODE_COUNT; m++) {
        const struct dp_mode *of = &dp_mode_table[m];
        if (strncmp(text, of->name, length) != 0 || of->name[length])
            continue;
        if (text[length] ? of->slack == DP_SLACK_NONE || dp_parse_u64(text + length + 1, of->least, of->most,
                                                                      "", &number, NULL) != DP_OK
                         : !of->bare)
            return false;
        *mode = (enum dp_consistency)m;
        *slack = (uint32_t)number;
        return true;
    }
    return false;
}

const char *dp_mode_text(enum dp_consistency mode, uint32_t slack, char out[DP_MODE_TEXT_BYTES])
{
    const struct dp_mode *of = dp_mode_of(mode);
    if (of->bare && slack == 0)
        (void)snprintf(out, DP_MODE_TEXT_BYTES, "%s", of->name);
    else
        (void)snprintf(out, DP_MODE_TEXT_BYTES, "%s:%" PRIu32, of->name, slack);
    return out;
}

enum dp_status dp_mode_check(enum dp_consistency mode, uint32_t slack, uint32_t members, struct dp_error *err)
{
    const struct dp_mode *of = dp_mode_of(mode);
    if (of->slack == DP_SLACK_NONE && slack != 0)
        return dp_fail(err, DP_INVALID, "slack %" PRIu32 ", but %s has none", slack, of->name);
    if (of->slack == DP_SLACK_BACKUPS && slack >= members)
        return dp_fail(err, DP_INVALID,
                       "%" PRIu32 " backup members of %" PRIu32 ", expected fewer than there are", slack,
                       members);
    return DP_OK;
}
