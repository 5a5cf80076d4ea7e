/* Atomic file: a file that appears under its name when all of it is written, or not at all.
 *     open -> (write to stream)* -> commit | drop
 * Promise   The name holds the old file or all of the new one, whatever ends the writer. The new one is
 *           written to a temp file next to it, TARGET.new-PID-TIME, which is locked (flock) as long as its
 *           writer lives. A writer that was killed leaves it; the next one of the same target removes it.
 *           A symbolic link stays one: the file that it names is replaced. A file that is there keeps its
 *           permissions and, where allowed, its owner and group; without the group, the group's permissions
 *           go. One that may not be written is refused.
 *           A pipe, a terminal or a device is opened and written directly. /dev/stdout, /dev/stderr and
 *           /dev/fd/N are this process's own descriptors, so a log that they lead to is appended to.
 * Thread    Any, each with its own file. Several processes may write one target at once: the last commit
 *           wins.
 * Failure   DP_IO, DP_FULL, DP_NOMEM, DP_ARGUMENT (an empty name), naming the path and the cause. No file is
 *           left. */
#ifndef DP_ENV_ATOMIC_FILE_H
#define DP_ENV_ATOMIC_FILE_H

#include "common/base/status.h"

#include <stdint.h>
#include <stdio.h>

struct dp_atomic_file {
    FILE *stream;
    char *path; /* heap; as given to open */
    char *target,
        *temp; /* heap; target: path with links followed; both NULL: path is no regular file, and written as it is */
};

enum dp_status dp_atomic_file_open(const char *path, struct dp_atomic_file *out, struct dp_error *err);
/* Flush, sync, rename. It fails, too, for what failed while the stream was written. The struct is cleared in any case. */
enum dp_status dp_atomic_file_commit(struct dp_atomic_file *file, struct dp_error *err);
/* Leaves what was under the name. Accepts a cleared struct. */
void dp_atomic_file_drop(struct dp_atomic_file *file);
/* Removes the temp files in `directory` whose targets have this ending and whose writers have ended. Returns how many. A file that
 * cannot be read or locked stays. */
uint32_t dp_atomic_file_sweep(const char *directory, const char *ending);

#endif
