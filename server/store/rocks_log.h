/* Rocks log: checks RocksDB's logs (the manifest and the log of marks) before RocksDB reads them.
 * Why       RocksDB takes a record that is longer than its file for a torn one, and a record with the type of
 *           a recycled log for the log's end. It silently drops that record and all that follow. So one
 *           flipped bit in a length or a type would make files of rows disappear from the manifest, and
 *           RocksDB would then remove them.
 * Promise   DP_CORRUPT, with file and offset, if such a record is intact under another length or type, or if
 *           an intact record follows it. A record that is really torn is left to RocksDB, which also finds
 *           all other damage.
 * Format    See rocks_record.h.
 * Thread    Any; nothing is changed. */
#ifndef DP_STORE_ROCKS_LOG_H
#define DP_STORE_ROCKS_LOG_H

#include "common/base/status.h"

/* Checks the manifest that CURRENT names, and each *.log. DP_OK if there are none. */
DP_MUST_USE
enum dp_status dp_rocks_log_check(const char *directory, struct dp_error *err);
/* RocksDB reports "checksum mismatch" without a place. If the error names no file and one of the logs has a
 * damaged record, this puts its file and offset in front of the text. */
void dp_rocks_log_name_damage(const char *directory, struct dp_error *err);

#endif
