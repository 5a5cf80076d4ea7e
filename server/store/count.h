/* Count: how many rows each table has, counted in slices over one moment of the database. The room's own.
 *     begin (the moment) -> step, step, ... (done) -> end
 * Thread    One at a time; not bound to one.
 * Memory    end frees what begin made; of one that was not begun: no effect. */
#ifndef DP_STORE_COUNT_H
#define DP_STORE_COUNT_H

#include "server/store/rocks_db.h"
#include "server/store/store.h"

struct dp_count {
    rocksdb_iterator_t *at; /* NULL: not begun */
    rocksdb_readoptions_t *read;
    bool started;
};

/* Rows that get in from now on are not counted. Cheap: no file is read. */
void dp_count_begin(const struct dp_rocks_db *db, struct dp_count *count);
/* Counts at most `most` rows more into job->counts. DP_CORRUPT: a row of a table that the job does not name. */
DP_MUST_USE
enum dp_status dp_count_step(const struct dp_rocks_db *db, struct dp_count *count, struct dp_store_job *job,
                             uint32_t most, bool *done, struct dp_error *err);
void dp_count_end(struct dp_count *count);

#endif
