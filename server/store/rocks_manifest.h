/* Rocks manifest: lists the tables (*.sst) that RocksDB's manifest names.
 * Promise   The list is the result of applying the records in order, up to the first one that is not intact.
 *           A record that RocksDB 7.8 does not write for a store of this build is DP_UNSUPPORTED, never
 *           skipped.
 * Format    Records (rocks_record.h), each a list of (tag, fields): RocksDB's db/version_edit.h.
 * Thread    Any; nothing is changed. */
#ifndef DP_STORE_ROCKS_MANIFEST_H
#define DP_STORE_ROCKS_MANIFEST_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_rocks_table {
    uint64_t number, bytes;
};

/* The path of the manifest that CURRENT names; false: CURRENT is missing or names no manifest. */
bool dp_rocks_manifest_path(const char *directory, char *path, size_t path_bytes);
/* *tables is ascending by number; the caller frees it with free(). DP_NOT_FOUND: there is no manifest. */
DP_MUST_USE
enum dp_status dp_rocks_manifest_tables(const char *directory, struct dp_rocks_table **tables, size_t *count,
                                        struct dp_error *err);

#endif
