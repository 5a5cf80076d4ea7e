/* Marks: small named values (marks_file.h), the submitters' and the store's own ("store/..."). Private to the
 * room. The store's own marks record what a directory is (format, cluster, generation, range) and whether it
 * was closed cleanly:
 *     (no mark, no row: new)  -> enter ->  "open" or "open-journaled"  -> leave ->  "clean"  -> enter -> ...
 * Promise   put, enter, begin and leave are atomic, and durable when they return DP_OK.
 * Thread    enter, visit and leave: while no job is under way. begin: any. put: the store's writer. */
#ifndef DP_STORE_MARKS_H
#define DP_STORE_MARKS_H

#include "server/store/repair/rocks_adopt.h"
#include "server/store/rocks_db.h"
#include "server/store/store_view.h"

/* 1: marks in a column family of RocksDB, which the first put moves to their file (rocks_db.h). */
#define DP_MARKS_FORMAT 2u

/* A mark whose value is NULL is removed. */
enum dp_status dp_marks_put(struct dp_rocks_db *db, const struct dp_store_mark *marks, uint32_t count,
                            struct dp_error *err);
enum dp_status dp_marks_visit(const struct dp_rocks_db *db, const void *prefix, size_t prefix_bytes,
                              dp_store_visit_mark *visit, void *context, struct dp_error *err);
/* The store's own marks. DP_NOT_FOUND, without a text: it was never opened, so it has no state. DP_UNSUPPORTED: another format. */
enum dp_status dp_marks_own(const struct dp_rocks_db *db, struct dp_store_view_own *out,
                            struct dp_error *err);
/* Checks that the directory matches the options (else DP_UNSUPPORTED, DP_GENERATION, DP_EXISTS) and that it
 * was closed cleanly, or was open with a journal and is opened with one (else DP_UNCLEAN). Then records
 * durably what the gate says; the store stays clean, if it was. A refusal changes nothing. recovers: see rocks_store.h; never NULL here.
 * id: the gate's answer for a directory without a store; for an existing store, this function asks the gate
 * and sets it. */
enum dp_status dp_marks_enter(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                              struct dp_store_id *id, bool *recovers, struct dp_error *err);
/* Call it after dp_marks_enter, once the store is registered; jobs may be under way: records durably its id, and that it is open, and how. */
enum dp_status dp_marks_begin(struct dp_rocks_db *db, const struct dp_store_id *id, bool journaled,
                              struct dp_error *err);
/* Makes the same checks and writes nothing. DP_NOT_FOUND: the store was never opened, so there is nothing to
 * read. */
enum dp_status dp_marks_look(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                             struct dp_store_id *id, bool *recovers, struct dp_error *err);
/* Gives a copy of a store its own marks as a store of its own, with a new id, and the adoption's marks, atomically. Checks first of
 * which store it is a copy (DP_CORRUPT). */
enum dp_status dp_marks_adopt(struct dp_rocks_db *db, const struct dp_rocks_adoption *adoption,
                              struct dp_error *err);
enum dp_status dp_marks_leave(struct dp_rocks_db *db, struct dp_error *err);

#endif
