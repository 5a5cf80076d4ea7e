/* Restore rows: the rows of a checkpoint's shards, written into the stores of the new shards, by range.
 *     new -> take(each old shard's store, once) ... -> end: every row is in the store of its range, durably -> free
 * A row is copied as it is, lsn included: the new shards' journals begin after all of the old ones (restore.c).
 * Promise   These rows end it with DP_CORRUPT: a damaged row, a row of an unknown table or outside of its
 *           shard's range, a row of a push after the checkpoint. Rows of ranges that no target has are
 *           passed over, and so are those of tables that are left out.
 * Thread    One, which waits for the stores.
 * Memory    Two portions of 4 MB for each target.
 * Failure   That of the stores. DP_FULL is one: nothing is tried again. free is allowed. */
#ifndef DP_RESTORE_RESTORE_ROWS_H
#define DP_RESTORE_RESTORE_ROWS_H

#include "common/model/range.h"
#include "common/model/table.h"
#include "server/store/store.h"

struct dp_restore_target {
    struct dp_range range;
    struct dp_store *store; /* the caller's; open, with no other user */
};

struct dp_restore_table {
    uint32_t id;
    struct dp_table_spec spec;
    bool left_out; /* its rows are passed over */
};

struct dp_restore_rows_options {
    const struct dp_restore_target *target; /* ascending by range; outlive the rows, as do the tables */
    uint32_t targets;
    const struct dp_restore_table *table; /* ascending by id */
    uint32_t tables;
    uint64_t lsn_max;
};

struct dp_restore_rows;

enum dp_status dp_restore_rows_new(const struct dp_restore_rows_options *options,
                                   struct dp_restore_rows **out, struct dp_error *err);
/* All rows of a store, which are of this range. */
enum dp_status dp_restore_rows_take(struct dp_restore_rows *rows, const struct dp_store *from,
                                    struct dp_range range, struct dp_error *err);
enum dp_status dp_restore_rows_end(struct dp_restore_rows *rows, struct dp_error *err);
/* How many were written. */
uint64_t dp_restore_rows_count(const struct dp_restore_rows *rows, uint32_t target, uint32_t table);
void dp_restore_rows_free(struct dp_restore_rows **rows); /* accepts NULL inside, leaves NULL */

#endif
