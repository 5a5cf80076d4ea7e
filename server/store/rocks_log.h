/* Rocks log: RocksDB's logs (its manifest; the log of marks), checked before RocksDB reads them.
 * Why       RocksDB takes a record that is longer than its file for a torn one, and one whose type is of a recycled log for
 *           the log's end: it drops it with all behind it, and says nothing. One bit of a length or a type, and files of
 *           rows would be gone without a word, and then removed.
 * Promise   DP_CORRUPT, with file and offset, where such a record is whole under another length or type, or a whole one lies
 *           behind it. A record that was really torn is left to RocksDB. All other damage RocksDB finds itself.
 * Format    Blocks of 32 KiB; record: CRC32C, masked, of type and payload u32 | bytes u16 | type u8 | payload; none
 *           crosses a block's end. (RocksDB, db/log_format.h.)
 * Thread    Any; nothing is changed. */
#ifndef DP_STORE_ROCKS_LOG_H
#define DP_STORE_ROCKS_LOG_H

#include "common/base/status.h"

/* Of the manifest that CURRENT names and of each *.log. DP_OK where there is none. */
DP_MUST_USE
enum dp_status dp_rocks_log_check(const char *directory, struct dp_error *err);
/* RocksDB says "checksum mismatch" and not where: puts the file and offset in front of an error that names no file, where one
 * of the logs has a record that is not whole. */
void dp_rocks_log_name_damage(const char *directory, struct dp_error *err);

#endif
