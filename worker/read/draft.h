/* Draft: a file that is written under a name of its own, and takes its real one when it is whole. Private to this room.
 *     open -> (write to draft.fd) -> commit, or drop
 *     sweep: drafts whose writer is dead
 * Promise   The target is whole, or as it was. A draft is locked (flock) as long as its writer lives, whatever ends it; sweep
 *           removes only those that it can lock itself, so several processes may write and sweep at once. Where a file system
 *           does not tell one machine of another's locks, a draft may be swept under its writer: that one's commit fails.
 * Thread    Any, each with its own draft.
 * Failure   DP_IO, with the path and the cause; nothing is left behind. */
#ifndef DP_READ_DRAFT_H
#define DP_READ_DRAFT_H

#include "common/base/status.h"

#include <stdint.h>

#define DP_DRAFT_PATH_BYTES 4160u

struct dp_draft {
    int fd;
    char path[DP_DRAFT_PATH_BYTES];
};

DP_MUST_USE
enum dp_status dp_draft_open(const char *target, struct dp_draft *out, struct dp_error *err);
/* What is written is synced, then named `target`, in place of what had that name. The draft is closed, whatever comes of it. */
DP_MUST_USE
enum dp_status dp_draft_commit(struct dp_draft *draft, const char *target, struct dp_error *err);
void dp_draft_drop(struct dp_draft *draft);
/* Removes the drafts of files in `directory` whose names have this ending; how many there were. What cannot be read or locked
 * stays. */
uint32_t dp_draft_sweep(const char *directory, const char *ending);

#endif
