/* Count: counts the rows of each table in slices, as of one moment of the database. Private to the room.
 *     begin (the moment) -> step, step, ... (done) -> end
 * Thread    One at a time; it may change between calls.
 * Memory    end frees what begin allocated; it has no effect without begin. */
#ifndef DP_STORE_COUNT_H
#define DP_STORE_COUNT_H

#include "server/store/rocks_db.h"
#include "server/store/store.h"

struct dp_count {
    rocksdb_iterator_t *at; /* NULL: not begun */
    rocksdb_readoptions_t *read;
    bool started;
};

/* Rows that are written later are not counted. Cheap: no file is read. */
void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count);
/* Counts at most `most` more rows into job->counts. DP_CORRUPT: a row belongs to a table that the job does
 * not name. */
DP_MUST_USE
enum dp_status dp_count_step(const struct dp_rocks_db *db, struct dp_count *count, struct dp_store_job *job,
                             uint32_t most, bool *done, struct dp_error *err);
void dp_count_end(struct dp_count *count);

#endif
