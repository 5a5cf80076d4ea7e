/* Rocks db: one open RocksDB, whose column family `rows` has the rows, and the store's marks. Private to the room.
 * Repairs   An open that writes points CURRENT back (rocks_current.h), cuts a torn manifest (rocks_manifest.h), and puts back or removes
 *           the file of a portion that a crash left (rocks_kept.h). Builds before the marks file kept marks
 *           in a column family. These are read into memory, so a refused store is not changed. The family
 *           is dropped after the first put has written them to the file.
 * Thread    One thread opens and closes; in between, any thread may use RocksDB's handles.
 * Memory    The struct owns the handles.
 * Failure   A failed open leaves nothing in memory; a directory that it created stays. */
#ifndef DP_STORE_ROCKS_DB_H
#define DP_STORE_ROCKS_DB_H

#include "server/store/marks_file.h"
#include "server/store/repair/rocks_kept.h"

#include <rocksdb/c.h>

#define DP_ROCKS_PLACE_BYTES 1400u /* of a path in a store's directory */

/* default is empty: RocksDB requires it */
enum dp_rocks_family { DP_ROCKS_DEFAULT, DP_ROCKS_ROWS, DP_ROCKS_FAMILIES };
extern const char *const dp_rocks_family_names[DP_ROCKS_FAMILIES];

struct dp_rocks_db {
    char *directory;
    char *ingest_path; /* the file that rows are written to before it is ingested */
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[DP_ROCKS_FAMILIES];
    rocksdb_column_family_handle_t *old_marks; /* of format 1; NULL: there are none, or they were moved */
    rocksdb_options_t *options[DP_ROCKS_FAMILIES];
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read;
    rocksdb_ingestexternalfileoptions_t *ingest;
    rocksdb_envoptions_t *env;
    struct dp_disk disk; /* of the directory; read-only unless `writes` */
    bool writes;
    struct dp_marks_file *marks;
};

/* Opens or creates the database. */
enum dp_status dp_rocks_db_open(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* Opens it read-only with the same settings, also while a server has it open. Later changes are not seen, and
 * no file is changed. */
enum dp_status dp_rocks_db_open_beside(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* The same for a store that no server has open (read_lock.h), which must be intact. DP_NOT_FOUND: there is no
 * store. A torn tail, which dp_rocks_db_open would repair, is DP_CORRUPT. */
enum dp_status dp_rocks_db_open_to_read(const char *directory, struct dp_rocks_db *out, struct dp_error *err);
/* The options for every read and visit: checksums are verified and no error is lost. The caller destroys
 * them. */
rocksdb_readoptions_t *dp_rocks_db_read_options(void);
/* The same for a visit of all rows. */
rocksdb_readoptions_t *dp_rocks_db_scan_options(void);
/* For a reader with options of its own (store_view.c). Loads the marks, checks CURRENT and the manifest, and opens the database
 * read-only with db->options; *kept: the portion that a server's next start would put back. The caller closes db, also after a
 * failure. */
enum dp_status dp_rocks_db_open_with(const char *directory, struct dp_rocks_db *db,
                                     struct dp_rocks_kept *kept, struct dp_error *err);
/* Once the file has the old marks. */
enum dp_status dp_rocks_db_drop_old_marks(struct dp_rocks_db *db, struct dp_error *err);
void dp_rocks_db_close(struct dp_rocks_db *db); /* no effect after a failed open */

#endif
