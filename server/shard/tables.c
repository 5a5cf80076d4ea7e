/* Creating tables, durably; dropping them (table_drop.h); the status. */
#include "server/durable/table_mark.h"
#include "server/shard/requests.h"
#include "server/shard/shard_state.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- creating */

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
    if (table && table->dropped) {
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_MARK, .subject = table->id},
                           "table '%s' is being dropped", table->spec.name);
        return DP_DONE_REFUSED;
    }
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

/* ---- dropping */

/* Memory of one job: a key of the store, two marks and their bytes. */
struct drop_memory {
    struct dp_store_key key;
    struct dp_store_mark mark[2];
    char table[DP_TABLE_MARK_BYTES], dropped[32];
};

/* Marks: "dropped/" put in place of the table's own, or (end) removed. Rows: of the table. */
static void fill(struct dp_store_job *job, struct drop_memory *m, const struct dp_table_spec *spec,
                 uint32_t id, int stage)
{
    int length = snprintf(m->dropped, sizeof m->dropped, DP_DROPPED_MARK_PREFIX "%08" PRIx32, id);
    m->key = (struct dp_store_key){.table = id};
    m->mark[0] = (struct dp_store_mark){.key = m->dropped, .key_bytes = (size_t)length};
    job->kind = stage == DP_DROP_ROWS ? DP_STORE_DROP : DP_STORE_MARKS;
    job->count = 1;
    job->keys = &m->key;
    job->marks = m->mark;
    if (stage != DP_DROP_WAITS)
        return;
    m->mark[0].value = spec->name;
    m->mark[0].value_bytes = strlen(spec->name);
    m->mark[1] = dp_table_mark_encode(spec, 0, m->table);
    m->mark[1].value = NULL;
    m->mark[1].value_bytes = 0;
    job->count = 2;
}

/* in the turns */

static void leave_memory(struct dp_shard *shard)
{
    struct dp_table_drop *drop = &shard->drop;
    dp_log(DP_LOG_INFO, "shard %" PRIu32 ": table '%s' is dropped", shard->base.index,
           drop->table->spec.name);
    DP_COUNT(&shard->base.counters, cache_rows, 0 - (uint64_t)drop->table->cache->rows);
    dp_cached_tables_remove(&shard->tables, drop->table->id);
    dp_cache_budget_set_changed(&shard->budget);
    *drop = (struct dp_table_drop){0};
}

static void job_done(void *context, struct dp_io_job *job)
{
    struct dp_shard *shard = context;
    struct dp_table_drop *drop = &shard->drop;
    DP_ASSERT(drop->table && drop->at_store);
    drop->at_store = false;
    drop->stalled = job->store.status != DP_OK;
    if (drop->stalled) {
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": table '%s' cannot be dropped now: %s", shard->base.index,
               drop->table->spec.name, job->store.error.text);
        drop->table->durable = drop->stage == DP_DROP_WAITS;
    } else if (drop->stage == DP_DROP_END) {
        leave_memory(shard);
    } else {
        drop->stage++;
    }
    dp_io_job_free(job);
}

/* From here on no cycle, read or count names the table. */
static bool is_settled(const struct dp_shard *shard)
{
    const struct dp_table_drop *drop = &shard->drop;
    const struct dp_row_cache *cache = drop->table->cache;
    return shard->write_back.cycle == DP_CYCLE_IDLE && shard->write_back.stored_lsn >= drop->lsn &&
           cache->dirty_rows == 0 && cache->due_rows == 0 && drop->table->reserved == 0 &&
           !shard->count.counting;
}

void dp_table_drop_turn(struct dp_shard *shard)
{
    struct dp_table_drop *drop = &shard->drop;
    if (!drop->table || drop->at_store || drop->stalled || shard->draining)
        return;
    if (drop->stage == DP_DROP_WAITS && !is_settled(shard)) {
        dp_write_back_wish(&shard->write_back);
        return;
    }
    struct drop_memory *memory = calloc(1, sizeof *memory);
    struct dp_io_job *job = memory ? dp_io_job_new(job_done, shard, memory) : NULL;
    if (!job)
        return; /* in a later turn */
    fill(&job->store, memory, &drop->table->spec, drop->table->id, drop->stage);
    if (dp_io_jobs_submit_or_free(&shard->jobs, job) != DP_OK)
        return;
    drop->at_store = true;
    drop->table->durable = false; /* no later cycle puts its mark */
}

/* requests */

/* Requests that were checked before are checked again, and refused: no lookup names the table any more. */
static bool check_again(struct dp_shard *shard, struct dp_waiting *waiting,
                        const struct dp_cached_table *table)
{
    bool names = false;
    for (uint32_t s = 0; s < waiting->lookup.sections; s++)
        names = names || waiting->lookup.section[s].table == table;
    if (names) {
        dp_cache_budget_forget(&shard->budget, &waiting->lookup);
        waiting->lookup.sections = 0;
        waiting->checked = false;
    }
    return names;
}

static void check_all_again(struct dp_shard *shard, const struct dp_cached_table *table)
{
    for (uint32_t i = 0; i < dp_sessions_count(shard->sessions); i++) {
        struct dp_session *session = dp_sessions_at(shard->sessions, i);
        for (struct dp_waiting *waiting = session->first; waiting; waiting = waiting->next)
            /* (One whose own read is under way is woken by its end.) */
            if (check_again(shard, waiting, table) && waiting == session->first && session->parked &&
                !waiting->lookup.read)
                dp_schedule_wake(&shard->schedule, session);
    }
    for (struct dp_waiting *held = shard->held.first; held; held = held->next)
        (void)check_again(shard, held, table);
}

static enum dp_status may_drop(const struct dp_shard *shard, const struct dp_cached_table *table,
                               struct dp_error *err)
{
    const char *name = table->spec.name;
    const struct dp_wait wait = {.reason = DP_WAIT_MARK, .subject = table->id};
    if (shard->options.read_only)
        return dp_fail(err, DP_UNSUPPORTED,
                       "shard %" PRIu32
                       " serves its store read-only: it drops no table; start its server without --read-only",
                       shard->base.index);
    if (!shard->journaling.journal)
        return dp_fail(
            err, DP_UNSUPPORTED,
            "table '%s' cannot be dropped: shard %" PRIu32
            " has no journal (durability none); start its server with durability process or machine",
            name, shard->base.index);
    if (!table->durable)
        return dp_fail_wait(err, DP_AGAIN, wait, "table '%s' is being created", name);
    if (shard->drop.table)
        return dp_fail_wait(err, DP_AGAIN, wait, "table '%s' is being dropped first",
                            shard->drop.table->spec.name);
    if (dp_step_buffer_floor(&shard->kept) != UINT64_MAX)
        return dp_fail(err, DP_IN_USE,
                       "table '%s' is not dropped: a step of synchronous run %" PRIu32
                       " is open on shard %" PRIu32 "; drop it when the run has ended",
                       name, shard->steps.view.run, shard->base.index);
    if (dp_cut_requests_is_under_way(&shard->cut_requests))
        return dp_fail_wait(err, DP_AGAIN, wait,
                            "table '%s' waits to be dropped: shard %" PRIu32 " takes part in a checkpoint",
                            name, shard->base.index);
    return DP_OK;
}

void dp_shard_drop_table(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err)
{
    struct dp_table_drop *drop = &shard->drop;
    const char *name = waiting->request.name;
    struct dp_cached_table *table = dp_cached_tables_find(&shard->tables, dp_table_id(name));
    if (!table || strcmp(table->spec.name, name) != 0) {
        struct dp_asker to = dp_asker_of(waiting);
        dp_replies_send(&shard->replies, &to, &(struct dp_reply){.kind = DP_REPLY_NONE}, NULL, 0);
        return;
    }
    if (drop->table != table && may_drop(shard, table, err) != DP_OK)
        return;
    if (drop->table != table) {
        *drop = (struct dp_table_drop){.table = table, .lsn = shard->journaling.lsn};
        table->dropped = true;
        shard->tables.dropped++;
        check_all_again(shard, table);
    }
    drop->stalled = false;
    const struct dp_error *why = dp_write_back_refuses(&shard->write_back);
    (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_MARK, .subject = table->id},
                       "table '%s' is being dropped%s%s", name, why ? ": " : "", why ? why->text : "");
}

/* at the opening */

struct interrupted {
    uint32_t count;
    uint32_t id[DP_CACHED_TABLES_MAX];
};

static enum dp_status visit_dropped(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct interrupted *all = context;
    char key[32] = "";
    bool fits = mark->key_bytes < sizeof key && all->count < DP_CACHED_TABLES_MAX;
    if (fits)
        memcpy(key, mark->key, mark->key_bytes);
    if (!fits || sscanf(key, DP_DROPPED_MARK_PREFIX "%8" SCNx32, &all->id[all->count]) != 1)
        return dp_fail(err, DP_CORRUPT, "the store's mark '%.*s' names no table", (int)mark->key_bytes,
                       (const char *)mark->key);
    all->count++;
    return DP_OK;
}

enum dp_status dp_table_drop_recover(const struct dp_store *store, struct dp_error *err)
{
    struct interrupted all = {0};
    enum dp_status st = store->visit_marks(store->self, DP_DROPPED_MARK_PREFIX,
                                           strlen(DP_DROPPED_MARK_PREFIX), visit_dropped, &all, err);
    for (uint32_t i = 0; i < all.count && st == DP_OK; i++)
        for (int stage = DP_DROP_ROWS; stage <= DP_DROP_END && st == DP_OK; stage++) {
            struct drop_memory memory = {0};
            struct dp_store_job job = {0};
            fill(&job, &memory, NULL, all.id[i], stage);
            st = dp_store_do(store, &job, err);
        }
    return st;
}

/* ---- the status */

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

void dp_shard_status(struct dp_shard *shard, const struct dp_waiting *waiting)
{
    struct dp_table_status tables[DP_CACHED_TABLES_MAX];
    struct dp_counter counters[DP_COUNTERS_MAX];
    DP_COUNT_SET(&shard->base.counters, rows_dirty, dp_cached_tables_dirty_rows(&shard->tables));
    for (uint32_t i = 0; i < shard->tables.count; i++)
        tables[i] = (struct dp_table_status){.spec = shard->tables.table[i]->spec,
                                             .rows = dp_cached_table_rows(shard->tables.table[i]),
                                             .bytes = shard->tables.table[i]->cache->bytes};
    struct dp_reply reply = {.kind = DP_REPLY_STATUS,
                             .report = {.shard = shard->base.index,
                                        .shards = shard->base.shards,
                                        .store = shard->options.store_id,
                                        .tables = shard->tables.count,
                                        .counters = dp_shard_counters(shard, counters),
                                        .histograms = DP_MEASURES,
                                        .histogram = shard->histogram,
                                        .table = tables,
                                        .counter = counters}};
    struct dp_asker to = dp_asker_of(waiting);
    dp_replies_send(&shard->replies, &to, &reply, NULL, 0);
}
