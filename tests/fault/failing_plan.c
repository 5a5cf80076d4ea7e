#include "tests/fault/failing_plan.h"

#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

const char *dp_failing_say(const struct dp_failing_plan *plan, char *out, size_t size)
{
    static const char *const calls[DP_FAILING_CALLS] = {"write",  "sync",   "rename", "link",
                                                        "create", "resize", "remove"};
    static const char *const files[DP_FAILING_FILES] = {"manifest", "current", "marks",     "table",
                                                        "options",  "journal", "directory", "other"};
    static const char *const errors[DP_FAILING_ERRORS] = {"EIO", "ENOSPC", "short", "EIO and lost"};
    (void)snprintf(out, size, "%s %s %" PRIu32 " %s %s", calls[plan->call], files[plan->file], plan->n,
                   errors[plan->error], plan->on ? "from then on" : "once");
    return out;
}

bool dp_failing_can(enum dp_failing_call call, enum dp_failing_error error)
{
    if (error == DP_FAILING_SHORT)
        return call == DP_FAILING_WRITE;
    if (error == DP_FAILING_LOSE)
        return call == DP_FAILING_SYNC;
    return error == DP_FAILING_EIO || call != DP_FAILING_REMOVE;
}

uint64_t dp_failing_seed(void)
{
    const char *text = getenv("DP_FAULT_SEED");
    return text ? strtoull(text, NULL, 0) : 1;
}

struct dp_failing_plan dp_failing_given(char end[8])
{
    unsigned call, file, n, error, on;
    assert_int_equal(
        sscanf(getenv("DP_FAULT_PLAN"), DP_FAILING_FORMAT " %5s", &call, &file, &n, &error, &on, end), 6);
    assert_true(call < DP_FAILING_CALLS && file < DP_FAILING_FILES && error < DP_FAILING_ERRORS);
    return (struct dp_failing_plan){.call = (enum dp_failing_call)call,
                                    .file = (enum dp_failing_file)file,
                                    .n = n,
                                    .error = (enum dp_failing_error)error,
                                    .on = on != 0};
}
