/* Rocks error: turns RocksDB's error texts into statuses. Private to the room.
 * Thread    Any.
 * Memory    RocksDB's text is freed and *text set to NULL. */
#ifndef DP_STORE_ROCKS_ERROR_H
#define DP_STORE_ROCKS_ERROR_H

#include "common/base/status.h"

#include <rocksdb/c.h>

/* DP_OK if *text is NULL. Otherwise returns the status that the text stands for; the error has `directory`
 * and `doing` in front of the text and, if there is one, a remedy after it. */
enum dp_status dp_rocks_error_take(char **text, const char *directory, const char *doing,
                                   struct dp_error *err);
/* The same of an iterator: one that failed looks like one that ended. */
enum dp_status dp_rocks_error_of(const rocksdb_iterator_t *at, const char *directory, const char *doing,
                                 struct dp_error *err);

#endif
