/* Finding rows, and reading those that only the store has.
 *     find -> (some unknown: room for them (room.c), park the request, one read for all of them) -> read -> (some a
 *     turn) found: into the cache, else: ABSENT -> all are: parked requests try again
 * Why   One read a key is under way at a time: a key that is being read is marked READING, and whoever needs
 *       it waits for the same read. A row that is in the cache is never overwritten by a read. Room before the read:
 *       what it brings has its place, whatever comes meanwhile. Some a turn: nobody waits for a large request's rows.
 *       Those that are not taken in yet are READING still, as if the store were at them: nothing can have changed them.
 * Ahead     While the first request of a session waits for its rows, those of the next are read, where there is room: else the
 *           store would rest while rows are taken in and answered. The next one finds them READING, and waits as for anybody's read. */
#include "server/shard/shard_inner.h"

#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

/* So many jobs at the store, and nothing is read ahead: its places are for who waits. */
#define AHEAD_JOBS 64u

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

/* Reads the unknown keys of a request, so many of each section. The store wants them ascending by (table, mixed): sections
 * are put in the order of their tables' ids, and within one they ascend already. */
static struct dp_shard_job *read_job(const struct dp_request *request, struct dp_shard_table **tables,
                                     const uint32_t *rows, const uint32_t *unknown)
{
    uint32_t all = 0;
    size_t bytes = 0, starts[DP_SECTIONS_MAX], at = 0;
    uint32_t order[DP_SECTIONS_MAX];
    for (uint32_t s = 0; s < request->sections; at += request->section[s++].rows) {
        uint32_t place = s;
        for (; place > 0 && tables[order[place - 1]]->id > tables[s]->id; place--)
            order[place] = order[place - 1];
        order[place] = s;
        starts[s] = at;
        bytes += (size_t)unknown[s] * tables[s]->cache->row_bytes;
        all += unknown[s];
    }
    struct read_memory m;
    struct dp_shard_job *job = dp_shard_job_new(DP_JOB_MISSES, NULL);
    if (!job || !(job->memory = read_memory(all, bytes, &m))) {
        dp_shard_job_free(job);
        return NULL;
    }
    uint32_t n = 0;
    for (uint32_t o = 0; o < request->sections; o++) {
        uint32_t s = order[o];
        uint32_t row_bytes = (uint32_t)tables[s]->cache->row_bytes;
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
    DP_ASSERT(n == all && m.bytes == (char *)m.found);
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

static enum dp_status check_scratch(struct dp_shard *shard, const struct dp_request *request,
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

/* What became of a request's keys. */
struct found {
    uint32_t unknown[DP_SECTIONS_MAX], fresh[DP_SECTIONS_MAX]; /* to be read; new rows of a push */
    uint32_t entries[DP_SECTIONS_MAX],
        unknown_entries[DP_SECTIONS_MAX]; /* those of either not in the index */
    uint32_t to_read, to_make;
    bool reading;
    uint64_t share; /* bytes of rows that it needs in the cache at once */
};

static void look(struct dp_shard *shard, const struct dp_request *request, struct dp_shard_table **tables,
                 struct found *found)
{
    bool makes = request->kind == DP_REQUEST_PUSH;
    uint32_t *rows = shard->rows;
    *found = (struct found){0};
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows) {
        const struct dp_section *section = &request->section[s];
        const struct dp_shard_table *table = tables[s];
        bool ask = dp_shard_must_ask(table);
        dp_row_cache_find_many(table->cache, section->keys, section->rows, rows);
        if (!ask && table->reserved == 0 && !makes)
            continue; /* what the cache does not know has no row anywhere */
        uint32_t unknown = 0, fresh = 0, reading = 0, entries = 0;
        for (uint32_t i = 0; i < section->rows; i++) {
            bool is_new = !dp_row_is_number(rows[i]), is_read = rows[i] == DP_ROW_READING;
            bool is_unknown = ask && (rows[i] == DP_ROW_UNKNOWN || rows[i] == DP_ROW_FORGOTTEN);
            reading += is_read;
            entries += rows[i] == DP_ROW_UNKNOWN;
            unknown += is_unknown;
            fresh += is_new && !is_read && !is_unknown;
        }
        found->unknown[s] = unknown;
        found->entries[s] = entries;
        found->unknown_entries[s] = ask ? entries : 0;
        found->fresh[s] = makes ? fresh : 0;
        found->to_read += unknown;
        found->to_make += found->fresh[s];
        found->reading = found->reading || reading > 0;
        found->share += (section->rows - (makes ? 0 : fresh)) * (table->cache->row_bytes + DP_ROW_SLOT_COST);
    }
}

/* One request may hold half of the cache: what the others need stays. */
static enum dp_status check_share(const struct dp_shard *shard, const struct found *found,
                                  struct dp_error *err)
{
    uint64_t most = shard->options.cache_bytes / DP_SHARD_REQUEST_SHARE;
    if (found->share <= most)
        return DP_OK;
    return dp_fail(err, DP_INVALID,
                   "shard %" PRIu32 ": one request whose rows take %" PRIu64
                   " bytes, of a row cache of %" PRIu64 ", of which one may take %" PRIu64
                   ": ask for fewer rows at once, or give servers more (cache_bytes), or add servers",
                   shard->options.index, found->share, shard->options.cache_bytes, most);
}

static void touch(struct dp_shard *shard, const struct dp_request *request, struct dp_shard_table **tables)
{
    const uint32_t *rows = shard->rows;
    for (uint32_t s = 0; s < request->sections && shard->room.tight; s++)
        for (uint32_t i = request->section[s].rows; i > 0; i--, rows++)
            if (dp_row_is_number(*rows))
                dp_row_cache_touch(tables[s]->cache, *rows);
}

/* What it knows already must outlive what is evicted for the rest. */
static void touch_all(struct dp_shard *shard, const struct dp_request *request,
                      struct dp_shard_table **tables)
{
    const uint32_t *rows = shard->rows;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows)
        for (uint32_t i = 0; i < request->section[s].rows; i++)
            if (dp_row_is_number(rows[i]))
                dp_row_cache_touch(tables[s]->cache, rows[i]);
            else if (rows[i] == DP_ROW_ABSENT)
                restate(tables[s]->cache,
                        dp_load_u64le((const char *)request->section[s].keys + (size_t)i * 8), DP_ROW_ABSENT);
}

/* Memory of a read of the unknown keys (read_memory). */
static uint64_t read_bytes(const struct dp_request *request, struct dp_shard_table **tables,
                           const struct found *found)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < request->sections; s++)
        bytes += (uint64_t)found->unknown[s] *
                 (sizeof(struct dp_store_key) + sizeof(void *) + 5 + tables[s]->cache->row_bytes);
    return bytes;
}

/* Submits the read of a request's unknown keys, for which there is room; *out is the store's. */
static enum dp_status read_unknown(struct dp_shard *shard, const struct dp_request *request,
                                   struct dp_shard_table **tables, const struct found *found,
                                   const struct dp_shard_job **out, struct dp_error *err)
{
    uint32_t *rows = shard->rows, marked = 0;
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; s < request->sections && st == DP_OK; rows += request->section[s++].rows)
        if (found->unknown[s] > 0)
            st = mark_unknown(tables[s], &request->section[s], rows, &marked);
    struct dp_shard_job *job = st == DP_OK ? read_job(request, tables, shard->rows, found->unknown) : NULL;
    if (!job) {
        st = dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": reading %" PRIu32 " rows", shard->options.index,
                     found->to_read);
    } else {
        uint64_t bytes = job->bytes = read_bytes(request, tables, found);
        *out = job;
        st = dp_shard_submit(shard, job);
        if (st != DP_OK)
            (void)dp_fail(err, DP_AGAIN, "shard %" PRIu32 ": its store is busy", shard->options.index);
        else
            shard->room.reads_bytes += bytes;
    }
    if (st != DP_OK) {
        forget_reading(request, tables, shard->rows, marked);
        return st;
    }
    for (uint32_t s = 0; s < request->sections; s++)
        tables[s]->reserved += found->unknown[s];
    DP_COUNT(&shard->counters, misses, found->to_read);
    return DP_OK;
}

static enum dp_status wait_for_unknown(struct dp_shard *shard, struct dp_waiting *waiting,
                                       struct dp_shard_table **tables, const struct found *found,
                                       struct dp_error *err)
{
    const struct dp_shard_job *job = NULL;
    enum dp_status st = read_unknown(shard, &waiting->request, tables, found, &job, err);
    if (st != DP_OK)
        return st;
    waiting->read = job;
    if (++waiting->reads > DP_SHARD_READS_PATIENT && !shard->room.urgent)
        shard->room.urgent = waiting;
    return DP_AGAIN;
}

static struct dp_room_need need_of(const struct dp_request *request, struct dp_shard_table **tables,
                                   struct found *found)
{
    return (struct dp_room_need){.request = request,
                                 .sections = request->sections,
                                 .tables = tables,
                                 .rows = found->to_read ? found->unknown : found->fresh,
                                 .entries = found->to_read ? found->unknown_entries : found->entries,
                                 .bytes = found->to_read ? read_bytes(request, tables, found) : 0};
}

/* For what it lacks; what it has already does not leave for that, but may move. DP_EXISTS: of a table whose rows were all in
 * the cache some had to leave, so there is more to read now. */
static enum dp_status want_room(struct dp_shard *shard, struct dp_waiting *waiting,
                                struct dp_shard_table **tables, struct found *found, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_room_need need = need_of(request, tables, found);
    touch_all(shard, request, tables);
    enum dp_status st = dp_shard_room_for(shard, waiting, &need, err);
    if (st != DP_EXISTS)
        return st;
    struct found before = *found;
    look(shard, request, tables, found);
    if (before.to_read > 0)
        return found->to_read == before.to_read ? DP_OK : DP_EXISTS;
    *found = before; /* what was nowhere still is */
    return DP_OK;
}

enum dp_status dp_shard_find_rows(struct dp_shard *shard, struct dp_waiting *waiting,
                                  struct dp_shard_table **tables, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct found found;
    enum dp_status st = check_scratch(shard, request, err);
    waiting->needs_room = false;
    if (st != DP_OK)
        return st;
    look(shard, request, tables, &found);
    for (st = DP_EXISTS; st == DP_EXISTS && found.to_read + found.to_make > 0;) {
        st = check_share(shard, &found, err);
        if (st == DP_OK && found.to_read == 0 && found.reading)
            return DP_AGAIN;
        if (st == DP_OK)
            st = want_room(shard, waiting, tables, &found, err);
        if (st == DP_OK && found.to_read > 0)
            return wait_for_unknown(shard, waiting, tables, &found, err);
        if (st != DP_OK && st != DP_EXISTS)
            return st;
    }
    touch(shard, request, tables);
    return found.reading ? DP_AGAIN : DP_OK;
}

void dp_shard_read_ahead(struct dp_shard *shard, struct dp_waiting *waiting)
{
    struct dp_shard_table *tables[DP_SECTIONS_MAX];
    const struct dp_shard_job *job;
    struct found found;
    if (!waiting || waiting->ahead || shard->jobs >= AHEAD_JOBS || !waiting->decoded ||
        waiting->broken.status != DP_OK ||
        (waiting->request.kind != DP_REQUEST_PULL && waiting->request.kind != DP_REQUEST_PUSH))
        return;
    const struct dp_request *request = &waiting->request;
    waiting->ahead = true;
    /* What fails here is told when its turn comes. */
    if (dp_shard_check_sections(shard, request, tables, NULL) != DP_OK ||
        check_scratch(shard, request, NULL) != DP_OK)
        return;
    look(shard, request, tables, &found);
    if (found.to_read == 0 || check_share(shard, &found, NULL) != DP_OK)
        return;
    uint32_t to_read = found.to_read;
    struct dp_room_need need = need_of(request, tables, &found);
    touch_all(shard, request, tables);
    if (!dp_shard_room_ahead(shard, &need))
        return;
    look(shard, request, tables, &found);
    if (found.to_read == to_read) {
        enum dp_status st = read_unknown(shard, request, tables, &found, &job, NULL);
        (void)st; /* it will ask for itself */
    }
}

/* Takes one row of a finished read in. */
static void take_row(struct dp_shard *shard, struct dp_shard_job *job, uint32_t i)
{
    const struct dp_store_key *key = &job->store.keys[i];
    struct dp_shard_table *table = dp_shard_find_table(shard, key->table);
    DP_ASSERT(table && table->reserved > 0);
    table->reserved--;
    if (dp_row_cache_find(table->cache, key->mixed) != DP_ROW_READING)
        return; /* the row was present since */
    uint32_t row;
    bool found = job->store.status == DP_OK && job->store.found[i];
    if (found && dp_row_format(job->store.rows[i]) != DP_ROW_FORMAT)
        job->store.status = dp_fail(
            &job->store.error, DP_CORRUPT,
            "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32 ", this program knows %u",
            table->spec.name, key->mixed, dp_row_format(job->store.rows[i]), DP_ROW_FORMAT);
    else if (found && dp_row_lsn(job->store.rows[i]) > shard->lsn)
        job->store.status = dp_shard_row_ahead(table, key->mixed, dp_row_lsn(job->store.rows[i]), shard->lsn,
                                               &job->store.error);
    else if (found && !dp_shard_must_ask(table))
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
        DP_COUNT(&shard->counters, cache_rows, 1);
    } else {
        restate(table->cache, key->mixed, DP_ROW_FORGOTTEN);
        job->store.status =
            dp_fail(&job->store.error, DP_NOMEM, "shard %" PRIu32 ": rows read", shard->options.index);
    }
}

/* All of it is taken in. */
static void end_read(struct dp_shard *shard, const struct dp_shard_job *job)
{
    if (job->store.status == DP_CORRUPT)
        dp_shard_damaged(shard, &job->store.error);
    shard->room.reads_bytes -= job->bytes;
    shard->room.changed = true;
    for (uint32_t i = 0; i < dp_sessions_count(shard->sessions); i++) {
        struct dp_session *session = dp_sessions_at(shard->sessions, i);
        if (!session->parked || session->in_room || session->for_disk ||
            session->first->request.kind == DP_REQUEST_CREATE_TABLE)
            continue;
        struct dp_waiting *first = session->first;
        if (first->read && first->read != job)
            continue; /* its own is still to come */
        /* Whose read failed hears why; others who waited for the same rows ask for themselves. */
        if (job->store.status != DP_OK && first->read == job)
            first->broken = job->store.error;
        first->read = NULL;
        session->parked = false;
        dp_shard_make_runnable(shard, session);
    }
    DP_COUNT_SET(&shard->counters, cache_bytes, dp_shard_cache_bytes(shard));
}

void dp_shard_misses_read(struct dp_shard *shard, struct dp_shard_job *job)
{
    job->next = NULL;
    *(shard->read_last ? &shard->read_last->next : &shard->read_first) = job;
    shard->read_last = job;
}

static struct dp_shard_job *first_read_leaves(struct dp_shard *shard)
{
    struct dp_shard_job *job = shard->read_first;
    shard->read_first = job->next;
    if (!shard->read_first)
        shard->read_last = NULL;
    shard->jobs--;
    return job;
}

void dp_shard_reads_turn(struct dp_shard *shard)
{
    uint32_t most = shard->options.taken_rows_max;
    uint64_t bytes = 0;
    while (shard->read_first && most > 0 && bytes < DP_SHARD_TAKEN_BYTES) {
        struct dp_shard_job *job = shard->read_first;
        if (job->taken < job->store.count) {
            bytes += job->store.row_bytes[job->taken];
            take_row(shard, job, job->taken++);
            most--;
        }
        if (job->taken == job->store.count) {
            end_read(shard, first_read_leaves(shard));
            dp_shard_job_free(job);
        }
    }
}

void dp_shard_reads_clear(struct dp_shard *shard)
{
    while (shard->read_first)
        dp_shard_job_free(first_read_leaves(shard));
}
