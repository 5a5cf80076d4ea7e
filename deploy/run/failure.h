/* Failure: why a run failed, for programs that started it: DIR/failure.json
 *     {"error": "training has diverged in epoch 3, ...", "trained": true, "diverged": true, "refused": false}
 * Promise   The file is of the last run there: a run that begins removes it, and one that was stopped by a signal leaves none.
 * Thread    One at a time.
 * Failure   Writing: DP_IO naming the path. */
#ifndef DP_RUN_FAILURE_H
#define DP_RUN_FAILURE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdio.h>

struct dp_failure {
    char error[1024]; /* of the process that failed first */
    bool trained;     /* some worker had */
    bool diverged;    /* some worker's loss, gradients or weights were not finite */
    bool
        refused; /* nothing was trained, and the first process to fail said why: the same command fails again */
};

/* directory: --dir. */
void dp_failure_clear(const char *directory);
enum dp_status dp_failure_write(const char *directory, const struct dp_failure *failure,
                                struct dp_error *err);
/* false: there is none. */
/* The same as one line, after which the command ends with `code`. */
void dp_failure_json(const struct dp_failure *failure, int code, const char *directory, FILE *file);
bool dp_failure_read(const char *directory, struct dp_failure *out);

#endif
