/* Rocks text: finds the kind of damage in RocksDB's error texts, since its C API gives no other sign.
 * Private to the room.
 * Thread    Any. */
#ifndef DP_STORE_REPAIR_ROCKS_TEXT_H
#define DP_STORE_REPAIR_ROCKS_TEXT_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether an error of rocks_error.h names one of the store's files, or one of its tables. For some kinds of
 * damage RocksDB names none. */
bool dp_rocks_text_names_file(const struct dp_error *err);
bool dp_rocks_text_names_table(const struct dp_error *err);
/* Whether RocksDB's own text names a table; *number: the one in the last name. */
bool dp_rocks_text_table(const char *text, uint64_t *number);

#endif
