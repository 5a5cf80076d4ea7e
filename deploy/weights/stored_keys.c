#include "deploy/weights/stored_keys.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"
#include "common/model/mix.h"
#include "common/model/table.h"
#include "server/inspect/inspect_journal.h"
#include "server/journal/record.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct keys_gathering {
    uint32_t table;
    uint64_t *keys;
    size_t count, room;
    uint64_t rows_lsn, incarnation, released; /* of the store at hand */
};

static enum dp_status add(struct keys_gathering *g, uint64_t mixed, struct dp_error *err)
{
    if (!dp_array_reserve(&g->keys, g->count, &g->room, sizeof g->keys[0]))
        return dp_fail(err, DP_NOMEM, "no memory for %zu keys", g->count + 1);
    g->keys[g->count++] = dp_unmix(mixed);
    return DP_OK;
}

static enum dp_status take_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct keys_gathering *g = context;
    (void)row, (void)row_bytes;
    return key.table == g->table ? add(g, key.mixed, err) : DP_STOPPING;
}

static enum dp_status take_record(void *context, uint64_t lsn, const void *record, size_t bytes,
                                  struct dp_error *err)
{
    struct keys_gathering *g = context;
    struct dp_record decoded;
    struct dp_request *push = calloc(1, sizeof *push);
    (void)lsn;
    if (!push)
        return dp_fail(err, DP_NOMEM, "no memory for a record");
    enum dp_status st = dp_record_decode(record, bytes, &decoded, push, err);
    for (uint32_t s = 0; st == DP_OK && decoded.kind != DP_RECORD_KEPT_PUSH && s < push->sections; s++) {
        const struct dp_section *section = &push->section[s];
        for (uint32_t i = 0; st == DP_OK && section->table == g->table && i < section->rows; i++)
            st = add(g, dp_load_u64le((const char *)section->keys + 8 * (size_t)i), err);
    }
    free(push);
    return st;
}

static enum dp_status take_mark(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct keys_gathering *g = context;
    (void)err;
    if (mark->value_bytes != 8)
        return DP_OK;
    if (mark->key_bytes == 3 && memcmp(mark->key, "lsn", 3) == 0)
        g->rows_lsn = dp_load_u64le(mark->value);
    if (mark->key_bytes == 7 && memcmp(mark->key, "journal", 7) == 0)
        g->incarnation = dp_load_u64le(mark->value);
    if (mark->key_bytes == 8 && memcmp(mark->key, "released", 8) == 0)
        g->released = dp_load_u64le(mark->value);
    return DP_OK;
}

static enum dp_status take_journal(struct keys_gathering *g, struct dp_store_view *inspect, const char *store,
                                   struct dp_error *err)
{
    char directory[DP_PATH_MAX + 32];
    struct dp_inspect_journal seen;
    g->rows_lsn = g->incarnation = g->released = 0;
    (void)snprintf(directory, sizeof directory, "%s/journal", store);
    enum dp_status st = dp_store_view_marks(inspect, "", take_mark, g, err);
    const struct dp_inspect_journal_options options = {.directory = directory,
                                                       .replay_after = g->rows_lsn,
                                                       .incarnation = g->incarnation,
                                                       .released = g->released,
                                                       .must_be_there = g->incarnation > g->released,
                                                       .record = take_record,
                                                       .context = g};
    return st == DP_OK ? dp_inspect_journal(&options, &seen, err) : st;
}

static enum dp_status take_store(struct keys_gathering *g, const char *store, struct dp_error *err)
{
    struct dp_store_view *inspect = NULL;
    enum dp_status st = dp_store_view_open(store, NULL, &inspect, err);
    if (st != DP_OK)
        return st;
    st = dp_store_view_rows_from(inspect, (struct dp_store_key){g->table, 0}, take_row, g, err);
    if (st == DP_STOPPING)
        st = DP_OK;
    /* A server that serves it read-only has replayed it, so that it can be. */
    if (st == DP_OK && dp_store_view_own(inspect)->state == DP_STORE_VIEW_OPEN_JOURNALED)
        st = take_journal(g, inspect, store, err);
    dp_store_view_close(&inspect);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "store %s", store);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

enum dp_status dp_stored_keys(const struct dp_cluster *cluster, const char *table, uint64_t **out,
                              size_t *count, struct dp_error *err)
{
    struct keys_gathering g = {.table = dp_table_id(table)};
    enum dp_status st = DP_OK;
    uint32_t shard = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        for (uint32_t k = 0; st == DP_OK && k < cluster->server[i].shards; k++) {
            char store[DP_PATH_MAX + 24];
            (void)snprintf(store, sizeof store, "%s/shard-%04" PRIu32, cluster->server[i].store, shard++);
            st = take_store(&g, store, err);
        }
    }
    *out = NULL;
    *count = 0;
    if (st != DP_OK) {
        free(g.keys);
        return st;
    }
    if (g.count > 0)
        qsort(g.keys, g.count, sizeof *g.keys, by_value);
    for (size_t i = 0; i < g.count; i++)
        if (*count == 0 || g.keys[i] != g.keys[*count - 1])
            g.keys[(*count)++] = g.keys[i];
    *out = g.keys;
    return DP_OK;
}
