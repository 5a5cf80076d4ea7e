/* Creating tables, durably, and the status. */
#include "server/durable/table_mark.h"
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>
#include <stdlib.h>

static void table_stored(void *context, struct dp_io_job *job)
{
    struct dp_shard *shard = context;
    struct dp_cached_table *table = dp_cached_tables_find(&shard->tables, job->table);
    DP_ASSERT(table && !table->durable);
    if (job->store.status == DP_OK)
        table->durable = true;
    else
        dp_cached_tables_remove(&shard->tables, job->table);
    struct dp_session *session = dp_sessions_find(shard->sessions, job->session);
    DP_ASSERT(session && session->waits == DP_WAIT_MARK && session->first->request.id == job->request);
    if (job->store.status != DP_OK)
        session->first->broken = job->store.error;
    dp_schedule_wake(&shard->schedule, session);
    dp_io_job_free(job);
}

/* Tried again when its mark is durable: the table is found then. */
enum dp_done dp_shard_create_table(struct dp_shard *shard, struct dp_waiting *waiting,
                                   struct dp_shard_answer *answer, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_cached_table *table = dp_cached_tables_find(&shard->tables, dp_table_id(request->spec.name));
    if (table) {
        if (dp_table_same(&table->spec, &request->spec, err) != DP_OK)
            return DP_DONE_REFUSED;
        if (table->durable) {
            answer->reply = (struct dp_reply){.kind = DP_REPLY_TABLE_CREATED,
                                              .existed = table->creator != request->session};
            answer->frames = 0;
            return DP_DONE_ANSWER;
        }
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_MARK, .subject = table->id},
                           "table '%s' is being created", table->spec.name);
        return DP_DONE_REFUSED;
    }
    if (shard->tables.count >= DP_CACHED_TABLES_MAX) {
        (void)dp_fail(
            err, DP_UNSUPPORTED,
            "table '%s' would be one more than the %u that a shard can have: one table can serve many "
            "features of one width, if a key is a hash of feature and id; 'downpour restore --without TABLE' "
            "removes a table",
            request->spec.name, DP_CACHED_TABLES_MAX);
        return DP_DONE_REFUSED;
    }
    if (dp_cached_tables_add(&shard->tables, &request->spec, 0, shard->options.salt, shard->base.range,
                             &table, err) != DP_OK)
        return DP_DONE_REFUSED;
    table->creator = request->session;
    char *memory = calloc(1, sizeof(struct dp_store_mark) + DP_TABLE_MARK_BYTES);
    struct dp_io_job *job = memory ? dp_io_job_new(table_stored, shard, memory) : NULL;
    if (job) {
        struct dp_store_mark *mark = (struct dp_store_mark *)(void *)memory;
        *mark = dp_table_mark_encode(&table->spec, 0, memory + sizeof *mark);
        job->store.kind = DP_STORE_MARKS;
        job->store.count = 1;
        job->store.marks = mark;
        job->table = table->id;
        job->session = request->session;
        job->request = request->id;
        if (dp_io_jobs_submit_or_free(&shard->jobs, job) == DP_OK) {
            waiting->waits_for = DP_WAIT_MARK;
            return DP_DONE_WAIT;
        }
    }
    dp_cached_tables_remove(&shard->tables, table->id);
    (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                       "shard %" PRIu32 ": its store is busy", shard->base.index);
    return DP_DONE_REFUSED;
}

uint32_t dp_shard_counters(const struct dp_shard *shard, struct dp_counter counters[DP_COUNTERS_MAX])
{
    const struct dp_counters *own = &shard->base.counters;
    struct dp_store_stats stats = {0};
    uint32_t n = 0;
    shard->jobs.store->stats(shard->jobs.store->self, &stats);
#define OWN(counter, kind, help)                                                                             \
    counters[n++] = (struct dp_counter){#counter, atomic_load_explicit(&own->counter, memory_order_relaxed)};
    DP_COUNTER_MAP(OWN)
#undef OWN
#define STORE(counter, kind, help) counters[n++] = (struct dp_counter){"store_" #counter, stats.counter};
    DP_STORE_COUNTER_MAP(STORE)
#undef STORE
    return n;
}

void dp_shard_observe(const struct dp_shard *shard, struct dp_shard_observed *out)
{
    out->counters = dp_shard_counters(shard, out->counter);
    out->histograms = DP_MEASURES;
    for (uint32_t i = 0; i < DP_MEASURES; i++)
        dp_histogram_copy(&shard->histogram[i], &out->histogram[i]);
    for (uint32_t i = 0; i < DP_REFUSALS; i++)
        out->refusals[i] = atomic_load_explicit(&shard->base.refusals[i], memory_order_relaxed);
}

void dp_shard_status(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    struct dp_table_status tables[DP_STATUS_TABLES_MAX];
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t shown = shard->tables.count < DP_STATUS_TABLES_MAX ? shard->tables.count : DP_STATUS_TABLES_MAX;
    for (uint32_t i = 0; i < shown; i++)
        tables[i] = (struct dp_table_status){.spec = shard->tables.table[i]->spec,
                                             .rows = dp_cached_table_rows(shard->tables.table[i]),
                                             .bytes = shard->tables.table[i]->cache->bytes};
    struct dp_reply reply = {.kind = DP_REPLY_STATUS,
                             .report = {.shard = shard->base.index,
                                        .shards = shard->base.shards,
                                        .store = shard->options.store_id,
                                        .tables = shown,
                                        .counters = dp_shard_counters(shard, counters),
                                        .histograms = DP_MEASURES,
                                        .histogram = shard->histogram,
                                        .table = tables,
                                        .counter = counters}};
    struct dp_asker to = dp_asker_of(waiting);
    dp_replies_send(&shard->replies, &to, &reply, NULL, 0);
}
