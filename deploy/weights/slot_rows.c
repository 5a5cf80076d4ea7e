#include "deploy/weights/slot_rows.h"

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct slot_place {
    uint64_t key;
    size_t index;
};

struct slot_list {
    const struct dp_weight_rows *rows;
    struct slot_place *place; /* ascending by key */
    bool *told;               /* by index */
};

struct slot_visit {
    struct slot_list *list;
    size_t lists, now; /* now: whose rows are visited */
    dp_slot_row *take;
    void *context;
};

/* ---- stores */

static enum dp_status open_store(const char *server, uint32_t shard, struct dp_store_view **out,
                                 struct dp_error *err)
{
    char store[DP_PATH_MAX + 24];
    (void)snprintf(store, sizeof store, "%s/shard-%04" PRIu32, server, shard);
    enum dp_status st = dp_store_view_open(store, NULL, out, err);
    if (st == DP_OK && dp_store_view_own(*out)->state != DP_STORE_VIEW_CLEAN)
        st = dp_fail(
            err, DP_UNCLEAN,
            "--slots: store %s was not closed cleanly, and its journal has pushes that it lacks: resume the "
            "run ('downpour run --dir DIR --resume'), or start and stop its servers once, then export again",
            store);
    return st;
}

/* see: NULL: they are only opened. */
static enum dp_status each_store(const struct dp_cluster *cluster,
                                 enum dp_status (*see)(struct slot_visit *visit, struct dp_store_view *view,
                                                       struct dp_error *err),
                                 struct slot_visit *visit, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint32_t shard = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++)
        for (uint32_t k = 0; st == DP_OK && k < cluster->server[i].shards; k++) {
            struct dp_store_view *view = NULL;
            st = open_store(cluster->server[i].store, shard++, &view, err);
            if (st == DP_OK && see)
                st = see(visit, view, err);
            dp_store_view_close(&view);
        }
    return st;
}

enum dp_status dp_slot_rows_check(const struct dp_cluster *cluster, struct dp_error *err)
{
    return each_store(cluster, NULL, NULL, err);
}

/* ---- rows */

static int by_key(const void *a, const void *b)
{
    const struct slot_place *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static enum dp_status take_stored(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                                  struct dp_error *err)
{
    const struct slot_visit *visit = context;
    struct slot_list *list = &visit->list[visit->now];
    const struct dp_table_spec *spec = &list->rows->parameter->table;
    if (key.table != dp_table_id(spec->name))
        return DP_STOPPING;
    const struct slot_place wanted = {.key = dp_unmix(key.mixed)};
    const struct slot_place *found =
        list->rows->count ? bsearch(&wanted, list->place, list->rows->count, sizeof wanted, by_key) : NULL;
    if (!found || row_bytes != dp_row_bytes(spec))
        return dp_fail(err, DP_CORRUPT, "table '%s': the row of key %" PRIu64 " does not belong there",
                       spec->name, wanted.key);
    list->told[found->index] = true;
    return visit->take(visit->context, visit->now, found->index, row, err);
}

static enum dp_status see_store(struct slot_visit *visit, struct dp_store_view *view, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (visit->now = 0; st == DP_OK && visit->now < visit->lists; visit->now++) {
        const struct dp_store_key from = {
            .table = dp_table_id(visit->list[visit->now].rows->parameter->table.name)};
        st = dp_store_view_rows_from(view, from, take_stored, visit, err);
        if (st == DP_STOPPING)
            st = DP_OK;
    }
    return st;
}

static enum dp_status take_fresh(const struct slot_visit *visit, size_t which, struct dp_error *err)
{
    const struct slot_list *list = &visit->list[which];
    const struct dp_table_spec *spec = &list->rows->parameter->table;
    void *row = malloc(dp_row_bytes(spec));
    enum dp_status st = row ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for a row of '%s'", spec->name);
    for (size_t i = 0; st == DP_OK && i < list->rows->count; i++)
        if (!list->told[i]) {
            dp_init_row(spec, list->rows->keys[i], row);
            st = visit->take(visit->context, which, i, row, err);
        }
    free(row);
    return st;
}

static enum dp_status prepare(struct slot_list *list, const struct dp_weight_rows *rows, struct dp_error *err)
{
    *list = (struct slot_list){rows, calloc(rows->count + 1, sizeof *list->place),
                               calloc(rows->count + 1, sizeof *list->told)};
    if (!list->place || !list->told)
        return dp_fail(err, DP_NOMEM, "no memory for the keys of %zu rows", rows->count);
    for (size_t i = 0; i < rows->count; i++)
        list->place[i] = (struct slot_place){rows->keys[i], i};
    qsort(list->place, rows->count, sizeof *list->place, by_key);
    return DP_OK;
}

enum dp_status dp_slot_rows_visit(const struct dp_cluster *cluster, const struct dp_weight_rows *const *list,
                                  size_t lists, dp_slot_row *take, void *context, struct dp_error *err)
{
    struct slot_visit visit = {
        .list = calloc(lists + 1, sizeof *visit.list), .lists = lists, .take = take, .context = context};
    enum dp_status st = visit.list ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu tables", lists);
    for (size_t i = 0; st == DP_OK && i < lists; i++)
        st = prepare(&visit.list[i], list[i], err);
    if (st == DP_OK)
        st = each_store(cluster, see_store, &visit, err);
    for (size_t i = 0; st == DP_OK && i < lists; i++)
        st = take_fresh(&visit, i, err);
    for (size_t i = 0; visit.list && i < lists; i++) {
        free(visit.list[i].place);
        free(visit.list[i].told);
    }
    free(visit.list);
    return st;
}
