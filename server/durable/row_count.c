#include "server/durable/row_count.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

void dp_row_count_say(struct dp_row_count *count)
{
    DP_COUNT_SET(&count->base->counters, tables_uncounted, dp_cached_tables_uncounted(count->tables));
}

void dp_row_count_forget(struct dp_row_count *count)
{
    DP_ASSERT(!count->counting);
    for (uint32_t i = 0; i < count->tables->count; i++)
        dp_cached_table_set_uncounted(count->tables->table[i]);
}

static void counted(void *context, struct dp_io_job *job)
{
    struct dp_row_count *count = context;
    DP_ASSERT(count->counting == job);
    count->counting = NULL;
    if (job->store.status != DP_OK) {
        count->failed = true;
        /* The shard goes on: it asks the store for keys that the cache does not know. */
        if (job->store.status == DP_CORRUPT)
            dp_damage_found(count->base, &job->store.error);
        else if (job->store.status != DP_STOPPING)
            dp_log(DP_LOG_WARN, "shard %" PRIu32 ": cannot count its rows: %s", count->base->index,
                   job->store.error.text);
    }
    for (uint32_t i = 0; job->store.status == DP_OK && i < job->store.count; i++) {
        struct dp_cached_table *table = dp_cached_tables_find(count->tables, job->store.keys[i].table);
        DP_ASSERT(table);
        if (!table->counted)
            dp_cached_table_set_counted(table, job->store.counts[i]);
    }
    dp_row_count_say(count);
    dp_io_job_free(job);
}

enum dp_status dp_row_count_start(struct dp_row_count *count, struct dp_error *err)
{
    uint32_t n = count->tables->count;
    struct dp_store_key *keys = calloc(n + 1u, sizeof *keys + sizeof(uint64_t));
    struct dp_io_job *job = keys ? dp_io_job_new(counted, count, keys) : NULL;
    DP_ASSERT(!count->counting);
    if (!job)
        return dp_fail(err, DP_NOMEM, "no memory to count rows");
    for (uint32_t i = 0; i < n; i++)
        keys[i].table = count->tables->table[i]->id;
    job->store.kind = DP_STORE_COUNT;
    job->store.count = n;
    job->store.keys = keys;
    job->store.counts = (uint64_t *)(void *)(keys + n + 1);
    enum dp_status st = dp_io_jobs_submit_or_free(count->jobs, job);
    if (st != DP_OK)
        return dp_fail(err, st, "cannot start to count rows");
    count->counting = job;
    return DP_OK;
}

enum dp_status dp_row_count_start_if_due(struct dp_row_count *count, struct dp_error *err)
{
    bool due = !count->counting && !count->failed && dp_cached_tables_uncounted(count->tables) > 0;
    return due ? dp_row_count_start(count, err) : DP_OK;
}

void dp_row_count_stop(struct dp_row_count *count)
{
    if (count->counting)
        atomic_store(&count->counting->store.cancelled, true);
}
