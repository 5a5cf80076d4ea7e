#include "deploy/cli/export_tensors.h"

#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "common/tensors/tensor_file.h"
#include "deploy/cli/inspect_show.h"
#include "server/store/store_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX    2u
#define KEYS_AT_ONCE 4096u

/* A parameter, with the tensors that it becomes. */
struct tensor_part {
    struct dp_run_rows rows;
    uint64_t floats; /* of its weights; behind them is padding */
    size_t keys, weights, step, slot[SLOTS_MAX], padding;
};

struct tensor_export {
    struct dp_run_tables *run;
    bool slots;
    struct tensor_part *part;
    size_t parts;
    struct dp_tensors tensors;
    struct dp_tensor_file file;
    const struct tensor_part *scanned; /* while stores are read */
};

/* ---- what there will be */

static enum dp_status add(struct tensor_export *e, const struct tensor_part *part, const char *what,
                          enum dp_tensor_type type, uint64_t rows, uint64_t width, size_t *index,
                          struct dp_error *err)
{
    struct dp_tensor tensor = {.type = type, .rows = rows, .width = width};
    (void)snprintf(tensor.name, sizeof tensor.name, "%s%s%s", part->rows.parameter->table.name,
                   what[0] ? "." : "", what);
    return dp_tensors_add(&e->tensors, &tensor, index, err);
}

/* Floats of the last block behind the model's shape. */
static uint64_t padding_of(const struct tensor_part *part)
{
    const struct dp_parameter *p = part->rows.parameter;
    return p->sparse ? 0 : (uint64_t)part->rows.count * p->table.dim - part->floats;
}

static enum dp_status add_part(struct tensor_export *e, const struct dp_parameter *p, struct dp_error *err)
{
    struct tensor_part *part = &e->part[e->parts++];
    enum dp_status st = dp_run_rows_list(e->run, p, &part->rows, err);
    if (st != DP_OK)
        return st;
    size_t count = part->rows.count;
    uint64_t rows = p->sparse ? count : p->rows;
    uint32_t slots = e->slots ? dp_row_slots(&p->table.optimizer) : 0;
    part->floats = rows * p->width;
    bool fits = count == 0 || part->rows.keys[count - 1] <= INT64_MAX; /* ascending */
    if (p->sparse)
        st = add(e, part, "keys", fits ? DP_TENSOR_I64 : DP_TENSOR_U64, count, 0, &part->keys, err);
    if (st == DP_OK)
        st = add(e, part, p->sparse ? "weights" : "", DP_TENSOR_F32, rows, p->width, &part->weights, err);
    if (st == DP_OK && e->slots)
        st = add(e, part, "step", DP_TENSOR_I64, count, 0, &part->step, err);
    for (uint32_t s = 0; st == DP_OK && s < slots; s++)
        st = add(e, part, dp_show_slot_name(&p->table.optimizer, s), DP_TENSOR_F32, rows, p->width,
                 &part->slot[s], err);
    uint64_t behind = padding_of(part);
    return st == DP_OK && behind > 0 && e->slots
               ? add(e, part, "padding", DP_TENSOR_F32, slots + 1, behind, &part->padding, err)
               : st;
}

/* ---- what is in it */

static enum dp_status put_keys(struct tensor_export *e, const struct tensor_part *part, struct dp_error *err)
{
    char bytes[8 * KEYS_AT_ONCE];
    enum dp_status st = DP_OK;
    for (size_t first = 0; st == DP_OK && first < part->rows.count; first += KEYS_AT_ONCE) {
        size_t left = part->rows.count - first, n = left < KEYS_AT_ONCE ? left : KEYS_AT_ONCE;
        for (size_t i = 0; i < n; i++)
            dp_store_u64le(bytes + 8 * i, part->rows.keys[first + i]);
        st = dp_tensor_file_put(&e->file, part->keys, first, bytes, n, err);
    }
    return st;
}

/* In place: floats become their little-endian bytes. */
static const void *bytes_of(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        dp_store_u32le((char *)&values[i], bits);
    }
    return values;
}

static enum dp_status put_weights(struct tensor_export *e, const struct tensor_part *part,
                                  struct dp_error *err)
{
    size_t portion = dp_run_rows_portion(&part->rows), dim = part->rows.parameter->table.dim;
    float *values = malloc(portion * dim * sizeof *values);
    enum dp_status st = values ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu rows", portion);
    for (size_t first = 0; st == DP_OK && first < part->rows.count; first += portion) {
        size_t left = part->rows.count - first, count = left < portion ? left : portion;
        uint64_t at = (uint64_t)first * dim, behind = part->floats - at;
        st = dp_run_rows_pull(e->run, &part->rows, first, count, values, err);
        uint64_t floats = (uint64_t)count * dim < behind ? (uint64_t)count * dim : behind;
        if (st == DP_OK)
            st = dp_tensor_file_put(&e->file, part->weights, at, bytes_of(values, floats), floats, err);
    }
    free(values);
    return st;
}

/* ---- slots */

static int by_key(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static enum dp_status take_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                               struct dp_error *err)
{
    struct tensor_export *e = context;
    const struct tensor_part *part = e->scanned;
    const struct dp_table_spec *spec = &part->rows.parameter->table;
    if (key.table != dp_table_id(spec->name))
        return DP_STOPPING;
    uint64_t plain = dp_unmix(key.mixed);
    const uint64_t *found =
        part->rows.count ? bsearch(&plain, part->rows.keys, part->rows.count, sizeof plain, by_key) : NULL;
    if (!found || row_bytes != dp_row_bytes(spec))
        return dp_fail(err, DP_CORRUPT, "table '%s': the row of key %" PRIu64 " does not belong there",
                       spec->name, plain);
    uint64_t index = (uint64_t)(found - part->rows.keys), at = index * spec->dim;
    uint64_t floats = part->floats - at < spec->dim ? part->floats - at : spec->dim;
    char step[8];
    dp_store_u64le(step, dp_row_step(row));
    enum dp_status st = dp_tensor_file_put(&e->file, part->step, index, step, 1, err);
    uint64_t behind = spec->dim - floats;
    for (uint32_t s = 0; st == DP_OK && s <= dp_row_slots(&spec->optimizer); s++) { /* 0: the weights */
        const char *values = (const char *)row + DP_ROW_HEADER + (size_t)4 * spec->dim * s;
        if (s > 0)
            st = dp_tensor_file_put(&e->file, part->slot[s - 1], at, values, floats, err);
        if (st == DP_OK && behind > 0)
            st = dp_tensor_file_put(&e->file, part->padding, behind * s, values + 4 * floats, behind, err);
    }
    return st;
}

static enum dp_status take_slots(struct tensor_export *e, struct dp_store_view *view, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < e->parts; i++) {
        const struct dp_store_key from = {.table = dp_table_id(e->part[i].rows.parameter->table.name)};
        e->scanned = &e->part[i];
        st = dp_store_view_rows_from(view, from, take_row, e, err);
        if (st == DP_STOPPING)
            st = DP_OK;
    }
    return st;
}

/* take: NULL: only looks whether slots can be read. */
static enum dp_status visit_stores(struct tensor_export *e,
                                   enum dp_status (*take)(struct tensor_export *e, struct dp_store_view *view,
                                                          struct dp_error *err),
                                   struct dp_error *err)
{
    const struct dp_cluster *cluster = e->run->served.cluster;
    enum dp_status st = DP_OK;
    uint32_t shard = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++)
        for (uint32_t k = 0; st == DP_OK && k < cluster->server[i].shards; k++) {
            char store[DP_PATH_MAX + 24];
            struct dp_store_view *view = NULL;
            (void)snprintf(store, sizeof store, "%s/shard-%04" PRIu32, cluster->server[i].store, shard++);
            st = dp_store_view_open(store, NULL, &view, err);
            if (st == DP_OK && dp_store_view_own(view)->state != DP_STORE_VIEW_CLEAN)
                st = dp_fail(
                    err, DP_UNCLEAN,
                    "--slots: store %s was not closed cleanly, and its journal has what it lacks: resume "
                    "the run ('downpour run --dir DIR --resume'), or start and stop its servers once, "
                    "then export again",
                    store);
            if (st == DP_OK && take)
                st = take(e, view, err);
            dp_store_view_close(&view);
        }
    return st;
}

/* ---- */

static enum dp_status write_parts(struct tensor_export *e, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < e->parts; i++) {
        if (e->part[i].rows.parameter->sparse)
            st = put_keys(e, &e->part[i], err);
        if (st == DP_OK)
            st = put_weights(e, &e->part[i], err);
    }
    return st == DP_OK && e->slots ? visit_stores(e, take_slots, err) : st;
}

static enum dp_status open_file(struct tensor_export *e, const char *path, struct dp_error *err)
{
    const struct dp_cluster *cluster = e->run->served.cluster;
    char run[16];
    (void)snprintf(run, sizeof run, "%" PRIu32, cluster->training.run);
    const struct dp_tensor_text metadata[] = {
        {"producer", "downpour"},
        {"model", cluster->model},
        {"run", run},
        {"optimizer", dp_optimizer_name(cluster->training.optimizer.kind)}};
    return dp_tensor_file_open(path, &e->tensors, metadata, sizeof metadata / sizeof metadata[0], &e->file,
                               err);
}

enum dp_status dp_export_tensors(struct dp_run_tables *run, const struct dp_parameter *only, bool slots,
                                 const char *path, size_t *tensors, struct dp_error *err)
{
    const struct dp_graph *graph = run->model.graph;
    struct tensor_export e = {.run = run, .slots = slots};
    size_t parameters = (size_t)dp_graph_parameters(graph);
    e.part = calloc(parameters + 1, sizeof *e.part);
    enum dp_status st = e.part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu tables", parameters);
    if (st == DP_OK && slots)
        st = visit_stores(&e, NULL, err);
    for (size_t p = 0; st == DP_OK && p < parameters; p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, (int)p);
        if (!only || only == parameter)
            st = add_part(&e, parameter, err);
    }
    if (st == DP_OK)
        st = open_file(&e, path, err);
    if (st == DP_OK)
        st = write_parts(&e, err);
    if (st == DP_OK)
        st = dp_tensor_file_commit(&e.file, err);
    dp_tensor_file_drop(&e.file);
    *tensors = e.tensors.count;
    for (size_t i = 0; i < e.parts; i++)
        dp_run_rows_clear(&e.part[i].rows);
    free(e.part);
    dp_tensors_clear(&e.tensors);
    return st;
}
