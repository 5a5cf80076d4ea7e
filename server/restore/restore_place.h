/* Restore place: where a server's store is rebuilt, beside the store itself, and how the one takes the other's place.
 *     begin: STORE.restoring, empty and locked -> (shards are built in it) -> end: it is STORE        or: give up
 * Promise   Until end, STORE is as it was. end is one rename, or one exchange of two names: whatever ends the process, STORE is
 *           the old store or the whole new one. (A file system without that exchange gets two renames: killed between them
 *           there is no STORE, the old one is STORE.before, and a server does not start until the restore is run again.)
 *           STORE.restoring never counts as a store; the next begin removes it.
 *           Nothing but a store is removed: a directory with names that are none of ours is refused.
 * Thread    One.
 * Failure   DP_EXISTS: there are stores, and they may not be replaced; or other things are in the way. DP_IN_USE: a server has
 *           the store open, or another restore is under way. DP_FULL, DP_IO. */
#ifndef DP_RESTORE_RESTORE_PLACE_H
#define DP_RESTORE_RESTORE_PLACE_H

#include "common/base/status.h"

#include <stdbool.h>

#define DP_RESTORE_PLACE_BYTES 1300u

struct dp_restore_place {
    char store[DP_RESTORE_PLACE_BYTES]; /* links followed */
    char building[DP_RESTORE_PLACE_BYTES], before[DP_RESTORE_PLACE_BYTES], parent[DP_RESTORE_PLACE_BYTES];
    bool replaces; /* there is a store */
    bool empty;    /* at most an empty directory is there */
    int lock;      /* of `building`; -1: none */
};

DP_MUST_USE
enum dp_status dp_restore_place_begin(struct dp_restore_place *place, const char *store, bool overwrite,
                                      struct dp_error *err);
/* What was built must be durable, but for the names in `building`, which this syncs. Then the old store is removed. */
DP_MUST_USE
enum dp_status dp_restore_place_end(struct dp_restore_place *place, struct dp_error *err);
/* After a failed begin or end, too: removes what was built, if it can. After end, and on {0} with lock -1: no effect. */
void dp_restore_place_give_up(struct dp_restore_place *place);
/* For a server's start: DP_UNCLEAN: a restore was killed between two renames, so that there is no store now. */
DP_MUST_USE
enum dp_status dp_restore_place_check(const char *store, struct dp_error *err);

#endif
