/* Rocks batch: jobs that are written together. A batch is one marks job, or several write jobs
 * whose keys ascend from one to the next: these share one file, because each file costs its own syncs.
 * Thread    The store's writer.
 * Memory    The jobs are borrowed until they are written.
 * Failure   DP_FULL means that nothing was changed. */
#ifndef DP_STORE_ROCKS_BATCH_H
#define DP_STORE_ROCKS_BATCH_H

#include "server/store/rocks_db.h"
#include "server/store/store.h"

#define DP_ROCKS_BATCH_MAX 16u

struct dp_rocks_batch {
    const struct dp_store_job *job[DP_ROCKS_BATCH_MAX];
    uint32_t count;
    uint64_t bytes; /* of the rows */
};

/* Adds the job; false: it cannot join, and must wait until this batch is written. */
bool dp_rocks_batch_join(struct dp_rocks_batch *batch, const struct dp_store_job *job);
/* Writes a batch of rows or marks. */
enum dp_status dp_rocks_batch_write(struct dp_rocks_db *db, const struct dp_rocks_batch *batch,
                                    struct dp_error *err);

#endif
