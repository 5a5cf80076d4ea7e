/* Whole: a file that appears under its name when all of it is written, or not at all.
 *     open -> (write to stream)* -> commit | drop                                                       */
#ifndef DP_WORKER_WHOLE_H
#define DP_WORKER_WHOLE_H

#include "common/base/status.h"

#include <stdio.h>

struct dp_whole {
    FILE *stream;
    char *path, *temporary; /* heap */
};

DP_MUST_USE
enum dp_status dp_whole_open(const char *path, struct dp_whole *out, struct dp_error *err);
/* Sync and rename; DP_IO, also for what failed while it was written. The struct is cleared in any case. */
DP_MUST_USE
enum dp_status dp_whole_commit(struct dp_whole *whole, struct dp_error *err);
/* Leaves what was under the name. Accepts a cleared struct. */
void dp_whole_drop(struct dp_whole *whole);

#endif
