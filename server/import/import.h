/* Import: a checkpoint made of rows from another program, not of a running cluster.
 *     lock, making-<order> -> a store of one shard in it, written as a restore writes one -> linked -> the link's files into the pool ->
 *     ids (none), register (empty), cluster file -> manifest -> the store goes -> published, verified
 * Promise   As server/checkpoint/making.h: until the manifest is in place nothing counts, and from then on
 *           all of it does. Every file was read back with its checksum. The checkpoint has no run: a
 *           training on it begins with its first push.
 * Rows      Each gets lsn 1; journals of restored stores begin after it.
 * Thread    One, which waits for the store.
 * Memory    16 bytes for each row of the largest table, and two portions of 4 MB.
 * Failure   DP_FULL, DP_IO, DP_NOMEM, DP_ARGUMENT (a place where no checkpoint may lie), DP_IN_USE, and the
 *           statuses of `fill` and `unchanged`. Its files are removed. */
#ifndef DP_IMPORT_IMPORT_H
#define DP_IMPORT_IMPORT_H

#include "common/config/side_files.h"
#include "common/model/table.h"

#include <stdbool.h>

struct dp_import_table {
    struct dp_table_spec spec;
    uint64_t rows; /* index 0 .. rows - 1 */
    const void *of;
    /* The user's key, not mixed. No two are equal. */
    uint64_t (*key)(const void *of, uint64_t index);
    /* row: as it would be before its first push (dp_init_row). *stored: set to false if it is not stored. */
    enum dp_status (*fill)(const void *of, uint64_t index, void *row, bool *stored, struct dp_error *err);
    /* Asked after the last row: whether the filled rows are still the checked ones. NULL: it is. */
    enum dp_status (*unchanged)(const void *of, struct dp_error *err);
};

struct dp_import_options {
    const char *directory; /* of checkpoints, absolute; made if it is missing */
    const struct dp_import_table *table;
    uint32_t tables;
    uint64_t cluster;
    const char *cluster_name;
    const void *cluster_file; /* its bytes */
    size_t cluster_file_bytes;
    const char *side[DP_SIDE_FILES]; /* bytes of the side files; NULL: none */
    size_t side_bytes[DP_SIDE_FILES];
};

struct dp_imported {
    uint32_t number; /* of the checkpoint */
    uint64_t rows, bytes;
};

enum dp_status dp_import(const struct dp_import_options *options, struct dp_imported *out,
                         struct dp_error *err);

#endif
