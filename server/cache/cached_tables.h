/* The tables of a shard, found by id, each with its rows in memory.
 * Holds     Ascending by id. `away` counts the stored rows of a table that the cache lacks.
 * Thread    The shard's. Memory: the tables, from add to remove; a table that is durable stays till clear. */
#ifndef DP_CACHE_CACHED_TABLES_H
#define DP_CACHE_CACHED_TABLES_H

#include "common/model/optimizer.h"
#include "common/model/table.h"
#include "server/cache/row_cache.h"

#define DP_CACHED_TABLES_MAX  1024u /* of a shard that serves */
#define DP_CACHED_TABLES_ROOM 4096u /* of a restore's source, which has those of all shards (manifest.h) */

struct dp_cached_table {
    uint32_t id;
    bool durable; /* its mark is in the store */
    struct dp_table_spec spec;
    struct dp_optimizer *optimizer;
    struct dp_row_cache *cache;
    uint64_t stored;  /* rows in the store */
    uint64_t fresh;   /* rows pushed first since opening: not in the store */
    uint64_t creator; /* session that made it, so that its resend hears the same answer */
    /* Rows that the store has and the cache has not: 0 means that a key unknown to the cache has no row anywhere. While
     * `counted` is false `stored` is not known, so `away` is only what came and went since opening, from 0 on (it may
     * wrap below 0): dp_cached_table_set_counted adds the number to both. */
    uint64_t away;
    bool counted;
    uint32_t reserved; /* rows that the reads under way may bring: they have their room */
    bool hungry;       /* room was wanted here: rows are evicted ahead */
    bool bounded;      /* a row's value stayed at its bound (optimizer.h), and the log says so */
    uint64_t marked;   /* rows in its mark when this opening began */
};

struct dp_cached_tables {
    struct dp_cached_table *table[DP_CACHED_TABLES_ROOM];
    uint32_t count;
};

/* A key that the cache does not know may have a row in the store. */
static inline bool dp_cached_table_must_ask(const struct dp_cached_table *table)
{
    return !table->counted || table->away > 0;
}
/* Rows that it has; of a table that is not counted yet: no more than it has. */
uint64_t dp_cached_table_rows(const struct dp_cached_table *table);
/* The store has so many rows of a table that was not counted. */
void dp_cached_table_set_counted(struct dp_cached_table *table, uint64_t rows);
void dp_cached_table_set_uncounted(struct dp_cached_table *table);

struct dp_cached_table *dp_cached_tables_find(const struct dp_cached_tables *tables, uint32_t id);
/* stored: rows that the store has of it. salt: row_cache.h. */
enum dp_status dp_cached_tables_add(struct dp_cached_tables *tables, const struct dp_table_spec *spec,
                                    uint64_t stored, uint64_t salt, struct dp_range range,
                                    struct dp_cached_table **out, struct dp_error *err);
void dp_cached_tables_remove(struct dp_cached_tables *tables, uint32_t id);
void dp_cached_tables_clear(struct dp_cached_tables *tables);

uint64_t dp_cached_tables_dirty_rows(const struct dp_cached_tables *tables);
uint64_t dp_cached_tables_cache_bytes(const struct dp_cached_tables *tables);
uint32_t dp_cached_tables_uncounted(const struct dp_cached_tables *tables);

#endif
