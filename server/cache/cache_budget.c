/* Why A table evicts its own rows first, because only it can use their memory again. The hands show an
 * imbalance: if one hand is two laps ahead of another, the slower one's table returns a sixteenth of its
 * rows' memory.
 *           A request does not evict its own rows: it would read them again for ever. If others repeatedly
 *           evict its rows while the rest is read, it becomes urgent. Until it is done no other request
 *           reads or evicts rows.
 * Stuck     After three rounds of the hand without enough memory, the request at the head is tried once
 *           more. It then asks for clean rows and for another table to shrink, and waits (`waits`) for a
 *           change. After a change the hand moves again. Only a try sets `waits`, so every stuck request
 *           has asked, and only if a change will come. If all rows are clean and in constant use, no change
 *           will come: the hand moves on until they rest, or the deadline passes.
 * Holds     reads_bytes = memory of the reads that were taken and not given back. Taken memory is within
 *           the budget. */
#include "server/cache/cache_budget.h"

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

uint64_t dp_cache_budget_taken(const struct dp_cache_budget *b)
{
    uint64_t bytes = b->reads_bytes;
    for (uint32_t i = 0; i < b->tables->count; i++) {
        const struct dp_row_cache *cache = b->tables->table[i]->cache;
        /* (Rows that are being read have their entries.) */
        bytes += dp_row_cache_charge(cache) + dp_row_cache_cost_of(cache, b->tables->table[i]->reserved, 0);
    }
    return bytes;
}

bool dp_cache_budget_is_tight(const struct dp_cache_budget *b)
{
    bool is_tight = dp_cache_budget_taken(b) > b->bytes / 4 * 3;
    for (uint32_t i = 0; i < b->tables->count && !is_tight; i++)
        is_tight = dp_cached_table_must_ask(b->tables->table[i]);
    return is_tight;
}

uint64_t dp_cache_budget_dirty_bytes(const struct dp_cache_budget *b)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < b->tables->count; i++) {
        const struct dp_row_cache *cache = b->tables->table[i]->cache;
        bytes += (uint64_t)(cache->dirty_rows + cache->due_rows) * (cache->row_bytes + DP_ROW_SLOT_COST);
    }
    return bytes;
}

/* A need: rows of tables, and other bytes. */
struct need {
    const struct dp_lookup *keeps; /* its keys are not evicted for it; NULL: replay's */
    uint32_t sections;
    struct dp_cached_table *const *tables;
    const uint32_t *rows, *entries; /* entries: of those, whose keys are not in the index */
    uint64_t bytes;
};

/* Bytes that are missing for the need. */
static uint64_t deficit_of(const struct dp_cache_budget *b, const struct need *need)
{
    uint64_t bytes = dp_cache_budget_taken(b) + need->bytes;
    for (uint32_t s = 0; s < need->sections; s++) {
        const struct dp_cached_table *table = need->tables[s];
        bytes +=
            dp_row_cache_cost_of(table->cache, (uint64_t)table->reserved + need->rows[s], need->entries[s]) -
            dp_row_cache_cost_of(table->cache, table->reserved, 0);
    }
    return bytes > b->bytes ? bytes - b->bytes : 0;
}

/* ---- evicting */

struct evicting {
    struct dp_cache_budget *b;
    struct dp_cached_table *table;
};

static void evicted(void *context, const void *row)
{
    struct evicting *evicting = context;
    DP_ASSERT(atomic_load_explicit(&evicting->b->base->counters.cache_rows, memory_order_relaxed) > 0);
    evicting->table->away += dp_row_lsn(row) != 0; /* 0: no push came to it, it equals no row */
    DP_COUNT(&evicting->b->base->counters, rows_evicted, 1);
    DP_COUNT(&evicting->b->base->counters, cache_rows, UINT64_MAX);
}

static const struct dp_lookup_section *section_of(const struct dp_lookup *lookup,
                                                  const struct dp_cached_table *table)
{
    for (uint32_t s = 0; lookup && s < lookup->sections; s++)
        if (lookup->section[s].table == table)
            return &lookup->section[s];
    return NULL;
}

/* The keys of `keeps` stay. */
static struct dp_row_leaving leaving(struct evicting *evicting, const struct dp_lookup *keeps)
{
    const struct dp_lookup_section *kept = section_of(keeps, evicting->table);
    return (struct dp_row_leaving){.evicted = evicted,
                                   .context = evicting,
                                   .kept = kept ? kept->keys : NULL,
                                   .kept_count = kept ? kept->rows : 0};
}

static uint32_t evict(struct dp_cache_budget *b, struct dp_cached_table *table, const struct dp_lookup *keeps,
                      uint64_t want, uint32_t *steps)
{
    struct evicting context = {b, table};
    struct dp_row_leaving leaves = leaving(&context, keeps);
    uint32_t most = want < DP_ROW_MAX ? (uint32_t)want : DP_ROW_MAX;
    return dp_row_cache_evict(table->cache, most, steps, &leaves);
}

/* Rows of this table that a request has in the cache. */
static uint32_t rows_had(const struct dp_cached_table *table, const struct dp_lookup *lookup)
{
    const struct dp_lookup_section *section = section_of(lookup, table);
    uint32_t had = 0;
    for (uint32_t i = 0; section && i < section->rows; i++)
        had += dp_row_is_number(
            dp_row_cache_find(table->cache, dp_load_u64le((const char *)section->keys + (size_t)i * 8)));
    return had;
}

static uint32_t lap_of(const struct dp_cached_table *table)
{
    uint64_t slots = table->cache->slots + DP_ROW_PARTITIONS;
    return slots < UINT32_MAX ? (uint32_t)slots : UINT32_MAX;
}

/* Rows of the tables that want room; a lap each at most, so that rows that were just touched stay. */
static uint32_t evict_for(struct dp_cache_budget *b, const struct need *need, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < need->sections; s++) {
        struct dp_cached_table *table = need->tables[s];
        uint64_t deficit = deficit_of(b, need);
        if (need->rows[s] == 0 || deficit == 0)
            continue;
        uint64_t want = deficit / (table->cache->row_bytes + DP_ROW_SLOT_COST) + 1;
        uint32_t lap = lap_of(table), steps = most < lap ? most : lap, before = steps;
        count += evict(b, table, need->keeps, want, &steps);
        b->walked += before - steps;
        table->hungry = true;
    }
    return count;
}

/* ---- shrinking a table */

static struct dp_cached_table *shrinking_table(const struct dp_cache_budget *b)
{
    for (uint32_t i = 0; i < b->tables->count; i++)
        if (dp_row_cache_is_shrinking(b->tables->table[i]->cache))
            return b->tables->table[i];
    return NULL;
}

/* Rows of at least so many bytes, where it may lose so many. */
static void shrink(struct dp_cached_table *table, uint64_t bytes, uint64_t most)
{
    struct dp_row_cache *cache = table->cache;
    uint64_t rows = bytes / cache->row_bytes + cache->rows / SHRINK_SHARE + 1;
    rows = rows < most ? rows : most;
    dp_row_cache_shrink(cache, rows < cache->rows ? cache->rows - (uint32_t)rows : 0);
}

/* The one that has most that could go: free rows and clean ones, but those that the need has or would take. Once, until
 * something changes. */
static void shrink_for(struct dp_cache_budget *b, const struct need *need)
{
    struct dp_cached_table *best = NULL;
    uint64_t most = 0, deficit = deficit_of(b, need);
    if (shrinking_table(b) || b->shrunk)
        return;
    for (uint32_t i = 0; i < b->tables->count; i++) {
        const struct dp_row_cache *cache = b->tables->table[i]->cache;
        uint64_t keeps = (uint64_t)cache->dirty_rows + cache->due_rows + b->tables->table[i]->reserved +
                         rows_had(b->tables->table[i], need->keeps);
        for (uint32_t s = 0; s < need->sections; s++)
            keeps += need->tables[s] == b->tables->table[i] ? need->rows[s] : 0;
        uint64_t bytes = cache->rows > keeps ? (cache->rows - keeps) * cache->row_bytes : 0;
        best = bytes > most ? b->tables->table[i] : best;
        most = bytes > most ? bytes : most;
    }
    if (!best)
        return;
    shrink(best, deficit + deficit / 4, most / best->cache->row_bytes);
    b->shrunk = true;
}

/* The hand of a table that wants room goes round faster than that of a large one. */
static void balance(struct dp_cache_budget *b)
{
    for (uint32_t i = 0; i < b->tables->count; i++)
        for (uint32_t j = 0; j < b->tables->count && b->tables->table[i]->hungry; j++) {
            const struct dp_row_cache *cache = b->tables->table[j]->cache;
            if ((uint64_t)cache->rows * cache->row_bytes > b->bytes / AHEAD_SHARE &&
                b->tables->table[i]->cache->laps >= cache->laps + LAPS_APART) {
                shrink(b->tables->table[j], 0, cache->rows);
                return;
            }
        }
}

static uint64_t most_laps(const struct dp_cache_budget *b)
{
    uint64_t laps = 0;
    for (uint32_t i = 0; i < b->tables->count; i++)
        laps = b->tables->table[i]->cache->laps > laps ? b->tables->table[i]->cache->laps : laps;
    return laps;
}

/* head: the lookup that waits for it; NULL: none. */
static void shrink_step(struct dp_cache_budget *b, const struct dp_lookup *head, uint32_t steps)
{
    struct dp_cached_table *table = shrinking_table(b);
    if (!table)
        return;
    struct evicting context = {b, table};
    struct dp_row_leaving leaves = leaving(&context, b->urgent ? b->urgent : b->need_of);
    bool done = dp_row_cache_shrink_step(table->cache, &steps, &leaves);
    if (dp_row_cache_is_shrinking(table->cache))
        return;
    /* Shrinking is no sign of hunger: the hands start level again. */
    uint64_t laps = most_laps(b);
    for (uint32_t i = 0; i < b->tables->count; i++)
        b->tables->table[i]->cache->laps = laps;
    b->changed = b->changed || done;
    if (!done && head && head == b->need_of)
        b->waits =
            false; /* it was given up: he is tried again, and one may shrink for him now if this was not */
}

/* ---- what a request wants */

/* A new table starts where the others are: else it would seem the slowest. */
static void set_laps(struct dp_cache_budget *b, const struct need *need)
{
    uint64_t laps = most_laps(b);
    for (uint32_t s = 0; s < need->sections; s++)
        if (need->tables[s]->cache->rows == 0)
            need->tables[s]->cache->laps = laps;
}

/* Nothing is left that could leave, now or later, but its own rows. */
static bool is_hopeless(const struct dp_cache_budget *b, const struct need *need)
{
    if (b->cleaner.busy(b->cleaner.context))
        return false;
    for (uint32_t i = 0; i < b->tables->count; i++)
        if (b->tables->table[i]->reserved > 0 ||
            b->tables->table[i]->cache->rows > dp_row_cache_free_rows(b->tables->table[i]->cache) +
                                                   rows_had(b->tables->table[i], need->keeps))
            return false;
    return !shrinking_table(b);
}

static enum dp_status no_room(struct dp_cache_budget *b, const struct need *need, struct dp_error *err)
{
    uint64_t rows = 0;
    for (uint32_t s = 0; s < need->sections; s++)
        rows += need->rows[s];
    DP_COUNT(&b->base->counters, pushes_over_budget, 1);
    return dp_fail_wait(
        err, DP_FULL, (struct dp_wait){.reason = DP_WAIT_ROOM},
        "shard %" PRIu32 " has no room for %" PRIu64 " rows more: %" PRIu64 " of %" PRIu64
        " bytes of its row cache are taken and none can leave; give servers more (cache_bytes) or add "
        "servers",
        b->base->index, rows, dp_cache_budget_taken(b), b->bytes);
}

/* The hand went round and found nothing. */
static enum dp_cache_got want_clean_rows(struct dp_cache_budget *b, const struct need *need,
                                         struct dp_error *err)
{
    const struct dp_error *why = b->cleaner.refuses(b->cleaner.context);
    b->wants_clean = b->wants_clean || dp_cache_budget_dirty_bytes(b) > 0;
    shrink_for(b, need);
    if (is_hopeless(b, need)) {
        (void)no_room(b, need, err);
        return DP_CACHE_REFUSED;
    }
    if (!why)
        return DP_CACHE_PARK;
    (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_ROOM},
                       "shard %" PRIu32 ": its row cache is full, and its rows cannot be written back: %s",
                       b->base->index, why->text);
    return DP_CACHE_REFUSED;
}

/* Something is under way whose end says so (dp_cache_budget_set_changed), or is asked for. */
static bool will_change(const struct dp_cache_budget *b)
{
    return b->wants_clean || b->reads_bytes > 0 || shrinking_table(b) || b->cleaner.busy(b->cleaner.context);
}

/* So many steps are enough for the laps, of the most slots that there were since they began: the hand itself drops slots, and
 * what leaves takes a step too. */
static uint64_t laps_of(struct dp_cache_budget *b, const struct need *need)
{
    uint64_t slots = 0;
    for (uint32_t s = 0; s < need->sections; s++)
        slots += need->rows[s] ? lap_of(need->tables[s]) + need->tables[s]->cache->entries : 0;
    b->laps = STUCK_LAPS * slots > b->laps ? STUCK_LAPS * slots : b->laps;
    return b->laps;
}

static struct need need_of_head(const struct dp_lookup *lookup, const struct dp_cache_head *head)
{
    return (struct need){.keeps = lookup,
                         .sections = head->sections,
                         .tables = head->tables,
                         .rows = head->rows,
                         .entries = head->entries,
                         .bytes = head->bytes};
}

/* What the lookup lacks, into `head`. */
static struct need need_of(const struct dp_lookup *lookup, struct dp_cache_head *head)
{
    bool reads = lookup->to_read > 0;
    DP_ASSERT(lookup->sections <= DP_LOOKUP_SECTIONS_MAX);
    head->sections = lookup->sections;
    head->bytes = reads ? lookup->read_bytes : 0;
    for (uint32_t s = 0; s < lookup->sections; s++) {
        const struct dp_lookup_section *section = &lookup->section[s];
        head->tables[s] = section->table;
        head->rows[s] = reads ? section->unknown : section->fresh;
        head->entries[s] = reads ? section->unknown_entries : section->entries;
    }
    return need_of_head(lookup, head);
}

/* The turns go on with it: the request is tried again when it has its room. */
static void keep_need(struct dp_cache_budget *b, const struct dp_lookup *lookup)
{
    if (b->need_of != lookup) { /* what the last one found is not this one's */
        b->walked = b->laps = 0;
        b->shrunk = false;
    }
    b->waits = false;
    b->need_of = lookup;
}

enum dp_cache_got dp_cache_budget_want(struct dp_cache_budget *b, const struct dp_lookup *lookup, bool first,
                                       struct dp_error *err)
{
    struct dp_cache_head head;
    if (b->urgent ? b->urgent != lookup : !first)
        return DP_CACHE_PARK;
    struct need need = need_of(lookup, &head);
    set_laps(b, &need);
    if (deficit_of(b, &need) == 0)
        return DP_CACHE_THERE;
    keep_need(b, lookup);
    need = need_of(lookup, &b->head);
    if (b->walked < laps_of(b, &need) && evict_for(b, &need, REQUEST_STEPS) > 0 &&
        deficit_of(b, &need) == 0) {
        b->need_of = NULL;
        return DP_CACHE_MADE;
    }
    if (b->walked < laps_of(b, &need))
        return DP_CACHE_PARK;
    enum dp_cache_got got = want_clean_rows(b, &need, err);
    DP_ASSERT(got == DP_CACHE_PARK || err->status != DP_OK);
    b->waits = got == DP_CACHE_PARK && will_change(b);
    b->need_of = got == DP_CACHE_PARK ? lookup : NULL;
    if (!b->waits) {
        b->walked = b->laps = 0;
        b->shrunk = false;
    }
    return got;
}

bool dp_cache_budget_ahead(struct dp_cache_budget *b, const struct dp_lookup *lookup)
{
    struct dp_cache_head head;
    if (b->urgent)
        return false;
    struct need need = need_of(lookup, &head);
    set_laps(b, &need);
    if (deficit_of(b, &need) > 0)
        (void)evict_for(b, &need, REQUEST_STEPS);
    return deficit_of(b, &need) == 0;
}

enum dp_status dp_cache_budget_make_room(struct dp_cache_budget *b, const uint64_t *rows,
                                         struct dp_error *err)
{
    uint32_t each[DP_CACHED_TABLES_ROOM];
    for (uint32_t i = 0; i < b->tables->count; i++)
        each[i] = rows[i] < DP_ROW_MAX ? (uint32_t)rows[i] : DP_ROW_MAX;
    struct need need = {
        .sections = b->tables->count, .tables = b->tables->table, .rows = each, .entries = each};
    set_laps(b, &need);
    for (uint32_t laps = 0; laps < STUCK_LAPS && deficit_of(b, &need) > 0; laps++)
        while (evict_for(b, &need, UINT32_MAX) > 0 && deficit_of(b, &need) > 0)
            ;
    for (uint64_t before = UINT64_MAX; deficit_of(b, &need) > 0 && deficit_of(b, &need) < before;) {
        before = deficit_of(b, &need);
        b->shrunk = false;
        shrink_for(b, &need);
        while (shrinking_table(b))
            shrink_step(b, NULL, TURN_STEPS);
    }
    for (uint32_t s = 0; s < need.sections; s++)
        need.tables[s]->hungry = false;
    if (deficit_of(b, &need) == 0)
        return DP_OK;
    const struct dp_error *why = b->cleaner.refuses(b->cleaner.context);
    if (why)
        return dp_fail(err, why->status, "the row cache is full, and its rows cannot be written back: %s",
                       why->text);
    b->wants_clean = dp_cache_budget_dirty_bytes(b) > 0;
    if (b->wants_clean || b->cleaner.busy(b->cleaner.context))
        return DP_AGAIN;
    (void)no_room(b, &need, err);
    return err->status =
               DP_ARGUMENT; /* an opening: more room will not come, as on a disk, but with another setting */
}

/* ---- waiting */

void dp_cache_budget_make_urgent(struct dp_cache_budget *b, const struct dp_lookup *lookup)
{
    DP_ASSERT(lookup->read); /* it has its place, and waits for what was sent */
    b->urgent = b->urgent ? b->urgent : lookup;
}

void dp_cache_budget_unpark(struct dp_cache_budget *b, const struct dp_lookup *lookup)
{
    if (b->need_of != lookup)
        return;
    b->need_of = NULL;
    b->waits = false; /* it was the one that was stuck: the next has not been tried */
}

void dp_cache_budget_forget(struct dp_cache_budget *b, const struct dp_lookup *lookup)
{
    dp_cache_budget_unpark(b, lookup);
    DP_ASSERT(b->need_of != lookup);
    if (b->urgent == lookup) {
        b->urgent = NULL;
        b->changed = true;
    }
}

void dp_cache_budget_take_read(struct dp_cache_budget *b, uint64_t bytes)
{
    b->reads_bytes += bytes;
}

void dp_cache_budget_give_read(struct dp_cache_budget *b, uint64_t bytes)
{
    DP_ASSERT(b->reads_bytes >= bytes);
    b->reads_bytes -= bytes;
    b->changed = true;
}

void dp_cache_budget_set_changed(struct dp_cache_budget *b)
{
    b->changed = true;
}

void dp_cache_budget_take_wish(struct dp_cache_budget *b)
{
    b->wants_clean = false;
}

/* It is to be tried, or there is something to evict for it. Else it is stuck, until something changes. */
static bool head_goes_on(const struct dp_cache_budget *b, const struct dp_lookup *head)
{
    return b->changed || b->need_of != head || !b->waits;
}

/* Evicts for the one at the head, and has it tried when it has its room; or when it is stuck, to ask for clean rows or to be
 * told why there are none. */
static bool serve_head(struct dp_cache_budget *b, const struct dp_lookup *head)
{
    if (!head || !head_goes_on(b, head))
        return false;
    if (b->changed) {
        b->walked = b->laps = 0;
        b->shrunk = b->changed = b->waits = false;
    }
    if (b->need_of == head) {
        struct need need = need_of_head(head, &b->head);
        (void)laps_of(b, &need); /* of the slots that there are before the hand drops some */
        (void)evict_for(b, &need, HEAD_STEPS);
        if (deficit_of(b, &need) > 0 && b->walked < laps_of(b, &need))
            return false;
    }
    return true;
}

/* ---- ahead of need */

static void evict_ahead(struct dp_cache_budget *b, struct dp_cached_table *table)
{
    uint64_t taken = dp_cache_budget_taken(b);
    uint64_t wanted = b->bytes / AHEAD_SHARE < AHEAD_MOST ? b->bytes / AHEAD_SHARE : AHEAD_MOST;
    uint64_t row = table->cache->row_bytes + DP_ROW_SLOT_COST, free = dp_row_cache_free_rows(table->cache);
    uint64_t there = (b->bytes > taken ? b->bytes - taken : 0) +
                     (free > table->reserved ? free - table->reserved : 0) * table->cache->row_bytes;
    uint32_t steps = TURN_STEPS;
    if (there >= wanted) {
        table->hungry = false;
        return;
    }
    uint64_t want = (wanted - there) / row + 1;
    (void)evict(b, table, NULL, want < AHEAD_ROWS ? want : AHEAD_ROWS, &steps);
}

bool dp_cache_budget_turn(struct dp_cache_budget *b, const struct dp_lookup *head, bool anyone_waits)
{
    bool hungry = false;
    DP_ASSERT(!head || anyone_waits);
    DP_ASSERT(!b->waits || b->need_of || b->changed || !anyone_waits); /* a stuck one is known */
    b->tight = dp_cache_budget_is_tight(b);
    for (uint32_t i = 0; i < b->tables->count; i++) {
        struct dp_cached_table *table = b->tables->table[i];
        if (table->hungry && !b->urgent && !anyone_waits)
            evict_ahead(b, table);
        hungry = hungry || table->hungry;
    }
    if (hungry && !shrinking_table(b))
        balance(b);
    shrink_step(b, head, TURN_STEPS);
    bool is_tried = serve_head(b, head);
    DP_COUNT_SET(&b->base->counters, cache_bytes, dp_cached_tables_cache_bytes(b->tables) + b->reads_bytes);
    DP_COUNT_SET(&b->base->counters, cache_budget, b->bytes);
    return is_tried;
}

bool dp_cache_budget_goes_on(const struct dp_cache_budget *b, const struct dp_lookup *head)
{
    return (head && head_goes_on(b, head)) || shrinking_table(b);
}
