/* Rocks kept: a portion of rows that RocksDB's manifest names, and that RocksDB threw away.
 *     ingest fails -> its file is kept -> ... the process ends -> open: put back, where the manifest names it
 * Why       An ingest links the portion's file into the database (000123.sst), then writes a record that names it and syncs the
 *           manifest. Where that sync fails, RocksDB 7.8 removes the link, and the record stays in the file, so
 *           that each later open looks for a file that is gone. Nobody can tell from such a manifest whether its last
 *           record was synced, so nothing may be cut from it. But the portion's own name (DP_ROCKS_KEPT) still is a link to the
 *           same bytes: it goes only when an ingest has succeeded, or when an open has.
 * Sound     The rows of the portion were in the journal, durably, before it was written, and are newer than what it hides: with it
 *           the store is what it would be had the process died right after the sync. If the record did not survive, the
 *           rows are replayed from the journal, which is kept until marks were synced behind an ingest that succeeded.
 * Told by   The manifest names exactly one table that is not there, of just the size of what was kept. RocksDB then
 *           compares the table's unique id with the manifest's, so another file of that size is refused.
 * Thread    One, while the database is closed. */
#ifndef DP_STORE_ROCKS_KEPT_H
#define DP_STORE_ROCKS_KEPT_H

#include "common/base/status.h"

#include <stdbool.h>

/* In the store's directory: the portion that is written, then ingested; or that was kept. */
#define DP_ROCKS_KEPT "ingest-tmp"

/* The table that would be put back; name[0] == 0: none. */
struct dp_rocks_kept {
    char name[32];
};

/* Changes nothing. A manifest that cannot be read or understood names none: RocksDB judges it. */
DP_MUST_USE
enum dp_status dp_rocks_kept_find(const char *directory, struct dp_rocks_kept *out, struct dp_error *err);
/* Puts it back and says so in the log. out: what was put back. Not while another process has the store's lock: then none. */
DP_MUST_USE
enum dp_status dp_rocks_kept_put_back(const char *directory, struct dp_rocks_kept *out, struct dp_error *err);
/* The store could not be opened with it: all is as before. */
void dp_rocks_kept_take_away(const char *directory, const struct dp_rocks_kept *kept);

#endif
