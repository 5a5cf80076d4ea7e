#include "server/cache/cached_tables.h"

#include "common/model/row.h"

#include <stdlib.h>
#include <string.h>

/* ---- one table */

uint64_t dp_cached_table_rows(const struct dp_cached_table *table)
{
    if (table->counted)
        return table->stored + table->fresh;
    return table->marked > table->fresh ? table->marked : table->fresh; /* they may be the same rows */
}

void dp_cached_table_set_counted(struct dp_cached_table *table, uint64_t rows)
{
    DP_ASSERT(!table->counted);
    table->stored += rows;
    table->away += rows;
    table->counted = true;
    DP_ASSERT(table->away <= table->stored + table->fresh);
}

void dp_cached_table_set_uncounted(struct dp_cached_table *table)
{
    DP_ASSERT(table->reserved == 0 && table->fresh == 0); /* at an opening */
    table->counted = false;
    table->stored = table->away = 0;
}

/* ---- the list */

static uint32_t place_of(const struct dp_cached_tables *tables, uint32_t id)
{
    uint32_t low = 0, high = tables->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (tables->table[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct dp_cached_table *dp_cached_tables_find(const struct dp_cached_tables *tables, uint32_t id)
{
    uint32_t at = place_of(tables, id);
    return at < tables->count && tables->table[at]->id == id ? tables->table[at] : NULL;
}

static void table_free(struct dp_cached_table *table)
{
    if (!table)
        return;
    dp_optimizer_free(&table->optimizer);
    dp_row_cache_free(&table->cache);
    free(table);
}

/* Hundreds of tables of one optimizer have its corrections once. */
static const struct dp_optimizer *same_optimizer(const struct dp_cached_tables *tables,
                                                 const struct dp_table_spec *spec)
{
    for (uint32_t i = 0; i < tables->count; i++)
        if (memcmp(&tables->table[i]->spec.optimizer, &spec->optimizer, sizeof spec->optimizer) == 0)
            return tables->table[i]->optimizer;
    return NULL;
}

enum dp_status dp_cached_tables_add(struct dp_cached_tables *tables, const struct dp_table_spec *spec,
                                    uint64_t stored, uint64_t salt, struct dp_range range,
                                    struct dp_cached_table **out, struct dp_error *err)
{
    if (tables->count == DP_CACHED_TABLES_ROOM)
        return dp_fail(err, DP_UNSUPPORTED, "table '%s': the store has more than %u tables", spec->name,
                       DP_CACHED_TABLES_ROOM);
    struct dp_cached_table *table = calloc(1, sizeof *table);
    if (!table)
        return dp_fail(err, DP_NOMEM, "table '%s'", spec->name);
    enum dp_status st = dp_row_cache_new(dp_row_bytes(spec), salt, range, &table->cache);
    if (st != DP_OK)
        (void)dp_fail(err, st, "table '%s'", spec->name);
    if (st == DP_OK)
        st = dp_optimizer_new_like(spec, DP_FORM_BEST, same_optimizer(tables, spec), &table->optimizer, err);
    if (st != DP_OK) {
        table_free(table);
        return st;
    }
    table->spec = *spec;
    table->id = dp_table_id(spec->name);
    table->stored = table->away = stored;
    table->counted = true;
    uint32_t at = place_of(tables, table->id);
    DP_ASSERT(at == tables->count || tables->table[at]->id > table->id);
    memmove(&tables->table[at + 1], &tables->table[at], (tables->count - at) * sizeof tables->table[0]);
    tables->table[at] = table;
    tables->count++;
    *out = table;
    return DP_OK;
}

void dp_cached_tables_remove(struct dp_cached_tables *tables, uint32_t id)
{
    uint32_t at = place_of(tables, id);
    DP_ASSERT(at < tables->count && tables->table[at]->id == id && !tables->table[at]->durable);
    DP_ASSERT(tables->table[at]->cache->rows == 0 && tables->table[at]->reserved == 0);
    table_free(tables->table[at]);
    tables->count--;
    memmove(&tables->table[at], &tables->table[at + 1], (tables->count - at) * sizeof tables->table[0]);
}

void dp_cached_tables_clear(struct dp_cached_tables *tables)
{
    while (tables->count > 0)
        table_free(tables->table[--tables->count]);
}

uint64_t dp_cached_tables_dirty_rows(const struct dp_cached_tables *tables)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; i < tables->count; i++)
        rows += (uint64_t)tables->table[i]->cache->dirty_rows + tables->table[i]->cache->due_rows;
    return rows;
}

uint64_t dp_cached_tables_cache_bytes(const struct dp_cached_tables *tables)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < tables->count; i++)
        bytes += tables->table[i]->cache->bytes;
    return bytes;
}

uint32_t dp_cached_tables_uncounted(const struct dp_cached_tables *tables)
{
    uint32_t uncounted = 0;
    for (uint32_t i = 0; i < tables->count; i++)
        uncounted += !tables->table[i]->counted;
    return uncounted;
}
