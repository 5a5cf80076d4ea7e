/* Cache budget: how many bytes the rows in memory may take, which table gets them, and which rows are
 * evicted.
 *     need -> it is there -> go on
 *          -> rows of the same tables are evicted -> find again (some may have been one's own)
 *          -> none is clean: clean rows are wanted, another table shrinks, the request is parked, first come
 *             first served, and tries again when something changed
 * Promise   Memory stays within the budget, including reads under way with all that they may bring. No row
 *           that is dirty, due, or under way to the store is evicted (row_cache.h).
 * Thread    The shard's. Memory: lookups are lent, from want to forget. Row numbers and states of keys found
 *           before a call that evicts are not valid after it: find them again. */
#ifndef DP_CACHE_CACHE_BUDGET_H
#define DP_CACHE_CACHE_BUDGET_H

#include "server/cache/lookup.h"
#include "server/cache/shard_base.h"

/* Makes rows clean: write-back. */
struct dp_cache_cleaner {
    const struct dp_error *(*refuses)(void *context); /* why it cannot, now or for good; NULL: it can */
    bool (*busy)(void *context);                      /* rows are on their way to the store */
    void *context;
};

/* Its fields are its own file's; others read `wants_clean` and `urgent`. */
struct dp_cache_budget {
    struct dp_shard_base *base;
    struct dp_cached_tables *tables;
    struct dp_cache_cleaner cleaner;
    uint64_t bytes;
    uint64_t reads_bytes; /* memory of the reads under way */
    bool wants_clean;     /* rows that are clean are wanted: a write-back cycle takes the wish */
    bool changed;         /* rows became clean, or room came: it is worth trying again */
    bool tight;           /* since the last turn: used rows are touched */
    const struct dp_lookup
        *urgent; /* its rows were evicted while others were read: now no other reads or evicts */
    /* The head of the queue, with what it lacked when it was tried; another or NULL: it is to be tried. */
    const struct dp_lookup *need_of;
    struct dp_cache_head {
        uint32_t sections;
        struct dp_cached_table *tables[DP_LOOKUP_SECTIONS_MAX];
        uint32_t rows[DP_LOOKUP_SECTIONS_MAX], entries[DP_LOOKUP_SECTIONS_MAX];
        uint64_t bytes;
    } head;
    uint64_t walked; /* slots the hand has passed for it since something changed */
    uint64_t laps;   /* so many are to be passed before it is stuck */
    bool shrunk;     /* a table shrinks for it since then, or could not */
    bool waits;      /* it was tried when the hand had found too little, and waits for a change */
};

enum dp_cache_got {
    DP_CACHE_THERE,   /* nothing was evicted */
    DP_CACHE_MADE,    /* it is there, and row numbers changed */
    DP_CACHE_PARK,    /* not yet: park it for room */
    DP_CACHE_REFUSED, /* why not, in err: AGAIN (rows cannot be made clean now), FULL (never) */
};
/* Room for what a lookup lacks. first: no other that waits for room came before it. */
enum dp_cache_got dp_cache_budget_want(struct dp_cache_budget *budget, const struct dp_lookup *lookup,
                                       bool first, struct dp_error *err);
/* For a read ahead of its request, where none waits for room: false where there is none. Row numbers change. */
DP_MUST_USE
bool dp_cache_budget_ahead(struct dp_cache_budget *budget, const struct dp_lookup *lookup);
/* Until it is forgotten rows are read and evicted for it alone; unless there is such a one. */
void dp_cache_budget_make_urgent(struct dp_cache_budget *budget, const struct dp_lookup *lookup);
/* It waits for room no more. */
void dp_cache_budget_unpark(struct dp_cache_budget *budget, const struct dp_lookup *lookup);
/* Its request ended. */
void dp_cache_budget_forget(struct dp_cache_budget *budget, const struct dp_lookup *lookup);
/* Room for rows[i] more rows of table i, of all tables at once, for replay: it may take long. DP_OK. DP_AGAIN: no clean row is
 * left now; clean ones are wanted, after which to try again. DP_ARGUMENT: they can never have room. */
enum dp_status dp_cache_budget_make_room(struct dp_cache_budget *budget, const uint64_t *rows,
                                         struct dp_error *err);

/* A read is sent, with this memory; it has been taken in. */
void dp_cache_budget_take_read(struct dp_cache_budget *budget, uint64_t bytes);
void dp_cache_budget_give_read(struct dp_cache_budget *budget, uint64_t bytes);
/* Rows became clean, or never will: the head is to be tried again. */
void dp_cache_budget_set_changed(struct dp_cache_budget *budget);
/* A cycle begins: the wish for clean rows is taken. */
void dp_cache_budget_take_wish(struct dp_cache_budget *budget);

uint64_t dp_cache_budget_taken(const struct dp_cache_budget *budget);
/* Rows are evicted, or soon will be. */
bool dp_cache_budget_is_tight(const struct dp_cache_budget *budget);
uint64_t dp_cache_budget_dirty_bytes(const struct dp_cache_budget *budget);

/* A turn. head: the first that waits for room, or the urgent one where it is among them; NULL: none is to be served.
 * anyone_waits: for room. Returns whether the head is to be tried now. */
bool dp_cache_budget_turn(struct dp_cache_budget *budget, const struct dp_lookup *head, bool anyone_waits);
bool dp_cache_budget_goes_on(const struct dp_cache_budget *budget, const struct dp_lookup *head);

#endif
