/* Spool: data from a pipe or standard input, written to a file before anything is started: workers read it
 * several times, and each by itself.
 *     plan -> (all that can refuse the run) -> fill
 * Promise   A spool's name holds all bytes that came, or the earlier file. How much came is said.
 * Failure   DP_FULL, DP_IO naming the place and the flag; DP_ARGUMENT: standard input for two flags, or
 *           nothing came. */
#ifndef DP_RUN_SPOOL_H
#define DP_RUN_SPOOL_H

#include "common/config/cluster.h"

#include <stdio.h>

#define DP_SPOOLS_MAX 8u

struct dp_spools {
    struct {
        const char *flag;
        char from[DP_PATH_MAX + 1], to[DP_PATH_MAX + 1];
    } of[DP_SPOOLS_MAX];
    uint32_t count;
};

/* "-", /dev/stdin and the like, and what is there and neither a file nor a directory. */
bool dp_spool_is_stream(const char *path);
/* One more: `path` (DP_PATH_MAX + 1), if it is a stream, becomes that of a file of the directory. tag: tells users of the directory
 * apart. */
enum dp_status dp_spool_plan(struct dp_spools *spools, const char *flag, char *path, const char *directory,
                             uint32_t tag, struct dp_error *err);
/* Waits for the streams' ends, as long as they take: a person can end that. Tells how it goes on standard error. */
enum dp_status dp_spool_fill(const struct dp_spools *spools, FILE *notes, struct dp_error *err);

#endif
