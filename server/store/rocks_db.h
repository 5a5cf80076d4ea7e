/* Rocks db: one open RocksDB with the column families rows and marks, and its options. Private to the room.
 * Thread    One thread opens and closes; in between, any thread may use RocksDB's handles.
 * Memory    The struct owns the handles.
 * Failure   A failed open leaves nothing in memory; a directory that it created stays. */
#ifndef DP_STORE_ROCKS_DB_H
#define DP_STORE_ROCKS_DB_H

#include "common/base/status.h"

#include <rocksdb/c.h>

enum dp_rocks_family { DP_ROCKS_DEFAULT, DP_ROCKS_ROWS, DP_ROCKS_MARKS, DP_ROCKS_FAMILIES };

struct dp_rocks_db {
    char *directory;
    char *ingest_path; /* the file that rows are written to before it is ingested */
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[DP_ROCKS_FAMILIES]; /* default is empty: RocksDB requires it */
    rocksdb_options_t *options[DP_ROCKS_FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write_sync;
    rocksdb_ingestexternalfileoptions_t *ingest;
    rocksdb_envoptions_t *env;
};

/* Opens or creates the database, and removes an ingest file that a crash left. */
DP_MUST_USE
enum dp_status dp_rocks_db_open(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* Opens it read-only with the same settings, also while a server has it open. Later changes are not seen, and
 * no file is changed. */
DP_MUST_USE
enum dp_status dp_rocks_db_open_beside(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* The same for a store that no server has open (read_lock.h), which must be intact. DP_NOT_FOUND: there is no
 * store. A torn tail, which dp_rocks_db_open would repair, is DP_CORRUPT. */
DP_MUST_USE
enum dp_status dp_rocks_db_open_to_read(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* The options for every read and visit: checksums are verified and no error is lost. The caller destroys
 * them. */
rocksdb_readoptions_t *dp_rocks_db_read_options(void);
void dp_rocks_db_close(struct dp_rocks_db *db); /* no effect after a failed open */

#endif
