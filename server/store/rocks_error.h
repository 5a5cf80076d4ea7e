/* Rocks error: RocksDB's texts turned into statuses. The room's own.
 * Thread    Any.
 * Memory    RocksDB's text is freed, and *text set to NULL. */
#ifndef DP_STORE_ROCKS_ERROR_H
#define DP_STORE_ROCKS_ERROR_H

#include "common/base/status.h"

/* DP_OK when *text is NULL, else the status that the text stands for, with `directory` and `doing` in front
 * of it and, where there is one, a remedy behind. */
DP_MUST_USE
enum dp_status dp_rocks_error_take(char **text, const char *directory, const char *doing,
                                   struct dp_error *err);

#endif
