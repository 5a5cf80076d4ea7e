#include "server/store/rocks_batch.h"

#include "server/store/marks.h"
#include "server/store/rows.h"
#include "server/store/space.h"

#define BATCH_BYTES ((uint64_t)32 << 20)

static uint64_t bytes_of(const struct dp_store_job *job)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->count; i++)
        bytes += DP_KEY_BYTES + job->row_bytes[i];
    return bytes;
}

bool dp_rocks_batch_join(struct dp_rocks_batch *batch, const struct dp_store_job *job)
{
    const struct dp_store_job *last = batch->count > 0 ? batch->job[batch->count - 1] : NULL;
    uint64_t bytes = job->kind == DP_STORE_WRITE ? bytes_of(job) : 0;
    if (last &&
        (job->kind != DP_STORE_WRITE || last->kind != DP_STORE_WRITE || job->count == 0 || last->count == 0 ||
         batch->count == DP_ROCKS_BATCH_MAX || batch->bytes + bytes > BATCH_BYTES ||
         dp_key_compare(last->keys[last->count - 1], job->keys[0]) >= 0))
        return false;
    batch->job[batch->count++] = job;
    batch->bytes += bytes;
    return true;
}

static enum dp_status write_rows(struct dp_rocks_db *db, const struct dp_rocks_batch *batch,
                                 struct dp_error *err)
{
    enum dp_status st = dp_space_check(db->directory, batch->bytes + batch->bytes / 8, DP_SPACE_ROWS, err);
    return st == DP_OK ? dp_rows_write(db, batch->job, batch->count, err) : st;
}

static enum dp_status put_marks(struct dp_rocks_db *db, const struct dp_store_job *job, struct dp_error *err)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < job->count; i++)
        bytes += job->marks[i].key_bytes + job->marks[i].value_bytes;
    /* The file is written as a new one next to the old one. */
    bytes += dp_marks_file_bytes(db->marks);
    enum dp_status st = dp_space_check(db->directory, bytes, DP_SPACE_MARKS, err);
    return st == DP_OK ? dp_marks_put(db, job->marks, job->count, err) : st;
}

enum dp_status dp_rocks_batch_write(struct dp_rocks_db *db, const struct dp_rocks_batch *batch,
                                    struct dp_error *err)
{
    return batch->job[0]->kind == DP_STORE_WRITE ? write_rows(db, batch, err)
                                                 : put_marks(db, batch->job[0], err);
}
