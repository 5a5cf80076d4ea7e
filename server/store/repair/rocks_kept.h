/* Rocks kept: repairs a store whose manifest names a table of rows that RocksDB has removed.
 *     an ingest fails -> its file is kept -> ... the process ends -> open puts the file back if the manifest
 *     names it
 * Why       An ingest links the file of a portion into the database (000123.sst), writes a record that names
 *           it, and syncs the manifest. If that sync fails, RocksDB 7.8 removes the link but leaves the
 *           record in the manifest, so every later open would look for a missing file. Whether the record was
 *           synced is not known from the manifest, so nothing may be cut from it. But the portion's first
 *           name (DP_ROCKS_KEPT) still links to the same bytes: it is removed only after a successful ingest
 *           or open.
 * Sound     The rows of the portion were durable in the journal before it was written, and they are newer
 *           than the rows that they hide. With the file put back, the store is as if the process had died
 *           right after the sync. If the record did not survive, the rows are replayed from the journal,
 *           which is kept until marks were synced after a successful ingest.
 * Known by  RocksDB reports the missing table (rocks_text.h). Then it compares the size and the unique id
 *           of the restored file with the manifest. Another file is refused, and removed again.
 * Thread    One, while the database is closed. */
#ifndef DP_STORE_REPAIR_ROCKS_KEPT_H
#define DP_STORE_REPAIR_ROCKS_KEPT_H

#include "common/env/disk.h"

#include <stdbool.h>

/* A file in the store's directory: the portion being written and ingested, or the kept one. */
#define DP_ROCKS_KEPT "ingest-tmp"

/* The name of the table that is missing; name[0] == 0: none. */
struct dp_rocks_kept {
    char name[32];
};

/* Whether an open failed for want of a table, and there is a kept file. text: RocksDB's error, or NULL. Changes nothing. */
void dp_rocks_kept_find(const struct dp_disk *disk, const char *text, struct dp_rocks_kept *out);
/* Puts the table back and logs it. false: it was not done, because there is none, it failed, or another process holds the store's
 * lock. */
bool dp_rocks_kept_put_back(const struct dp_disk *disk, const char *directory,
                            const struct dp_rocks_kept *kept);
/* Undoes put_back, if the store could not be opened with the table. */
void dp_rocks_kept_take_away(const struct dp_disk *disk, const struct dp_rocks_kept *kept);

#endif
