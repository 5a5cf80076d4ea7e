/* Rocks tail: the last write into RocksDB's own logs, which a loss of power may tear.
 *     an open found damage -> mend -> open again, if something was cut off
 * Why       RocksDB drops a record that ends with its file, but refuses one of which sectors are missing in between, though it was
 *           never synced. Its newest log of marks and its manifest are written at the end only and synced after each
 *           write, so what is damaged there and has no intact record behind it is that last write, or has rotted.
 * Told by   sectors of 512 bytes, written whole or not at all: of a torn write at least one sector still reads as zeros.
 *           Anything else is damage and is left for RocksDB to refuse.
 * Promise   Cuts off whole records, at the end, that no sync has covered; or changes nothing. What it cuts off is kept, durably, in
 *           a file beside (NAME.torn; the next of that name takes its place; the two newest stay). Not while another process has the store's lock.
 * Thread    One, while the database is closed. */
#ifndef DP_STORE_ROCKS_TAIL_H
#define DP_STORE_ROCKS_TAIL_H

#include "common/base/status.h"

#include <stdbool.h>

/* *mended: something was cut off (and logged). A failure of the disk is DP_IO. */
DP_MUST_USE
enum dp_status dp_rocks_tail_mend(const char *directory, bool *mended, struct dp_error *err);

#endif
