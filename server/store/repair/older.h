/* Older: files of an earlier version in a store's directory that only that version can complete. Private to
 * the room.
 * Thread    Any.
 * Failure   DP_UNSUPPORTED, with the way out. */
#ifndef DP_STORE_REPAIR_OLDER_H
#define DP_STORE_REPAIR_OLDER_H

#include "common/base/status.h"

enum dp_status dp_store_older_check(const char *directory, struct dp_error *err);

#endif
