/* Draft: a file that takes its name when it is whole.
 *     open -> (write to draft.fd) -> commit, or drop
 *     sweep: drafts that have a name and no writer
 * Promise   The target is whole, or as it was. Where the file system can (O_TMPFILE), a draft has no name until it is committed:
 *           whatever ends its writer, nothing is left. Elsewhere, and for the moment of a commit, its name is TARGET.new-PID-TIME,
 *           locked (flock) as long as its writer lives; sweep removes only those that it can lock itself, so several processes may
 *           write and sweep at once. Where a file system does not tell one machine of another's locks, a draft may be swept under
 *           its writer: that one's commit fails.
 * Thread    Any, each with its own draft.
 * Failure   DP_IO, with the path and the cause; nothing is left behind, but with `keep` what is whole and could not take the target's
 *           name: it is told, ends in "-whole", and no sweep takes it. */
#ifndef DP_ENV_DRAFT_H
#define DP_ENV_DRAFT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_DRAFT_PATH_BYTES 4160u

struct dp_draft {
    int fd;
    bool named; /* it has its name of a draft already */
    bool keep;  /* set it after open: when all is written and cannot be renamed, it stays */
    char path[DP_DRAFT_PATH_BYTES]; /* that name */
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
/* Those of this one file. */
uint32_t dp_draft_sweep_of(const char *target);
/* The directory that a path's last name stands in: "." where there is no slash. false: it is too long. */
bool dp_draft_directory(const char *path, char *out, size_t size);

#endif
