#include "deploy/weights/export_tensors.h"

#include "common/base/bytes.h"
#include "common/model/row.h"
#include "common/tensors/tensor_file.h"
#include "deploy/weights/slot_rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX    2u
#define KEYS_AT_ONCE 4096u

/* A parameter, with the tensors that it becomes. */
struct tensor_part {
    struct dp_weight_rows rows;
    uint64_t floats; /* of its weights; behind them is padding */
    size_t keys, weights, step, slot[SLOTS_MAX], padding;
};

struct tensor_export {
    struct dp_weight_tables *run;
    bool slots;
    struct tensor_part *part;
    size_t parts;
    struct dp_tensors tensors;
    bool directory; /* of .npy files, else one file */
    struct dp_tensor_file file;
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
    enum dp_status st = dp_weight_rows_list(e->run, p, &part->rows, err);
    if (st != DP_OK)
        return st;
    size_t count = part->rows.count;
    uint64_t rows = p->sparse ? count : p->rows;
    uint32_t slots = e->slots ? dp_row_slots(&p->table.optimizer) : 0;
    part->floats = rows * p->width;
    bool fits = true;
    for (size_t i = 0; i < count; i++)
        fits = fits && part->rows.keys[i] <= INT64_MAX;
    if (p->sparse)
        st = add(e, part, "keys", fits ? DP_TENSOR_I64 : DP_TENSOR_U64, count, 0, &part->keys, err);
    if (st == DP_OK)
        st = add(e, part, p->sparse && !e->directory ? "weights" : "", DP_TENSOR_F32, rows, p->width,
                 &part->weights, err);
    if (st == DP_OK && e->slots)
        st = add(e, part, "step", DP_TENSOR_I64, count, 0, &part->step, err);
    for (uint32_t s = 0; st == DP_OK && s < slots; s++)
        st = add(e, part, dp_row_slot_name(&p->table.optimizer, s), DP_TENSOR_F32, rows, p->width,
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
    size_t portion = dp_weight_rows_portion(&part->rows), dim = part->rows.parameter->table.dim;
    float *values = malloc(portion * dim * sizeof *values);
    enum dp_status st = values ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu rows", portion);
    for (size_t first = 0; st == DP_OK && first < part->rows.count; first += portion) {
        size_t left = part->rows.count - first, count = left < portion ? left : portion;
        uint64_t at = (uint64_t)first * dim, behind = part->floats - at;
        st = dp_weight_rows_pull(e->run, &part->rows, first, count, values, err);
        uint64_t floats = (uint64_t)count * dim < behind ? (uint64_t)count * dim : behind;
        if (st == DP_OK)
            st = dp_tensor_file_put(&e->file, part->weights, at, bytes_of(values, floats), floats, err);
    }
    free(values);
    return st;
}

/* ---- slots */

static enum dp_status put_slots(void *context, size_t which, size_t index, const void *row,
                                struct dp_error *err)
{
    struct tensor_export *e = context;
    const struct tensor_part *part = &e->part[which];
    const struct dp_table_spec *spec = &part->rows.parameter->table;
    uint64_t at = (uint64_t)index * spec->dim, floats = part->floats - at;
    floats = floats < spec->dim ? floats : spec->dim;
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

static enum dp_status write_slots(struct tensor_export *e, struct dp_error *err)
{
    const struct dp_weight_rows **list = calloc(e->parts + 1, sizeof *list);
    if (!list)
        return dp_fail(err, DP_NOMEM, "no memory for %zu tables", e->parts);
    for (size_t i = 0; i < e->parts; i++)
        list[i] = &e->part[i].rows;
    enum dp_status st = dp_slot_rows_visit(e->run->served.cluster, list, e->parts, put_slots, e, err);
    free(list);
    return st;
}

/* ---- all */

static enum dp_status write_parts(struct tensor_export *e, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < e->parts; i++) {
        if (e->part[i].rows.parameter->sparse)
            st = put_keys(e, &e->part[i], err);
        if (st == DP_OK)
            st = put_weights(e, &e->part[i], err);
    }
    return st == DP_OK && e->slots ? write_slots(e, err) : st;
}

static enum dp_status open_file(struct tensor_export *e, const char *path, struct dp_error *err)
{
    const struct dp_cluster *cluster = e->run->served.cluster;
    char run[16];
    (void)snprintf(run, sizeof run, "%" PRIu32, cluster->training.run);
    const struct dp_label_scale *scale = &e->run->label_scale;
    char mean[32], deviation[32];
    (void)snprintf(mean, sizeof mean, "%.17g", scale->mean);
    (void)snprintf(deviation, sizeof deviation, "%.17g", scale->deviation);
    const struct dp_tensor_text metadata[] = {
        {"producer", "downpour"},
        {"model", cluster->model},
        {"run", run},
        {"optimizer", dp_optimizer_name(cluster->training.optimizer.kind)},
        {"label_mean", mean}, /* label = label_mean + label_deviation * output */
        {"label_deviation", deviation}};
    const size_t texts = sizeof metadata / sizeof metadata[0] - (scale->deviation > 0 ? 0 : 2);
    return e->directory ? dp_npy_files_open(path, &e->tensors, &e->file, err)
                        : dp_tensor_file_open(path, &e->tensors, metadata, texts, &e->file, err);
}

/* Before what they belong to. */
static enum dp_status write_names(const struct tensor_export *e, const char *directory,
                                  struct dp_exported *out, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < e->parts; i++) {
        const struct dp_weight_rows *rows = &e->part[i].rows;
        char path[DP_PATH_MAX + 1];
        if (snprintf(path, sizeof path, "%s/%s.npy", directory, rows->parameter->table.name) > DP_PATH_MAX)
            return dp_fail(err, DP_ARGUMENT, "--to: the path is too long");
        st = dp_export_names(e->run, rows, path, &out[i], err);
    }
    return st;
}

/* out: of a directory, else NULL. */
static enum dp_status export_parts(struct tensor_export *e, const struct dp_parameter *only, const char *path,
                                   struct dp_exported *out, struct dp_error *err)
{
    const struct dp_graph *graph = e->run->model.graph;
    size_t parameters = (size_t)dp_graph_parameters(graph);
    e->part = calloc(parameters + 1, sizeof *e->part);
    enum dp_status st = e->part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %zu tables", parameters);
    if (st == DP_OK && e->slots)
        st = dp_slot_rows_check(e->run->served.cluster, err);
    for (size_t p = 0; st == DP_OK && p < parameters; p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, (int)p);
        if (!only || only == parameter)
            st = add_part(e, parameter, err);
    }
    if (st == DP_OK && out)
        st = write_names(e, path, out, err);
    if (st == DP_OK)
        st = open_file(e, path, err);
    if (st == DP_OK)
        st = write_parts(e, err);
    if (st == DP_OK)
        st = dp_tensor_file_commit(&e->file, err);
    return st;
}

static void clear(struct tensor_export *e)
{
    dp_tensor_file_drop(&e->file);
    for (size_t i = 0; i < e->parts; i++)
        dp_weight_rows_clear(&e->part[i].rows);
    free(e->part);
    dp_tensors_clear(&e->tensors);
}

enum dp_status dp_export_tensors(struct dp_weight_tables *run, const struct dp_parameter *only, bool slots,
                                 const char *path, size_t *tensors, struct dp_error *err)
{
    struct tensor_export e = {.run = run, .slots = slots};
    enum dp_status st = export_parts(&e, only, path, NULL, err);
    *tensors = e.tensors.count;
    clear(&e);
    return st;
}

enum dp_status dp_export_npy(struct dp_weight_tables *run, bool slots, const char *directory,
                             struct dp_exported *out, struct dp_error *err)
{
    struct tensor_export e = {.run = run, .slots = slots, .directory = true};
    enum dp_status st = export_parts(&e, NULL, directory, out, err);
    clear(&e);
    return st;
}
