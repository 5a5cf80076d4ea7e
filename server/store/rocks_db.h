/* Rocks db: one open RocksDB with the column families rows and marks, and its options. The room's own.
 * Thread    open, close: one; between them RocksDB's handles may be used by any.
 * Memory    The handles are this struct's.
 * Failure   open leaves nothing behind in memory; a directory that was made stays. */
#ifndef DP_STORE_ROCKS_DB_H
#define DP_STORE_ROCKS_DB_H

#include "common/base/status.h"

#include <rocksdb/c.h>

enum dp_rocks_family { DP_ROCKS_DEFAULT, DP_ROCKS_ROWS, DP_ROCKS_MARKS, DP_ROCKS_FAMILIES };

struct dp_rocks_db {
    char *directory;
    char *ingest_path; /* the one file that is written before it is ingested */
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[DP_ROCKS_FAMILIES]; /* default stays empty: RocksDB wants it */
    rocksdb_options_t *options[DP_ROCKS_FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_writeoptions_t *write_sync;
    rocksdb_ingestexternalfileoptions_t *ingest;
    rocksdb_envoptions_t *env;
};

/* Opens or makes the database; sweeps an ingest file that a crash left. */
DP_MUST_USE
enum dp_status dp_rocks_db_open(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* Read-only, with the same settings, while a server has it open too; what came after is not seen, no file is changed. */
DP_MUST_USE
enum dp_status dp_rocks_db_open_beside(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* The same for a store that no server has open (read_lock.h): it must be whole, and no file is changed. DP_NOT_FOUND: there is
 * none. A torn tail, which dp_rocks_db_open would mend, is DP_CORRUPT. */
DP_MUST_USE
enum dp_status dp_rocks_db_open_to_read(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* What every read and every visit is made with: checksums verified, and no error lost. The caller's, to be destroyed. */
rocksdb_readoptions_t *dp_rocks_db_read_options(void);
void dp_rocks_db_close(struct dp_rocks_db *db); /* of one that failed to open: no effect */

#endif
