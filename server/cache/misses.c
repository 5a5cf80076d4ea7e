/* Why       A key that is being read is marked READING, and other requests that need it wait for the same read. Room
 *           before the read: its rows have their place, whatever comes before they do. Some rows a turn: no request
 *           waits for a large one's.
 *           Rows that are not taken in yet are still READING, as if the store were reading them. So no push
 *           has changed them and no eviction has removed them. A request that waits for its own read is
 *           tried again only after the read.
 * Ahead     While the first request of a session waits for its rows, the rows of the next one are read, if
 *           there is space. Otherwise the store would be idle while rows are taken in and answered. The
 *           next request finds them READING, and waits as for any other read.
 * Holds     untaken = reads in the list; a table's `reserved` = rows of its reads that are not taken in. */
#include "server/cache/misses.h"

#include "common/base/bytes.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

#define TURN_BYTES    ((uint64_t)4 << 20) /* taken in in one turn at most */
#define REQUEST_SHARE 2u                  /* one request's rows may take one part in so many of the cache */
#define READS_PATIENT 2u                  /* reads of one request, before it is urgent */
/* So many jobs at the store, and nothing is read ahead: its places are for requests that wait. */
#define AHEAD_JOBS 64u

static uint64_t key_at(const struct dp_lookup_section *section, uint32_t i)
{
    return dp_load_u64le((const char *)section->keys + (size_t)i * 8);
}

static bool is_unknown(uint32_t row)
{
    return row == DP_ROW_UNKNOWN || row == DP_ROW_FORGOTTEN;
}

/* Marks the keys of one section that must be read; counts them. */
static enum dp_status mark_unknown(const struct dp_lookup_section *section, const uint32_t *rows,
                                   uint32_t *unknown)
{
    for (uint32_t i = 0; i < section->rows; i++)
        if (is_unknown(rows[i])) {
            enum dp_status st =
                dp_row_cache_set_state(section->table->cache, key_at(section, i), DP_ROW_READING);
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
static void forget_reading(const struct dp_lookup *lookup, const uint32_t *rows, uint32_t unknown)
{
    for (uint32_t s = 0; s < lookup->sections && unknown > 0; rows += lookup->section[s++].rows) {
        const struct dp_lookup_section *section = &lookup->section[s];
        for (uint32_t i = 0; i < section->rows && unknown > 0; i++)
            if (dp_cached_table_must_ask(section->table) && is_unknown(rows[i])) {
                restate(section->table->cache, key_at(section, i), DP_ROW_FORGOTTEN);
                unknown--;
            }
    }
}

static void read_done(void *context, struct dp_io_job *job)
{
    struct dp_misses *m = context;
    DP_ASSERT(job->taken == 0 && job->store.count > 0);
    job->next = NULL;
    *(m->last ? &m->last->next : &m->first) = job;
    m->last = job;
    m->untaken++;
}

/* Reads the unknown keys. The store wants them ascending by (table, mixed): sections are put in the order of their tables'
 * ids, and within one they ascend already. */
static struct dp_io_job *read_job(struct dp_misses *m, const struct dp_lookup *lookup)
{
    size_t bytes = 0, starts[DP_LOOKUP_SECTIONS_MAX], at = 0;
    uint32_t order[DP_LOOKUP_SECTIONS_MAX];
    for (uint32_t s = 0; s < lookup->sections; at += lookup->section[s++].rows) {
        const struct dp_lookup_section *section = &lookup->section[s];
        uint32_t place = s;
        for (; place > 0 && lookup->section[order[place - 1]].table->id > section->table->id; place--)
            order[place] = order[place - 1];
        order[place] = s;
        starts[s] = at;
        bytes += (size_t)section->unknown * section->table->cache->row_bytes;
    }
    struct dp_io_rows to;
    struct dp_io_job *job = dp_io_rows_new(DP_STORE_READ, lookup->to_read, bytes, read_done, m, &to);
    if (!job)
        return NULL;
    for (uint32_t o = 0; o < lookup->sections; o++) {
        const struct dp_lookup_section *section = &lookup->section[order[o]];
        const uint32_t *rows = m->rows + starts[order[o]];
        uint32_t row_bytes = (uint32_t)section->table->cache->row_bytes;
        for (uint32_t i = 0; i < section->rows && dp_cached_table_must_ask(section->table); i++)
            if (is_unknown(rows[i]))
                (void)dp_io_rows_add(&to, (struct dp_store_key){section->table->id, key_at(section, i)},
                                     row_bytes);
    }
    DP_ASSERT(job->store.count == lookup->to_read && to.next == (char *)job->store.found);
    return job;
}

static enum dp_status check_scratch(struct dp_misses *m, const struct dp_lookup *lookup, struct dp_error *err)
{
    size_t rows = 0;
    for (uint32_t s = 0; s < lookup->sections; s++)
        rows += lookup->section[s].rows;
    uint32_t *more = rows > m->rows_room ? realloc(m->rows, rows * sizeof more[0]) : m->rows;
    if (rows > m->rows_room && !more)
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": a request of %zu rows", m->base->index, rows);
    m->rows = more;
    m->rows_room = rows > m->rows_room ? rows : m->rows_room;
    return DP_OK;
}

static void look_at(struct dp_lookup *lookup, struct dp_lookup_section *section, const uint32_t *rows)
{
    const struct dp_cached_table *table = section->table;
    bool ask = dp_cached_table_must_ask(table), makes = lookup->makes;
    section->unknown = section->fresh = section->entries = section->unknown_entries = 0;
    if (!ask && table->reserved == 0 && !makes)
        return; /* what the cache does not know has no row anywhere */
    uint32_t unknown = 0, fresh = 0, reading = 0, entries = 0;
    for (uint32_t i = 0; i < section->rows; i++) {
        bool is_new = !dp_row_is_number(rows[i]), is_read = rows[i] == DP_ROW_READING;
        bool is_asked = ask && is_unknown(rows[i]);
        reading += is_read;
        entries += rows[i] == DP_ROW_UNKNOWN;
        unknown += is_asked;
        fresh += is_new && !is_read && !is_asked;
    }
    section->unknown = unknown;
    section->entries = entries;
    section->unknown_entries = ask ? entries : 0;
    section->fresh = makes ? fresh : 0;
    lookup->to_read += unknown;
    lookup->to_make += section->fresh;
    lookup->reading = lookup->reading || reading > 0;
    lookup->share += (section->rows - (makes ? 0 : fresh)) * (table->cache->row_bytes + DP_ROW_SLOT_COST);
    lookup->read_bytes += (uint64_t)unknown * (DP_IO_ROW_BYTES + table->cache->row_bytes);
}

static void look(struct dp_misses *m, struct dp_lookup *lookup)
{
    uint32_t *rows = m->rows;
    lookup->to_read = lookup->to_make = 0;
    lookup->share = lookup->read_bytes = 0;
    lookup->reading = false;
    for (uint32_t s = 0; s < lookup->sections; rows += lookup->section[s++].rows) {
        struct dp_lookup_section *section = &lookup->section[s];
        dp_row_cache_find_many(section->table->cache, section->keys, section->rows, rows);
        look_at(lookup, section, rows);
    }
}

/* One request may hold half of the cache: what the others need stays. */
static enum dp_status check_share(const struct dp_misses *m, const struct dp_lookup *lookup,
                                  struct dp_error *err)
{
    uint64_t most = m->budget->bytes / REQUEST_SHARE;
    if (lookup->share <= most)
        return DP_OK;
    return dp_fail(err, DP_INVALID,
                   "shard %" PRIu32 ": the rows of one request take %" PRIu64
                   " bytes of the row cache's %" PRIu64 "; it may take %" PRIu64
                   ": ask for fewer rows at once, or give servers more (cache_bytes), or add servers",
                   m->base->index, lookup->share, m->budget->bytes, most);
}

static void touch(struct dp_misses *m, const struct dp_lookup *lookup)
{
    const uint32_t *rows = m->rows;
    for (uint32_t s = 0; s < lookup->sections && m->budget->tight; s++)
        for (uint32_t i = lookup->section[s].rows; i > 0; i--, rows++)
            if (dp_row_is_number(*rows))
                dp_row_cache_touch(lookup->section[s].table->cache, *rows);
}

/* Rows that it found must outlive the eviction for the others. */
static void touch_all(struct dp_misses *m, const struct dp_lookup *lookup)
{
    const uint32_t *rows = m->rows;
    for (uint32_t s = 0; s < lookup->sections; rows += lookup->section[s++].rows) {
        const struct dp_lookup_section *section = &lookup->section[s];
        for (uint32_t i = 0; i < section->rows; i++)
            if (dp_row_is_number(rows[i]))
                dp_row_cache_touch(section->table->cache, rows[i]);
            else if (rows[i] == DP_ROW_ABSENT)
                restate(section->table->cache, key_at(section, i), DP_ROW_ABSENT);
    }
}

/* Submits the read of the unknown keys, for which there is room; *out is the store's. */
static enum dp_status read_unknown(struct dp_misses *m, const struct dp_lookup *lookup,
                                   const struct dp_io_job **out, struct dp_error *err)
{
    uint32_t *rows = m->rows, marked = 0;
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; s < lookup->sections && st == DP_OK; rows += lookup->section[s++].rows)
        if (lookup->section[s].unknown > 0)
            st = mark_unknown(&lookup->section[s], rows, &marked);
    DP_ASSERT(st != DP_OK || marked == lookup->to_read);
    struct dp_io_job *job = st == DP_OK ? read_job(m, lookup) : NULL;
    if (job) {
        job->bytes = (size_t)lookup->read_bytes;
        *out = job;
    }
    if (!job || dp_io_jobs_submit_or_free(m->jobs, job) != DP_OK) {
        forget_reading(lookup, m->rows, marked);
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE}, "shard %" PRIu32 ": %s",
                            m->base->index, job ? "its store is busy" : "no memory to read rows");
    }
    dp_cache_budget_take_read(m->budget, lookup->read_bytes);
    for (uint32_t s = 0; s < lookup->sections; s++)
        lookup->section[s].table->reserved += lookup->section[s].unknown;
    DP_COUNT(&m->base->counters, misses, lookup->to_read);
    return DP_OK;
}

static enum dp_found wait_for_unknown(struct dp_misses *m, struct dp_lookup *lookup, struct dp_error *err)
{
    const struct dp_io_job *job = NULL;
    if (read_unknown(m, lookup, &job, err) != DP_OK)
        return DP_FOUND_REFUSED;
    DP_ASSERT(job && job->store.count == lookup->to_read);
    lookup->read = job;
    if (++lookup->reads > READS_PATIENT)
        dp_cache_budget_make_urgent(m->budget, lookup);
    return DP_FOUND_READING;
}

/* For what it lacks; what it has already does not leave for that, but may move. MADE: of a table whose rows were all in
 * the cache some had to leave, so there is more to read now. */
static enum dp_cache_got want_room(struct dp_misses *m, struct dp_lookup *lookup, bool first,
                                   struct dp_error *err)
{
    uint32_t to_read = lookup->to_read, to_make = lookup->to_make;
    touch_all(m, lookup);
    enum dp_cache_got got = dp_cache_budget_want(m->budget, lookup, first, err);
    if (got != DP_CACHE_MADE)
        return got;
    look(m, lookup);
    if (to_read > 0)
        return lookup->to_read == to_read ? DP_CACHE_THERE : DP_CACHE_MADE;
    lookup->to_read = 0; /* keys without a row still have none */
    lookup->to_make = to_make;
    return DP_CACHE_THERE;
}

enum dp_found dp_misses_find(struct dp_misses *m, struct dp_lookup *lookup, bool first, struct dp_error *err)
{
    DP_ASSERT(!lookup->read); /* one that waits for its own read is not tried before it comes */
    if (check_scratch(m, lookup, err) != DP_OK)
        return DP_FOUND_REFUSED;
    look(m, lookup);
    for (enum dp_cache_got got = DP_CACHE_MADE;
         got == DP_CACHE_MADE && lookup->to_read + lookup->to_make > 0;) {
        if (check_share(m, lookup, err) != DP_OK)
            return DP_FOUND_REFUSED;
        if (lookup->to_read == 0 && lookup->reading)
            return DP_FOUND_READING;
        bool reads = lookup->to_read > 0;
        got = want_room(m, lookup, first, err);
        if (got == DP_CACHE_THERE && reads)
            return wait_for_unknown(m, lookup, err);
        if (got == DP_CACHE_PARK || got == DP_CACHE_REFUSED)
            return got == DP_CACHE_PARK ? DP_FOUND_PARK : DP_FOUND_REFUSED;
    }
    touch(m, lookup);
    return lookup->reading ? DP_FOUND_READING : DP_FOUND;
}

void dp_misses_read_ahead(struct dp_misses *m, struct dp_lookup *lookup)
{
    const struct dp_io_job *job;
    if (lookup->ahead || m->jobs->under_way + m->untaken >= AHEAD_JOBS)
        return;
    lookup->ahead = true;
    if (check_scratch(m, lookup, NULL) != DP_OK)
        return; /* a failure is answered when its turn comes */
    look(m, lookup);
    uint32_t to_read = lookup->to_read;
    if (to_read == 0 || check_share(m, lookup, NULL) != DP_OK)
        return;
    touch_all(m, lookup);
    if (!dp_cache_budget_ahead(m->budget, lookup))
        return;
    look(m, lookup);
    if (lookup->to_read == to_read) {
        enum dp_status st = read_unknown(m, lookup, &job, NULL);
        (void)st; /* it will ask for itself */
    }
}

/* ---- reads that are done */

/* What of a row that was read cannot be. */
static enum dp_status check_row(const struct dp_cached_table *table, uint64_t mixed, const void *row,
                                uint64_t last_lsn, struct dp_error *err)
{
    if (dp_row_format(row) != DP_ROW_FORMAT)
        return dp_fail(err, DP_CORRUPT,
                       "table '%s': the row of mixed key %016" PRIx64 " has format %" PRIu32
                       ", this program knows %u",
                       table->spec.name, mixed, dp_row_format(row), DP_ROW_FORMAT);
    if (dp_row_lsn(row) > last_lsn)
        return dp_damage_row_ahead(table->spec.name, mixed, dp_row_lsn(row), last_lsn, err);
    if (!dp_cached_table_must_ask(table))
        return dp_fail(err, DP_CORRUPT,
                       "table '%s': the store holds more rows than the %" PRIu64 " of its mark",
                       table->spec.name, table->stored);
    return DP_OK;
}

/* Takes one row of a finished read in. */
static void take_row(struct dp_misses *m, struct dp_io_job *job, uint32_t i, uint64_t last_lsn)
{
    const struct dp_store_key *key = &job->store.keys[i];
    struct dp_cached_table *table = dp_cached_tables_find(m->tables, key->table);
    DP_ASSERT(table && table->reserved > 0);
    table->reserved--;
    if (dp_row_cache_find(table->cache, key->mixed) != DP_ROW_READING)
        return; /* the row was present since */
    uint32_t row;
    if (job->store.status == DP_OK && job->store.found[i])
        job->store.status = check_row(table, key->mixed, job->store.rows[i], last_lsn, &job->store.error);
    if (job->store.status != DP_OK) {
        restate(table->cache, key->mixed, DP_ROW_FORGOTTEN);
    } else if (!job->store.found[i]) {
        restate(table->cache, key->mixed, DP_ROW_ABSENT);
    } else if (dp_row_cache_insert(table->cache, key->mixed, &row) == DP_OK) {
        memcpy(dp_row_cache_row(table->cache, row), job->store.rows[i], table->cache->row_bytes);
        table->away--;
        DP_COUNT(&m->base->counters, rows_read, 1);
        DP_COUNT(&m->base->counters, cache_rows, 1);
    } else {
        restate(table->cache, key->mixed, DP_ROW_FORGOTTEN);
        job->store.status =
            dp_fail(&job->store.error, DP_NOMEM, "shard %" PRIu32 ": rows read", m->base->index);
    }
}

/* All of it is taken in. */
static void end_read(struct dp_misses *m, const struct dp_io_job *job)
{
    DP_ASSERT(job->taken == job->store.count);
    if (job->store.status == DP_CORRUPT)
        dp_damage_found(m->base, &job->store.error);
    dp_cache_budget_give_read(m->budget, job->bytes);
    m->ended(m->context, job, &job->store.error);
    DP_COUNT_SET(&m->base->counters, cache_bytes,
                 dp_cached_tables_cache_bytes(m->tables) + m->budget->reads_bytes);
}

static struct dp_io_job *first_leaves(struct dp_misses *m)
{
    struct dp_io_job *job = m->first;
    DP_ASSERT(m->untaken > 0);
    m->first = job->next;
    if (!m->first)
        m->last = NULL;
    m->untaken--;
    DP_ASSERT((m->untaken == 0) == !m->first);
    return job;
}

void dp_misses_turn(struct dp_misses *m, uint64_t last_lsn)
{
    uint32_t most = m->turn_rows;
    uint64_t bytes = 0;
    while (m->first && most > 0 && bytes < TURN_BYTES) {
        struct dp_io_job *job = m->first;
        if (job->taken < job->store.count) {
            bytes += job->store.row_bytes[job->taken];
            take_row(m, job, job->taken++, last_lsn);
            most--;
        }
        if (job->taken == job->store.count) {
            end_read(m, first_leaves(m));
            dp_io_job_free(job);
        }
    }
}

void dp_misses_clear(struct dp_misses *m)
{
    while (m->first)
        dp_io_job_free(first_leaves(m));
    free(m->rows);
    m->rows = NULL;
    m->rows_room = 0;
}
