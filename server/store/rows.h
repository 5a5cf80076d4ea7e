/* Rows: writes rows to RocksDB as one ingested SST file, and reads them in batches. Private to the room.
 * Promise   A write is in the database in full or not at all, and durable when it returns DP_OK.
 * Thread    Writes: one at a time. Reads: any thread, each with its own scratch, also during writes.
 * Failure   IO, CORRUPT. FULL: the disk is full, and the database was not touched. A failed write leaves no
 *           row; a failed read leaves rows and found undefined. */
#ifndef DP_STORE_ROWS_H
#define DP_STORE_ROWS_H

#include "server/store/keys.h"
#include "server/store/rocks_db.h"

#define DP_ROWS_CHUNK 512u /* keys in one call of RocksDB */

/* A read's buffers, reserved when the store opens. */
struct dp_rows_scratch {
    char keys[DP_ROWS_CHUNK][DP_KEY_BYTES];
    const char *key[DP_ROWS_CHUNK];
    size_t key_bytes[DP_ROWS_CHUNK];
    rocksdb_pinnableslice_t *values[DP_ROWS_CHUNK];
    char *errors[DP_ROWS_CHUNK];
};

enum dp_status dp_rows_write(struct dp_rocks_db *db, const struct dp_store_job *const *jobs, uint32_t count,
                             struct dp_error *err);
/* Reads the job's keys from .. from + count - 1. */
enum dp_status dp_rows_read(struct dp_rocks_db *db, struct dp_rows_scratch *scratch,
                            const struct dp_store_job *job, uint32_t from, uint32_t count,
                            struct dp_error *err);
/* The key of the row that the iterator is at. */
enum dp_status dp_rows_key(const struct dp_rocks_db *db, const rocksdb_iterator_t *at,
                           struct dp_store_key *out, struct dp_error *err);
/* Visits the rows from the key *last on, which becomes the last one that was tried. */
enum dp_status dp_rows_scan(const struct dp_rocks_db *db, const rocksdb_readoptions_t *read,
                            char last[DP_KEY_BYTES], dp_store_visit_row *visit, void *context,
                            struct dp_error *err);
/* See visit_rows of store.h. */
enum dp_status dp_rows_visit(struct dp_rocks_db *db, dp_store_visit_row *visit, void *context,
                             struct dp_error *err);

/* Counts the rows of each table in slices, as of one moment of the database: begin (the moment) -> step, step, ... (done) -> end.
 * One thread at a time; it may change between calls. end has no effect without begin. */
struct dp_count {
    rocksdb_iterator_t *at; /* NULL: not begun */
    rocksdb_readoptions_t *read;
    bool started;
};

/* Rows that are written later are not counted. Cheap: no file is read. */
void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count);
/* Counts at most `most` more rows into job->counts. DP_CORRUPT: a row belongs to a table that the job does
 * not name. */
enum dp_status dp_count_step(const struct dp_rocks_db *db, struct dp_count *count, struct dp_store_job *job,
                             uint32_t most, bool *done, struct dp_error *err);
void dp_count_end(struct dp_count *count);

#endif
