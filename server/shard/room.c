/* Room: the budget of the cache, who gets of it, and what leaves for it.
 *     need -> it is there -> go on
 *          -> rows of the same tables are evicted -> find again (some may have been one's own)
 *          -> none is clean: a write-back cycle is asked for, another table shrinks, the request is parked, first come
 *             first served, and tries again when something changed
 * Why       Evicting from the table that wants room needs no more than the hand: the memory of a row is of use to its own
 *           table only. What a table has too much is seen by the hands: where one goes round faster than another by two
 *           laps, the slower one's table gives a sixteenth of its rows' memory back.
 *           A request does not evict its own rows: it would read them again for ever. One whose rows are evicted by others
 *           while the rest is read, again and again, becomes urgent: until it is done nobody else has rows read or evicted.
 * Holds     What is taken is within the budget, reads under way with all that they may bring included. No row that is
 *           dirty, due, or under way to the store leaves (row_cache.h). */
#include "server/shard/shard_inner.h"

#include "common/base/bytes.h"
#include "common/model/row.h"

#include <inttypes.h>

#define AHEAD_SHARE   16u /* of the budget: room that is kept ready where rows are evicted */
#define AHEAD_MOST    ((uint64_t)4 << 20)
#define AHEAD_ROWS    512u /* in one turn */
#define TURN_STEPS    8192u
#define SHRINK_SHARE  16u    /* of a table's rows, at least, when it shrinks */
#define REQUEST_STEPS 65536u /* of the hand, when a request comes first; in a turn while it waits */
#define HEAD_STEPS    32768u
#define LAPS_APART    2u
#define STUCK_LAPS                                                                                           \
    3u /* touched bits, ABSENT keys, slots of empty partitions: nothing is left that could leave */

uint64_t dp_shard_taken(const struct dp_shard *shard)
{
    uint64_t bytes = shard->room.reads_bytes;
    for (uint32_t i = 0; i < shard->tables; i++) {
        const struct dp_row_cache *cache = shard->table[i]->cache;
        /* (What is being read has its entry.) */
        bytes += dp_row_cache_charge(cache) + dp_row_cache_cost_of(cache, shard->table[i]->reserved, 0);
    }
    return bytes;
}

bool dp_shard_is_tight(const struct dp_shard *shard)
{
    bool is_tight = dp_shard_taken(shard) > shard->options.cache_bytes / 4 * 3;
    for (uint32_t i = 0; i < shard->tables && !is_tight; i++)
        is_tight = dp_shard_must_ask(shard->table[i]);
    return is_tight;
}

uint64_t dp_shard_dirty_bytes(const struct dp_shard *shard)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < shard->tables; i++) {
        const struct dp_row_cache *cache = shard->table[i]->cache;
        bytes += (uint64_t)(cache->dirty_rows + cache->due_rows) * (cache->row_bytes + DP_ROW_SLOT_COST);
    }
    return bytes;
}

/* What is missing for the need; 0: nothing. */
static uint64_t deficit_of(const struct dp_shard *shard, const struct dp_room_need *need)
{
    uint64_t bytes = dp_shard_taken(shard) + need->bytes;
    for (uint32_t s = 0; s < need->sections; s++) {
        const struct dp_shard_table *table = need->tables[s];
        bytes +=
            dp_row_cache_cost_of(table->cache, (uint64_t)table->reserved + need->rows[s], need->entries[s]) -
            dp_row_cache_cost_of(table->cache, table->reserved, 0);
    }
    return bytes > shard->options.cache_bytes ? bytes - shard->options.cache_bytes : 0;
}

/* ---- evicting */

struct evicting {
    struct dp_shard *shard;
    struct dp_shard_table *table;
};

static void evicted(void *context, const void *row)
{
    struct evicting *evicting = context;
    evicting->table->away += dp_row_lsn(row) != 0; /* 0: no push came to it, it equals no row */
    DP_COUNT(&evicting->shard->counters, rows_evicted, 1);
    DP_COUNT(&evicting->shard->counters, cache_rows, UINT64_MAX);
}

static const struct dp_section *section_of(const struct dp_request *request, uint32_t table)
{
    for (uint32_t s = 0; request && s < request->sections; s++)
        if (request->section[s].table == table)
            return &request->section[s];
    return NULL;
}

/* The keys of `keeps` stay. */
static struct dp_row_leaving leaving(struct evicting *evicting, const struct dp_request *keeps)
{
    const struct dp_section *kept = section_of(keeps, evicting->table->id);
    return (struct dp_row_leaving){.evicted = evicted,
                                   .context = evicting,
                                   .kept = kept ? kept->keys : NULL,
                                   .kept_count = kept ? kept->rows : 0};
}

static uint32_t evict(struct dp_shard *shard, struct dp_shard_table *table, const struct dp_request *keeps,
                      uint64_t want, uint32_t *steps)
{
    struct evicting context = {shard, table};
    struct dp_row_leaving leaves = leaving(&context, keeps);
    uint32_t most = want < DP_ROW_MAX ? (uint32_t)want : DP_ROW_MAX;
    return dp_row_cache_evict(table->cache, most, steps, &leaves);
}

/* Rows of this table that a request has in the cache. */
static uint32_t rows_had(const struct dp_shard_table *table, const struct dp_request *request)
{
    const struct dp_section *section = section_of(request, table->id);
    uint32_t had = 0;
    for (uint32_t i = 0; section && i < section->rows; i++)
        had += dp_row_is_number(
            dp_row_cache_find(table->cache, dp_load_u64le((const char *)section->keys + (size_t)i * 8)));
    return had;
}

static uint32_t lap_of(const struct dp_shard_table *table)
{
    uint64_t slots = table->cache->slots + DP_ROW_PARTITIONS;
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

/* Rows of the tables that want room; a lap each at most, so that what was just touched stays. */
static uint32_t evict_for(struct dp_shard *shard, const struct dp_room_need *need, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < need->sections; s++) {
        struct dp_shard_table *table = need->tables[s];
        uint64_t deficit = deficit_of(shard, need);
        if (need->rows[s] == 0 || deficit == 0)
            continue;
        uint64_t want = deficit / (table->cache->row_bytes + DP_ROW_SLOT_COST) + 1;
        uint32_t lap = lap_of(table), steps = most < lap ? most : lap, before = steps;
        count += evict(shard, table, need->request, want, &steps);
        shard->room.walked += before - steps;
        table->hungry = true;
    }
    return count;
}

/* ---- shrinking a table */

/* Whose turn it is; NULL: nobody's, or the urgent one waits for its read. */
static struct dp_session *head_of(const struct dp_shard *shard)
{
    const struct dp_room *room = &shard->room;
    struct dp_session *session = room->first;
    while (room->urgent && session && session->first != room->urgent)
        session = session->next_in_room;
    return session;
}

static struct dp_shard_table *shrinking_table(const struct dp_shard *shard)
{
    for (uint32_t i = 0; i < shard->tables; i++)
        if (dp_row_cache_is_shrinking(shard->table[i]->cache))
            return shard->table[i];
    return NULL;
}

/* Rows of at least so many bytes, where it may lose so many. */
static void shrink(struct dp_shard_table *table, uint64_t bytes, uint64_t most)
{
    struct dp_row_cache *cache = table->cache;
    uint64_t rows = bytes / cache->row_bytes + cache->rows / SHRINK_SHARE + 1;
    rows = rows < most ? rows : most;
    dp_row_cache_shrink(cache, rows < cache->rows ? cache->rows - (uint32_t)rows : 0);
}

/* The one that has most that could go: free rows and clean ones, but those that the need has or would take. Once, until
 * something changes. */
static void shrink_for(struct dp_shard *shard, const struct dp_room_need *need)
{
    struct dp_shard_table *best = NULL;
    uint64_t most = 0, deficit = deficit_of(shard, need);
    if (shrinking_table(shard) || shard->room.shrunk)
        return;
    for (uint32_t i = 0; i < shard->tables; i++) {
        const struct dp_row_cache *cache = shard->table[i]->cache;
        uint64_t keeps = (uint64_t)cache->dirty_rows + cache->due_rows + shard->table[i]->reserved +
                         rows_had(shard->table[i], need->request);
        for (uint32_t s = 0; s < need->sections; s++)
            keeps += need->tables[s] == shard->table[i] ? need->rows[s] : 0;
        uint64_t bytes = cache->rows > keeps ? (cache->rows - keeps) * cache->row_bytes : 0;
        best = bytes > most ? shard->table[i] : best;
        most = bytes > most ? bytes : most;
    }
    if (!best)
        return;
    shrink(best, deficit + deficit / 4, most / best->cache->row_bytes);
    shard->room.shrunk = true;
}

/* The hand of a table that wants room goes round faster than that of a large one. */
static void balance(struct dp_shard *shard)
{
    for (uint32_t i = 0; i < shard->tables; i++)
        for (uint32_t j = 0; j < shard->tables && shard->table[i]->hungry; j++) {
            const struct dp_row_cache *cache = shard->table[j]->cache;
            if ((uint64_t)cache->rows * cache->row_bytes > shard->options.cache_bytes / AHEAD_SHARE &&
                shard->table[i]->cache->laps >= cache->laps + LAPS_APART) {
                shrink(shard->table[j], 0, cache->rows);
                return;
            }
        }
}

static uint64_t most_laps(const struct dp_shard *shard)
{
    uint64_t laps = 0;
    for (uint32_t i = 0; i < shard->tables; i++)
        laps = shard->table[i]->cache->laps > laps ? shard->table[i]->cache->laps : laps;
    return laps;
}

static void shrink_step(struct dp_shard *shard, uint32_t steps)
{
    struct dp_shard_table *table = shrinking_table(shard);
    if (!table)
        return;
    const struct dp_waiting *waiting = shard->room.urgent ? shard->room.urgent : shard->room.need_of;
    struct evicting context = {shard, table};
    struct dp_row_leaving leaves = leaving(&context, waiting ? &waiting->request : NULL);
    bool done = dp_row_cache_shrink_step(table->cache, &steps, &leaves);
    if (dp_row_cache_is_shrinking(table->cache))
        return;
    for (uint32_t i = 0; i < shard->tables;
         i++) /* shrinking is no sign of hunger: the hands start level again */
        shard->table[i]->cache->laps = most_laps(shard);
    const struct dp_session *head = head_of(shard);
    shard->room.changed = shard->room.changed || done;
    if (!done && !shard->room.shrunk && head && head->first == shard->room.need_of)
        shard->room.waits = false; /* it was given up, and was not for him: now one may shrink for him */
}

/* ---- what a request wants */

/* A new table starts where the others are: else it would seem the slowest. */
static void set_laps(struct dp_shard *shard, const struct dp_room_need *need)
{
    uint64_t laps = most_laps(shard);
    for (uint32_t s = 0; s < need->sections; s++)
        if (need->tables[s]->cache->rows == 0)
            need->tables[s]->cache->laps = laps;
}

/* Nothing is left that could leave, now or later, but its own rows. */
static bool is_hopeless(const struct dp_shard *shard, const struct dp_room_need *need)
{
    if (shard->write_back.under_way > 0 || shard->write_back.ready || shard->write_back.again)
        return false;
    for (uint32_t i = 0; i < shard->tables; i++)
        if (shard->table[i]->reserved > 0 ||
            shard->table[i]->cache->rows >
                dp_row_cache_free_rows(shard->table[i]->cache) + rows_had(shard->table[i], need->request))
            return false;
    return !shrinking_table(shard);
}

static enum dp_status no_room(struct dp_shard *shard, const struct dp_room_need *need, struct dp_error *err)
{
    uint64_t rows = 0;
    for (uint32_t s = 0; s < need->sections; s++)
        rows += need->rows[s];
    DP_COUNT(&shard->counters, pushes_over_budget, 1);
    return dp_fail(
        err, DP_FULL,
        "shard %" PRIu32 " has no room for %" PRIu64 " rows more: %" PRIu64 " of %" PRIu64
        " bytes of its row cache are taken and none can leave; give servers more (cache_bytes) or add "
        "servers",
        shard->options.index, rows, dp_shard_taken(shard), shard->options.cache_bytes);
}

/* The hand went round and found nothing. */
static enum dp_status want_clean_rows(struct dp_shard *shard, const struct dp_room_need *need,
                                      struct dp_error *err)
{
    const struct dp_error *why = dp_shard_not_writing(shard);
    shard->write_back.pressed = shard->write_back.pressed || dp_shard_dirty_bytes(shard) > 0;
    shrink_for(shard, need);
    if (is_hopeless(shard, need))
        return no_room(shard, need, err);
    if (why)
        return dp_fail(err, DP_AGAIN,
                       "shard %" PRIu32 ": its row cache is full, and its rows cannot be written back: %s",
                       shard->options.index, why->text);
    return DP_AGAIN;
}

/* So many steps are enough for the laps, of the most slots that there were since they began: the hand itself drops slots, and
 * what leaves takes a step too. */
static uint64_t laps_of(struct dp_room *room, const struct dp_room_need *need)
{
    uint64_t slots = 0;
    for (uint32_t s = 0; s < need->sections; s++)
        slots += need->rows[s] ? lap_of(need->tables[s]) + need->tables[s]->cache->entries : 0;
    room->laps = STUCK_LAPS * slots > room->laps ? STUCK_LAPS * slots : room->laps;
    return room->laps;
}

/* The turns go on with it: the request is tried again when it has its room. */
static void keep_need(struct dp_room *room, const struct dp_waiting *waiting, const struct dp_room_need *need)
{
    if (room->need_of != waiting) { /* what the last one found is not this one's */
        room->walked = room->laps = 0;
        room->shrunk = false;
    }
    room->waits = false;
    room->need_of = waiting;
    room->sections = need->sections;
    room->bytes = need->bytes;
    memcpy(room->tables, need->tables, need->sections * sizeof room->tables[0]);
    memcpy(room->rows, need->rows, need->sections * sizeof room->rows[0]);
    memcpy(room->entries, need->entries, need->sections * sizeof room->entries[0]);
}

enum dp_status dp_shard_room_for(struct dp_shard *shard, struct dp_waiting *waiting,
                                 const struct dp_room_need *need, struct dp_error *err)
{
    struct dp_room *room = &shard->room;
    waiting->needs_room = true;
    if (room->urgent ? room->urgent != waiting : room->first && room->first->first != waiting)
        return DP_AGAIN;
    set_laps(shard, need);
    if (deficit_of(shard, need) == 0) {
        waiting->needs_room = false;
        return DP_OK;
    }
    keep_need(room, waiting, need);
    if (room->walked < laps_of(room, need) && evict_for(shard, need, REQUEST_STEPS) > 0 &&
        deficit_of(shard, need) == 0) {
        waiting->needs_room = false;
        room->need_of = NULL;
        return DP_EXISTS;
    }
    if (room->walked < laps_of(room, need))
        return DP_AGAIN;
    enum dp_status st = want_clean_rows(shard, need, err);
    room->waits = err->status == DP_OK;
    room->need_of = room->waits ? waiting : NULL;
    return st;
}

bool dp_shard_room_ahead(struct dp_shard *shard, const struct dp_room_need *need)
{
    if (shard->room.urgent || shard->room.first)
        return false;
    set_laps(shard, need);
    if (deficit_of(shard, need) > 0)
        (void)evict_for(shard, need, REQUEST_STEPS);
    return deficit_of(shard, need) == 0;
}

static enum dp_status make_room(struct dp_shard *shard, const struct dp_room_need *need, struct dp_error *err)
{
    set_laps(shard, need);
    for (uint32_t laps = 0; laps < STUCK_LAPS && deficit_of(shard, need) > 0; laps++)
        while (evict_for(shard, need, UINT32_MAX) > 0 && deficit_of(shard, need) > 0)
            ;
    for (uint64_t before = UINT64_MAX; deficit_of(shard, need) > 0 && deficit_of(shard, need) < before;) {
        before = deficit_of(shard, need);
        shard->room.shrunk = false;
        shrink_for(shard, need);
        while (shrinking_table(shard))
            shrink_step(shard, TURN_STEPS);
    }
    for (uint32_t s = 0; s < need->sections; s++)
        need->tables[s]->hungry = false;
    if (deficit_of(shard, need) == 0)
        return DP_OK;
    const struct dp_error *why = dp_shard_not_writing(shard);
    if (why)
        return dp_fail(err, why->status, "the row cache is full, and its rows cannot be written back: %s",
                       why->text);
    shard->write_back.pressed = dp_shard_dirty_bytes(shard) > 0;
    bool is_written = shard->write_back.under_way > 0 || shard->write_back.ready || shard->write_back.again;
    if (is_written || dp_shard_dirty_bytes(shard) > 0)
        return DP_AGAIN;
    (void)no_room(shard, need, err);
    return err->status =
               DP_ARGUMENT; /* an opening: more room will not come, as on a disk, but with another setting */
}

enum dp_status dp_shard_make_room(struct dp_shard *shard, struct dp_shard_table *table, uint32_t rows,
                                  struct dp_error *err)
{
    struct dp_room_need need = {.sections = 1, .tables = &table, .rows = &rows, .entries = &rows};
    return make_room(shard, &need, err);
}

enum dp_status dp_shard_make_room_for_all(struct dp_shard *shard, const uint64_t *rows, struct dp_error *err)
{
    uint32_t each[DP_SHARD_TABLES_MAX];
    for (uint32_t i = 0; i < shard->tables; i++)
        each[i] = rows[i] < DP_ROW_MAX ? (uint32_t)rows[i] : DP_ROW_MAX;
    struct dp_room_need need = {
        .sections = shard->tables, .tables = shard->table, .rows = each, .entries = each};
    return make_room(shard, &need, err);
}

/* ---- who waits */

void dp_shard_park_for_room(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_room *room = &shard->room;
    if (session->in_room)
        return; /* it keeps its place */
    session->in_room = true;
    session->next_in_room = NULL;
    *(room->last ? &room->last->next_in_room : &room->first) = session;
    room->last = session;
    DP_COUNT(&shard->counters, requests_parked, 1);
}

void dp_shard_unpark(struct dp_shard *shard, struct dp_session *session)
{
    struct dp_room *room = &shard->room;
    struct dp_session **link = &room->first, *before = NULL;
    if (!session->in_room)
        return;
    for (; *link != session; link = &(*link)->next_in_room)
        before = *link;
    *link = session->next_in_room;
    room->last = room->last == session ? before : room->last;
    session->in_room = false;
    if (room->need_of == session->first)
        room->need_of = NULL;
}

static void wake(struct dp_shard *shard, struct dp_session *session)
{
    session->parked = false;
    dp_shard_make_runnable(shard, session);
}

/* room->need_of is not NULL. */
static struct dp_room_need need_of_head(struct dp_shard *shard)
{
    struct dp_room *room = &shard->room;
    return (struct dp_room_need){.request = &room->need_of->request,
                                 .sections = room->sections,
                                 .tables = room->tables,
                                 .rows = room->rows,
                                 .entries = room->entries,
                                 .bytes = room->bytes};
}

/* It is to be tried, or there is something to evict for it. Else it is stuck, until something changes. */
static bool head_goes_on(const struct dp_shard *shard, const struct dp_session *head)
{
    const struct dp_room *room = &shard->room;
    return room->changed || room->need_of != head->first || !room->waits;
}

/* Evicts for the one at the head, and has it tried when it has its room; or when it is stuck, to ask for clean rows or to be
 * told why there are none. */
static void serve_head(struct dp_shard *shard)
{
    struct dp_room *room = &shard->room;
    struct dp_session *head = head_of(shard);
    if (!head || !head_goes_on(shard, head))
        return;
    if (room->changed) {
        room->walked = room->laps = 0;
        room->shrunk = room->changed = room->waits = false;
    }
    if (room->need_of == head->first) {
        struct dp_room_need need = need_of_head(shard);
        (void)evict_for(shard, &need, HEAD_STEPS);
        if (deficit_of(shard, &need) > 0 && room->walked < laps_of(room, &need))
            return;
    }
    wake(shard, head);
}

/* Those whose deadline passed are answered that. */
static void end_late(struct dp_shard *shard)
{
    uint64_t now = dp_clock_ns(&shard->options.clock);
    for (struct dp_session *session = shard->room.first; session; session = session->next_in_room)
        if (now > session->first->deadline_ns)
            wake(shard, session);
}

/* ---- ahead of need */

static void evict_ahead(struct dp_shard *shard, struct dp_shard_table *table)
{
    uint64_t budget = shard->options.cache_bytes, taken = dp_shard_taken(shard);
    uint64_t wanted = budget / AHEAD_SHARE < AHEAD_MOST ? budget / AHEAD_SHARE : AHEAD_MOST;
    uint64_t row = table->cache->row_bytes + DP_ROW_SLOT_COST, free = dp_row_cache_free_rows(table->cache);
    uint64_t there = (budget > taken ? budget - taken : 0) +
                     (free > table->reserved ? free - table->reserved : 0) * table->cache->row_bytes;
    uint32_t steps = TURN_STEPS;
    if (there >= wanted) {
        table->hungry = false;
        return;
    }
    uint64_t want = (wanted - there) / row + 1;
    (void)evict(shard, table, NULL, want < AHEAD_ROWS ? want : AHEAD_ROWS, &steps);
}

void dp_shard_room_turn(struct dp_shard *shard)
{
    struct dp_room *room = &shard->room;
    uint64_t budget = shard->options.cache_bytes;
    bool hungry = false;
    room->tight = dp_shard_is_tight(shard);
    for (uint32_t i = 0; i < shard->tables; i++) {
        struct dp_shard_table *table = shard->table[i];
        if (table->hungry && !room->urgent && !room->first)
            evict_ahead(shard, table);
        hungry = hungry || table->hungry;
    }
    if (hungry && !shrinking_table(shard))
        balance(shard);
    shrink_step(shard, TURN_STEPS);
    serve_head(shard);
    end_late(shard);
    DP_COUNT_SET(&shard->counters, cache_bytes, dp_shard_cache_bytes(shard));
    DP_COUNT_SET(&shard->counters, cache_budget, budget);
}

bool dp_shard_room_goes_on(const struct dp_shard *shard)
{
    const struct dp_session *head = head_of(shard);
    return (head && head_goes_on(shard, head)) || shrinking_table(shard);
}
