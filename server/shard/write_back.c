/* Draining: what a shard does before it closes.
 *     requests under way end -> dirty rows, table by table, ascending, in portions
 *     -> the closing marks                                                           (this order, always)
 * Why       Marks last: they say how many rows the store holds. Two portions are at the store at a time:
 *           one is written while the next is listed. */
#include "server/shard/shard_inner.h"

#include <inttypes.h>
#include <stdlib.h>

#define PORTION_BYTES ((size_t)16 << 20)
#define PORTIONS_MAX  2u

struct dp_dirty_row {
    uint64_t mixed;
    uint32_t row;
};

void dp_shard_write_back_free(struct dp_write_back *write_back)
{
    free(write_back->row);
    *write_back = (struct dp_write_back){.table = write_back->table};
}

void dp_shard_drain(struct dp_shard *shard)
{
    if (shard->drain == DP_DRAIN_NO)
        shard->drain = DP_DRAIN_REQUESTS;
}

enum dp_status dp_shard_drained(const struct dp_shard *shard, struct dp_error *err)
{
    if (shard->drain == DP_DRAIN_DONE)
        return DP_OK;
    if (shard->drain == DP_DRAIN_FAILED && shard->jobs == 0) {
        if (err)
            *err = shard->drain_error;
        return shard->drain_error.status;
    }
    return DP_AGAIN;
}

static void fail(struct dp_shard *shard, const struct dp_error *err)
{
    if (shard->drain == DP_DRAIN_FAILED)
        return;
    shard->drain = DP_DRAIN_FAILED;
    shard->drain_error = *err;
    (void)dp_wrap(&shard->drain_error, err->status, "shard %" PRIu32 " could not write its rows back",
                  shard->options.index);
}

static void list_row(void *context, uint64_t mixed, uint32_t row)
{
    struct dp_write_back *write_back = context;
    write_back->row[write_back->rows++] = (struct dp_dirty_row){.mixed = mixed, .row = row};
}

static int by_mixed(const void *a, const void *b)
{
    uint64_t x = ((const struct dp_dirty_row *)a)->mixed, y = ((const struct dp_dirty_row *)b)->mixed;
    return (x > y) - (x < y);
}

static enum dp_status list_dirty(struct dp_shard *shard, const struct dp_shard_table *table,
                                 struct dp_error *err)
{
    struct dp_write_back *write_back = &shard->write_back;
    uint64_t count = dp_row_cache_dirty_count(table->cache);
    write_back->row = malloc((count + 1) * sizeof write_back->row[0]);
    if (!write_back->row)
        return dp_fail(err, DP_NOMEM, "listing %" PRIu64 " rows of table '%s'", count, table->spec.name);
    dp_row_cache_each_dirty(table->cache, list_row, write_back);
    DP_ASSERT(write_back->rows == count);
    qsort(write_back->row, write_back->rows, sizeof write_back->row[0], by_mixed);
    return DP_OK;
}

/* One portion of the table at hand. Rows are lent to the store: nothing changes them any more. */
static enum dp_status submit_portion(struct dp_shard *shard, const struct dp_shard_table *table,
                                     struct dp_error *err)
{
    struct dp_write_back *write_back = &shard->write_back;
    size_t left = write_back->rows - write_back->next, most = PORTION_BYTES / table->cache->row_bytes + 1;
    uint32_t n = (uint32_t)(left < most ? left : most);
    size_t each = sizeof(struct dp_store_key) + sizeof(void *) + sizeof(uint32_t);
    char *memory = malloc(n * each);
    struct dp_shard_job *job = memory ? dp_shard_job_new(DP_JOB_WRITE_BACK, memory) : NULL;
    if (!job)
        return dp_fail(err, DP_NOMEM, "writing back %" PRIu32 " rows of table '%s'", n, table->spec.name);
    struct dp_store_key *keys = (void *)memory;
    void **rows = (void *)(memory + n * sizeof *keys);
    uint32_t *row_bytes = (void *)(memory + n * (sizeof *keys + sizeof *rows));
    for (uint32_t i = 0; i < n; i++) {
        const struct dp_dirty_row *row = &write_back->row[write_back->next + i];
        keys[i] = (struct dp_store_key){.table = table->id, .mixed = row->mixed};
        rows[i] = dp_row_cache_row(table->cache, row->row);
        row_bytes[i] = (uint32_t)table->cache->row_bytes;
    }
    job->store.kind = DP_STORE_WRITE;
    job->store.count = n;
    job->store.keys = keys;
    job->store.rows = rows;
    job->store.row_bytes = row_bytes;
    if (dp_shard_submit(shard, job) == DP_OK)
        write_back->next += n; /* else: the store is busy; next turn */
    return DP_OK;
}

static enum dp_status write_rows(struct dp_shard *shard, struct dp_error *err)
{
    struct dp_write_back *write_back = &shard->write_back;
    enum dp_status st = DP_OK;
    while (st == DP_OK && write_back->table < shard->tables && shard->jobs < PORTIONS_MAX) {
        const struct dp_shard_table *table = shard->table[write_back->table];
        if (!write_back->row)
            st = list_dirty(shard, table, err);
        if (st == DP_OK && write_back->next < write_back->rows) {
            uint32_t jobs = shard->jobs;
            st = submit_portion(shard, table, err);
            if (shard->jobs == jobs)
                break;
        }
        if (st == DP_OK && write_back->next == write_back->rows) {
            dp_shard_write_back_free(write_back);
            write_back->table++;
        }
    }
    return st;
}

void dp_shard_drain_turn(struct dp_shard *shard)
{
    struct dp_error err = {0};
    if (shard->drain == DP_DRAIN_REQUESTS && shard->waiting == 0 && shard->jobs == 0)
        shard->drain = DP_DRAIN_ROWS;
    if (shard->drain == DP_DRAIN_ROWS && write_rows(shard, &err) != DP_OK)
        fail(shard, &err);
    if (shard->drain == DP_DRAIN_ROWS && shard->write_back.table == shard->tables && shard->jobs == 0) {
        shard->drain = DP_DRAIN_MARKS;
        if (dp_shard_submit_last_marks(shard, &err) != DP_OK)
            fail(shard, &err);
    }
}

void dp_shard_written_back(struct dp_shard *shard, const struct dp_shard_job *job)
{
    if (job->store.status != DP_OK)
        fail(shard, &job->store.error);
    else if (job->kind == DP_JOB_WRITE_BACK)
        DP_COUNT(&shard->counters, rows_written_back, job->store.count);
    else if (shard->drain == DP_DRAIN_MARKS)
        shard->drain = DP_DRAIN_DONE;
}
