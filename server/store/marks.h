/* Marks: small named values in RocksDB, the submitters' and the store's own ("store/..."). The room's own.
 * Own marks say what a directory is (format, cluster, generation, range) and whether it was closed cleanly:
 *     (no mark, no row: new)  -> enter ->  "open" or "open-journaled"  -> leave ->  "clean"  -> enter -> ...
 * Promise   put, enter and leave are atomic, and durable when they return DP_OK.
 * Thread    enter, visit, leave: while no job is under way; put: the store's.                           */
#ifndef DP_STORE_MARKS_H
#define DP_STORE_MARKS_H

#include "server/store/rocks_db.h"
#include "server/store/rocks_store.h"

#define DP_MARKS_FORMAT 1u

DP_MUST_USE
enum dp_status dp_marks_put(struct dp_rocks_db *db, const struct dp_store_mark *marks, uint32_t count,
                            struct dp_error *err);
DP_MUST_USE
enum dp_status dp_marks_visit(struct dp_rocks_db *db, const void *prefix, size_t prefix_bytes,
                              enum dp_status (*visit)(void *context, const struct dp_store_mark *mark,
                                                      struct dp_error *err),
                              void *context, struct dp_error *err);
/* Checks that the directory is the one that the options say (DP_UNSUPPORTED, DP_GENERATION, DP_EXISTS) and
 * was closed cleanly or, to be opened with its journal, was open with one (else DP_UNCLEAN), and says durably
 * that it is open now, and how. A refusal changes nothing. *recovers: see rocks_store.h; never NULL here. */
DP_MUST_USE
enum dp_status dp_marks_enter(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                              bool *recovers, struct dp_error *err);
/* The same checks, and nothing is put. DP_NOT_FOUND: it was never opened, there is nothing to read. */
DP_MUST_USE
enum dp_status dp_marks_look(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                             bool *recovers, struct dp_error *err);
/* All marks of one, the own too, and one more, into another, at once. DP_UNCLEAN: `from` was not closed cleanly. */
DP_MUST_USE
enum dp_status dp_marks_copy(struct dp_rocks_db *from, struct dp_rocks_db *to,
                             const struct dp_store_mark *more, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_marks_leave(struct dp_rocks_db *db, struct dp_error *err);

#endif
