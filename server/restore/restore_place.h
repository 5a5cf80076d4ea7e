/* Restore place: where a server's store is rebuilt, next to the store itself.
 *     begin: STORE.restoring, empty and locked -> (shards are built in it) -> built        or: give up
 * Promise   STORE is as it was. STORE.restoring takes its place later, when all servers have built (restore_exchange.h).
 *           STORE.restoring without its file `restored` never counts as a store; the next begin removes it.
 *           Only a store is removed: a directory with names of other programs is refused.
 * Thread    One.
 * Failure   DP_EXISTS: there are stores, and they may not be replaced; or other things are in the way. DP_IN_USE: a server has
 *           the store open, or another restore is under way. DP_FULL, DP_IO. */
#ifndef DP_RESTORE_RESTORE_PLACE_H
#define DP_RESTORE_RESTORE_PLACE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_RESTORE_PLACE_BYTES 1300u

struct dp_restore_place {
    char store[DP_RESTORE_PLACE_BYTES]; /* links followed */
    char building[DP_RESTORE_PLACE_BYTES], before[DP_RESTORE_PLACE_BYTES], parent[DP_RESTORE_PLACE_BYTES];
    bool replaces;    /* there is a store */
    uint64_t cluster; /* to which it belongs; 0: none can be read */
    bool empty;       /* at most an empty directory is there */
    int lock;         /* of `building`; -1: none */
};

enum dp_status dp_restore_place_begin(struct dp_restore_place *place, const char *store, bool overwrite,
                                      struct dp_error *err);
/* What was built must be durable, but for the names in `building`, which this syncs. Then the file `restored` says which restore it
 * is: the history of its stores (server/store/store_id.h). The lock is released. */
enum dp_status dp_restore_place_built(struct dp_restore_place *place, uint64_t history, struct dp_error *err);
/* After a failed begin or built, too: removes what was built, if it can. After built, and on {0} with lock -1: no effect. */
void dp_restore_place_give_up(struct dp_restore_place *place);

/* ---- for restore_exchange.h */

/* The names alone; lock is -1. */
enum dp_status dp_restore_place_name(struct dp_restore_place *place, const char *store, struct dp_error *err);
/* Whether the store may be replaced, if there is one. Sets `replaces` and `empty`. */
enum dp_status dp_restore_place_look(struct dp_restore_place *place, bool overwrite, struct dp_error *err);
/* Locks `building`, which exists. DP_IN_USE: another process has the lock. */
enum dp_status dp_restore_place_lock(struct dp_restore_place *place, struct dp_error *err);
void dp_restore_place_unlock(struct dp_restore_place *place);
/* The history in the file `restored` of a directory; 0: it has none. */
uint64_t dp_restore_place_history(const char *directory);
/* DP_EXISTS: there are names in that directory that are none of ours. */
enum dp_status dp_restore_place_only_ours(const char *directory, struct dp_error *err);
/* Removes what is in `building`, whose lock is held, and with `itself` the directory: `restored` first. DP_EXISTS: there are names that
 * are none of ours. */
enum dp_status dp_restore_place_sweep(const struct dp_restore_place *place, bool itself,
                                      struct dp_error *err);

#endif
