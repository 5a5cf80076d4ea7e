/* Rows: many rows into RocksDB as one ingested SST file, and many out of it. The room's own.
 * Promise   A write is in the database in full or not at all, durable when it returns DP_OK.
 * Thread    Writes: one at a time. Reads: any, each with a scratch of its own, beside writes too.
 * Failure   IO, CORRUPT; FULL: the disk, before the database was touched. A failed write leaves no row; a failed
 *           read leaves rows and found undefined.
 */
#ifndef DP_STORE_ROWS_H
#define DP_STORE_ROWS_H

#include "server/store/keys.h"
#include "server/store/rocks_db.h"

#define DP_ROWS_CHUNK 512u /* keys of one question to RocksDB */

/* What a read needs, reserved when the store opens. */
struct dp_rows_scratch {
    char keys[DP_ROWS_CHUNK][DP_KEY_BYTES];
    const char *key[DP_ROWS_CHUNK];
    size_t key_bytes[DP_ROWS_CHUNK];
    rocksdb_pinnableslice_t *values[DP_ROWS_CHUNK];
    char *errors[DP_ROWS_CHUNK];
};

DP_MUST_USE
enum dp_status dp_rows_write(struct dp_rocks_db *db, const struct dp_store_job *const *jobs, uint32_t count,
                             struct dp_error *err);
/* The database itself met a full disk: it takes no write before it is opened again, so this is no DP_FULL that may be
 * tried again. */
enum dp_status dp_rows_database_full(struct dp_error *err);
/* Of the job's keys those at from .. from + count - 1. */
DP_MUST_USE
enum dp_status dp_rows_read(struct dp_rocks_db *db, struct dp_rows_scratch *scratch,
                            const struct dp_store_job *job, uint32_t from, uint32_t count,
                            struct dp_error *err);
/* store.h's visit_rows. */
DP_MUST_USE
enum dp_status dp_rows_visit(struct dp_rocks_db *db,
                             enum dp_status (*visit)(void *context, struct dp_store_key key, const void *row,
                                                     size_t row_bytes, struct dp_error *err),
                             void *context, struct dp_error *err);

#endif
