/* Rocks kept: repairs a store whose manifest names a table of rows that RocksDB has removed.
 *     an ingest fails -> its file is kept -> ... the process ends -> open puts the file back if the manifest
 *     names it
 * Why       An ingest links the file of a portion into the database (000123.sst), writes a record that names
 *           it, and syncs the manifest. If that sync fails, RocksDB 7.8 removes the link but leaves the
 *           record in the manifest, so every later open would look for a missing file. Whether the record was
 *           synced cannot be told from the manifest, so nothing may be cut from it. But the portion's first
 *           name (DP_ROCKS_KEPT) still links to the same bytes: it is removed only after a successful ingest
 *           or open.
 * Sound     The rows of the portion were durable in the journal before it was written, and they are newer
 *           than the rows that they hide. With the file put back, the store is as if the process had died
 *           right after the sync. If the record did not survive, the rows are replayed from the journal,
 *           which is kept until marks were synced after a successful ingest.
 * Told by   The manifest names exactly one missing table, and it has the size of the kept file. RocksDB then
 * compares the
 *           table's unique id with the manifest's, so another file of that size is refused.
 * Thread    One, while the database is closed. */
#ifndef DP_STORE_ROCKS_KEPT_H
#define DP_STORE_ROCKS_KEPT_H

#include "common/base/status.h"

#include <stdbool.h>

/* A file in the store's directory: the portion being written and ingested, or the kept one. */
#define DP_ROCKS_KEPT "ingest-tmp"

/* The name of the table that is missing; name[0] == 0: none. */
struct dp_rocks_kept {
    char name[32];
};

/* Looks, and changes nothing. If the manifest cannot be read or understood, no table is found: RocksDB will
 * judge it. */
DP_MUST_USE
enum dp_status dp_rocks_kept_find(const char *directory, struct dp_rocks_kept *out, struct dp_error *err);
/* Puts the table back and logs it. Does nothing, and *out is none, while another process holds the store's
 * lock. */
DP_MUST_USE
enum dp_status dp_rocks_kept_put_back(const char *directory, struct dp_rocks_kept *out, struct dp_error *err);
/* Undoes put_back, if the store could not be opened with the table. */
void dp_rocks_kept_take_away(const char *directory, const struct dp_rocks_kept *kept);

#endif
