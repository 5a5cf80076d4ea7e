/* Rocks manifest: checks and repairs RocksDB's manifest, the list of its tables.
 *     rows ingested -> seal -> marks stored, with the seal
 *     open: check against the seal -> RocksDB found damage -> mend -> open again if something was cut off
 * Why       RocksDB takes a record that is longer than its file for a torn one, and a record with the type of a recycled log for
 *           the log's end. It silently drops that record and all that follow. So one flipped bit in a length or a type would make
 *           files of rows disappear, and RocksDB would then remove them. But it refuses a record that lacks sectors in its middle,
 *           though a loss of power may leave just that of a write that was never synced.
 * Promise   seal: all records up to it are intact and durable. check: they still are, else DP_CORRUPT with
 *           file and offset. mend cuts complete, unsealed records off the end, or changes nothing. The part
 *           that is cut off is first kept, durably, in manifest.torn (the next cut replaces it).
 * Sound     No journal segment is recycled before the marks have the seal of its rows. So an ingest that is cut off is replayed;
 *           and without a merge that is cut off, tables are missing, and RocksDB refuses the store.
 *           A manifest with a higher number than the seal's is one that an opening began before it could store marks: RocksDB
 *           alone checks that.
 * Known by  Sectors of 512 bytes are written in full or not at all. So in a torn write at least one sector
 *           still reads as zeros. RocksDB refuses any other damage.
 * Format    Blocks of 32 KiB. A part: masked CRC32C of type and payload u32 | bytes u16 | type u8 | payload. No part crosses the
 *           end of a block; fewer than 7 bytes at the end of a block are a trailer. A record is one full part, or first, middle*,
 *           last. (RocksDB, db/log_format.h; the types of recycled logs are not used.)
 * Thread    seal: one at a time. The rest: one, while the database is closed. */
#ifndef DP_STORE_REPAIR_ROCKS_MANIFEST_H
#define DP_STORE_REPAIR_ROCKS_MANIFEST_H

#include "common/env/disk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The manifest's number, and how many of its bytes are vouched for. 0, 0: none. */
struct dp_rocks_seal {
    uint64_t number, bytes;
};

/* Syncs the manifest. *seal: the last seal, from which this goes on, and the new one. Without a file CURRENT it is 0, 0. */
enum dp_status dp_rocks_manifest_seal(const struct dp_disk *disk, struct dp_rocks_seal *seal,
                                      struct dp_error *err);
/* DP_OK, too, where CURRENT or the manifest is missing (rocks_current.h). */
enum dp_status dp_rocks_manifest_check(const struct dp_disk *disk, const char *directory,
                                       const struct dp_rocks_seal *seal, struct dp_error *err);
/* *mended: something was cut off, and logged. Does nothing while another process holds the store's lock. */
enum dp_status dp_rocks_manifest_mend(const struct dp_disk *disk, const char *directory, bool *mended,
                                      struct dp_error *err);

#endif
