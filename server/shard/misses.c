/* Finding rows, and reading those that only the store has.
 *     find -> (some unknown: park the request, one read for all of them) -> read -> found: into the cache,
 *     else: ABSENT -> every parked request tries again
 * Why   One read a key is under way at a time: a key that is being read is marked READING, and whoever needs
 *       it waits for the same read. A row that is in the cache is never overwritten by a read. */
#include "server/shard/shard_inner.h"

#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

struct dp_shard_job *dp_shard_job_new(enum dp_shard_job_kind kind, void *memory)
{
    struct dp_shard_job *job = calloc(1, sizeof *job);
    if (!job) {
        free(memory);
        return NULL;
    }
    job->kind = kind;
    job->memory = memory;
    job->store.owner = job;
    return job;
}

void dp_shard_job_free(struct dp_shard_job *job)
{
    if (!job)
        return;
    free(job->memory);
    free(job);
}

enum dp_status dp_shard_try_submit(struct dp_shard *shard, struct dp_shard_job *job)
{
    enum dp_status st = shard->options.store->submit(shard->options.store->self, &job->store);
    shard->jobs += st == DP_OK;
    return st;
}

enum dp_status dp_shard_submit(struct dp_shard *shard, struct dp_shard_job *job)
{
    enum dp_status st = dp_shard_try_submit(shard, job);
    if (st != DP_OK)
        dp_shard_job_free(job);
    return st;
}

/* Marks the keys of one section that must be read; counts them. */
static enum dp_status mark_unknown(struct dp_shard_table *table, const struct dp_section *section,
                                   const uint32_t *rows, uint32_t *unknown)
{
    for (uint32_t i = 0; i < section->rows; i++)
        if (rows[i] == DP_ROW_UNKNOWN || rows[i] == DP_ROW_FORGOTTEN) {
            uint64_t mixed = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
            enum dp_status st = dp_row_cache_set_state(table->cache, mixed, DP_ROW_READING);
            if (st != DP_OK)
                return st;
            (*unknown)++;
        }
    return DP_OK;
}

/* Of a key that has an entry: that cannot fail. */
static void restate(struct dp_row_cache *cache, uint64_t mixed, uint32_t state)
{
    enum dp_status st = dp_row_cache_set_state(cache, mixed, state);
    DP_ASSERT(st == DP_OK);
}

/* Takes the first `unknown` marks of a request back: no read will come for them. */
static void forget_reading(const struct dp_request *request, struct dp_shard_table **tables,
                           const uint32_t *rows, uint32_t unknown)
{
    for (uint32_t s = 0; s < request->sections && unknown > 0; rows += request->section[s++].rows)
        for (uint32_t i = 0; i < request->section[s].rows && unknown > 0; i++)
            if (dp_shard_must_ask(tables[s]) && (rows[i] == DP_ROW_UNKNOWN || rows[i] == DP_ROW_FORGOTTEN)) {
                uint64_t mixed = dp_load_u64le((const char *)request->section[s].keys + (size_t)i * 8);
                restate(tables[s]->cache, mixed, DP_ROW_FORGOTTEN);
                unknown--;
            }
}

struct read_memory {
    struct dp_store_key *keys;
    void **rows;
    uint32_t *row_bytes;
    bool *found;
    char *bytes;
};

/* One block for all the arrays of a read of n rows of `bytes` bytes together. */
static void *read_memory(uint32_t n, size_t bytes, struct read_memory *out)
{
    size_t fixed = n * (sizeof *out->keys + sizeof *out->rows + sizeof *out->row_bytes);
    char *block = malloc(fixed + bytes + n);
    if (!block)
        return NULL;
    out->keys = (void *)block;
    out->rows = (void *)(block + n * sizeof *out->keys);
    out->row_bytes = (void *)(block + n * (sizeof *out->keys + sizeof *out->rows));
    out->bytes = block + fixed;
    out->found = (void *)(block + fixed + bytes);
    return block;
}

/* Reads the unknown keys of a request. The store wants them ascending by (table, mixed): sections are put in
 * the order of their tables' ids, and within one they ascend already. */
static struct dp_shard_job *read_job(const struct dp_request *request, struct dp_shard_table **tables,
                                     const uint32_t *rows, uint32_t unknown)
{
    size_t bytes = 0, starts[DP_SECTIONS_MAX], at = 0;
    uint32_t order[DP_SECTIONS_MAX];
    for (uint32_t s = 0; s < request->sections; at += request->section[s++].rows) {
        uint32_t place = s;
        for (; place > 0 && tables[order[place - 1]]->id > tables[s]->id; place--)
            order[place] = order[place - 1];
        order[place] = s;
        starts[s] = at;
        bytes += (size_t)unknown * dp_row_bytes(&tables[s]->spec); /* more than enough */
    }
    struct read_memory m;
    struct dp_shard_job *job = dp_shard_job_new(DP_JOB_MISSES, NULL);
    if (!job || !(job->memory = read_memory(unknown, bytes, &m))) {
        dp_shard_job_free(job);
        return NULL;
    }
    uint32_t n = 0;
    for (uint32_t o = 0; o < request->sections; o++) {
        uint32_t s = order[o];
        uint32_t row_bytes = (uint32_t)dp_row_bytes(&tables[s]->spec);
        for (uint32_t i = 0; i < request->section[s].rows && dp_shard_must_ask(tables[s]); i++) {
            uint32_t row = rows[starts[s] + i];
            if (row != DP_ROW_UNKNOWN && row != DP_ROW_FORGOTTEN)
                continue;
            m.keys[n] = (struct dp_store_key){
                .table = tables[s]->id,
                .mixed = dp_load_u64le((const char *)request->section[s].keys + (size_t)i * 8)};
            m.rows[n] = m.bytes;
            m.bytes += row_bytes;
            m.row_bytes[n++] = row_bytes;
        }
    }
    DP_ASSERT(n == unknown);
    job->store.kind = DP_STORE_READ;
    job->store.count = n;
    job->store.keys = m.keys;
    job->store.rows = m.rows;
    job->store.row_bytes = m.row_bytes;
    job->store.found = m.found;
    job->session = request->session;
    job->request = request->id;
    return job;
}

static enum dp_status check_section(const struct dp_shard *shard, const struct dp_section *section,
                                    struct dp_shard_table **out, struct dp_error *err)
{
    struct dp_shard_table *table = dp_shard_find_table(shard, section->table);
    if (!table || !table->durable)
        return dp_fail(err, table ? DP_AGAIN : DP_NOT_FOUND,
                       "table %08" PRIx32 " is not on shard %" PRIu32 ": create it first", section->table,
                       shard->options.index);
    if (section->rows > 0) {
        uint64_t first = dp_load_u64le(section->keys);
        uint64_t last = dp_load_u64le((const char *)section->keys + (size_t)(section->rows - 1) * 8);
        if (!dp_range_has(shard->range, first) || !dp_range_has(shard->range, last))
            return dp_fail(err, DP_INVALID,
                           "table '%s': mixed keys %016" PRIx64 " to %016" PRIx64
                           " are not all in shard %" PRIu32 "'s range, %016" PRIx64 " to %016" PRIx64,
                           table->spec.name, first, last, shard->options.index, shard->range.first,
                           shard->range.last);
    }
    *out = table;
    return DP_OK;
}

static enum dp_status make_room(struct dp_shard *shard, const struct dp_request *request,
                                struct dp_error *err)
{
    size_t rows = 0;
    for (uint32_t s = 0; s < request->sections; s++)
        rows += request->section[s].rows;
    if (rows <= shard->rows_room)
        return DP_OK;
    uint32_t *more = realloc(shard->rows, rows * sizeof more[0]);
    if (!more)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": a request of %zu rows", shard->options.index, rows);
    shard->rows = more;
    shard->rows_room = rows;
    return DP_OK;
}

enum dp_status dp_shard_check_sections(const struct dp_shard *shard, const struct dp_request *request,
                                       struct dp_shard_table **tables, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; s < request->sections && st == DP_OK; s++) {
        st = check_section(shard, &request->section[s], &tables[s], err);
        for (uint32_t before = 0; before < s && st == DP_OK; before++)
            if (tables[before] == tables[s])
                st = dp_fail(err, DP_INVALID, "table '%s' stands in two sections of one request",
                             tables[s]->spec.name);
    }
    return st;
}

enum dp_status dp_shard_find_rows(struct dp_shard *shard, const struct dp_waiting *waiting,
                                  struct dp_shard_table **tables, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    enum dp_status st = make_room(shard, request, err);
    if (st != DP_OK)
        return st;
    uint32_t unknown = 0;
    bool reading = false;
    uint32_t *rows = shard->rows;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows) {
        const struct dp_section *section = &request->section[s];
        dp_row_cache_find_many(tables[s]->cache, section->keys, section->rows, rows);
        if (!dp_shard_must_ask(tables[s]))
            continue; /* what the cache does not know has no row anywhere */
        for (uint32_t i = 0; i < section->rows; i++)
            reading = reading || rows[i] == DP_ROW_READING;
        st = mark_unknown(tables[s], section, rows, &unknown);
        if (st != DP_OK)
            break;
    }
    if (st == DP_OK && unknown == 0)
        return reading ? DP_AGAIN : DP_OK;
    struct dp_shard_job *job = st == DP_OK ? read_job(request, tables, shard->rows, unknown) : NULL;
    if (!job)
        st = dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": reading %" PRIu32 " rows", shard->options.index,
                     unknown);
    else if (dp_shard_submit(shard, job) != DP_OK)
        st = dp_fail(err, DP_AGAIN, "shard %" PRIu32 ": its store is busy", shard->options.index);
    else
        return DP_AGAIN;
    forget_reading(request, tables, shard->rows, unknown);
    return st;
}

/* Takes one row of a finished read in. */
static void take_row(struct dp_shard *shard, struct dp_shard_job *job, uint32_t i)
{
    const struct dp_store_key *key = &job->store.keys[i];
    struct dp_shard_table *table = dp_shard_find_table(shard, key->table);
    DP_ASSERT(table);
    if (dp_row_is_number(dp_row_cache_find(table->cache, key->mixed)))
        return;
    uint32_t row;
    if (job->store.status == DP_OK && job->store.found[i] &&
        dp_row_format(job->store.rows[i]) != DP_ROW_FORMAT)
        job->store.status = dp_fail(
            &job->store.error, DP_CORRUPT,
            "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32 ", this program knows %u",
            table->spec.name, key->mixed, dp_row_format(job->store.rows[i]), DP_ROW_FORMAT);
    else if (job->store.status == DP_OK && job->store.found[i] && !dp_shard_must_ask(table))
        job->store.status = dp_fail(&job->store.error, DP_CORRUPT,
                                    "table '%s': the store holds more rows than the %" PRIu64 " of its mark",
                                    table->spec.name, table->stored);
    if (job->store.status != DP_OK) {
        restate(table->cache, key->mixed, DP_ROW_FORGOTTEN);
    } else if (!job->store.found[i]) {
        restate(table->cache, key->mixed, DP_ROW_ABSENT);
    } else if (dp_row_cache_insert(table->cache, key->mixed, &row) == DP_OK) {
        memcpy(dp_row_cache_row(table->cache, row), job->store.rows[i], table->cache->row_bytes);
        table->away--;
        DP_COUNT(&shard->counters, rows_read, 1);
    } else {
        restate(table->cache, key->mixed, DP_ROW_FORGOTTEN);
        job->store.status =
            dp_fail(&job->store.error, DP_NOMEM, "shard %" PRIu32 ": rows read", shard->options.index);
    }
}

void dp_shard_misses_read(struct dp_shard *shard, struct dp_shard_job *job)
{
    for (uint32_t i = 0; i < job->store.count; i++)
        take_row(shard, job, i);
    for (uint32_t i = 0; i < dp_sessions_count(shard->sessions); i++) {
        struct dp_session *session = dp_sessions_at(shard->sessions, i);
        if (!session->parked || session->first->request.kind == DP_REQUEST_CREATE_TABLE)
            continue;
        /* Whose read failed hears why; others who waited for the same rows ask for themselves. */
        if (job->store.status != DP_OK && session->id == job->session &&
            session->first->request.id == job->request)
            session->first->broken = job->store.error;
        session->parked = false;
        dp_shard_make_runnable(shard, session);
    }
    DP_COUNT_SET(&shard->counters, cache_bytes, dp_shard_cache_bytes(shard));
}
