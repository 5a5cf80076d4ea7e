/* Rocks current: the file CURRENT, which names the manifest that RocksDB reads. The room's own.
 * Why       RocksDB opens whatever it names, puts its bytes into messages, and calls a name that is not there an IO error.
 * Thread    Any. */
#ifndef DP_STORE_ROCKS_CURRENT_H
#define DP_STORE_ROCKS_CURRENT_H

#include "common/base/status.h"

/* DP_CORRUPT: it is there, and is not the name of a manifest that is there too. */
DP_MUST_USE
enum dp_status dp_rocks_current_check(const char *directory, struct dp_error *err);

#endif
