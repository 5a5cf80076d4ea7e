/* Child log: the log of a child, as a file that the child writes and this process copies to standard error.
 *     begin -> (the child is started with its path) -> copy, copy, ... -> end
 * Promise   The child never waits for standard error, and does not end when that is closed. Lines are copied
 *           as a unit. A line that standard error does not take yet is copied later.
 * Why       A child that wrote to the launcher's pipe would lose its last lines, or its life, with the
 *           launcher: a server writes its rows back then.
 * Memory    Without a directory the file is in memory, and what has been copied is released.
 * Thread    One. SIGPIPE is ignored from begin on.
 * Failure   DP_IO, DP_FULL: the directory cannot be made. */
#ifndef DP_NODE_CHILD_LOG_H
#define DP_NODE_CHILD_LOG_H

#include "common/base/status.h"
#include "common/config/cluster.h"

#include <stdbool.h>
#include <sys/types.h>

struct dp_child_log {
    int fd;   /* -1: not open yet */
    off_t at; /* copied up to here */
    bool is_kept;
    char path[DP_PATH_MAX + 64];
};

/* directory: made if it is missing; "": none. name: "server-0". */
enum dp_status dp_child_log_begin(struct dp_child_log *copy, const char *directory, const char *name,
                                  struct dp_error *err);
/* Complete lines. */
void dp_child_log_copy(struct dp_child_log *copy);
/* The rest, and closes. Accepts {0}. */
void dp_child_log_end(struct dp_child_log *copy);

#endif
