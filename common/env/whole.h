/* Whole: a file that appears under its name when all of it is written, or not at all.
 *     open -> (write to stream)* -> commit | drop
 * Promise   The name holds the old file or the whole new one, whatever ends the writer (draft.h); what a dead writer left of the
 *           same file is swept by the next. A symbolic link stays one: the file that it names is written. A file that is there
 *           keeps its permissions and, where allowed, its owner and group (where the group is not: no rights that it and all others
 *           did not both have); one that may not be written or replaced is refused. What is whole and cannot take the name when
 *           it is committed stays beside it, and the failure says where.
 *           What is no file (a pipe, a terminal, a device, /dev/stdout whatever stands behind it) has no whole: `direct`, what is
 *           written goes there at once. Opening a pipe waits for its reader.
 * Thread    Any, each with its own.
 * Failure   DP_IO, DP_NOMEM, DP_ARGUMENT (an empty name), naming the path and the cause. */
#ifndef DP_ENV_WHOLE_H
#define DP_ENV_WHOLE_H

#include "common/base/status.h"
#include "common/env/draft.h"

#include <stdbool.h>
#include <stdio.h>

struct dp_whole {
    FILE *stream;
    bool direct;
    char *path, *target; /* heap; target: with the links followed */
    struct dp_draft draft;
};

DP_MUST_USE
enum dp_status dp_whole_open(const char *path, struct dp_whole *out, struct dp_error *err);
/* Sync and rename; DP_IO, also for what failed while it was written. The struct is cleared in any case. */
DP_MUST_USE
enum dp_status dp_whole_commit(struct dp_whole *whole, struct dp_error *err);
/* Leaves what was under the name. Accepts a cleared struct. */
void dp_whole_drop(struct dp_whole *whole);

#endif
