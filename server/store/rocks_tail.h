/* Rocks tail: the last write to RocksDB's own logs, which a loss of power may tear.
 *     an open found damage -> mend -> open again if something was cut off
 * Why       RocksDB drops an incomplete record at the end of a file, but refuses one that lacks sectors in
 *           its middle, though it was never synced either. The logs of marks and the manifest are only
 *           appended to, and synced after each write. So damage in the last written log of marks or in the
 *           manifest without an intact record after it is that last write, or bit rot.
 *           The last written log need not be the newest. If a process dies before a sync and power is lost
 *           while the next process opens the store, that open may have created the next log, still empty.
 * Told by   Sectors of 512 bytes are written as a whole or not at all: in a torn write at least one sector
 *           still reads as zeros. Anything else is damage, which RocksDB refuses.
 * Promise   Cuts whole records off the end that no sync has covered, or changes nothing. What is cut off is
 *           first kept, durably, in a file of its own (marks.torn, manifest.torn; the next one replaces it).
 *           Does nothing while another process holds the store's lock.
 * Thread    One, while the database is closed. */
#ifndef DP_STORE_ROCKS_TAIL_H
#define DP_STORE_ROCKS_TAIL_H

#include "common/base/status.h"

#include <stdbool.h>

/* *mended: something was cut off, and logged. DP_IO: the disk failed. */
DP_MUST_USE
enum dp_status dp_rocks_tail_mend(const char *directory, bool *mended, struct dp_error *err);

#endif
