#include "deploy/checkpoint/import_tables.h"

#include "common/model/row.h"
#include "deploy/cli/inspect_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX 2u

struct dp_import_part {
    const struct dp_parameter *parameter;
    struct dp_table_spec spec;
    uint64_t rows, floats;                                                  /* floats: of its weights */
    const unsigned char *keys, *weights, *step, *slot[SLOTS_MAX], *padding; /* NULL: the file has none */
};

/* ---- rows */

static uint64_t key_of(const void *of, uint64_t index)
{
    const struct dp_import_part *p = of;
    return p->keys ? dp_load_u64le(p->keys + 8 * index) : index;
}

/* Floats `which` (0: the weights) of a row: what is in the model's shape, then the padding. */
static void put(const struct dp_import_part *p, uint64_t index, uint32_t which, char *to)
{
    uint64_t dim = p->spec.dim, at = index * dim, floats = p->floats - at < dim ? p->floats - at : dim;
    const unsigned char *from = which == 0 ? p->weights : p->slot[which - 1];
    memcpy(to, from + 4 * at, 4 * floats);
    if (p->padding && floats < dim)
        memcpy(to + 4 * floats, p->padding + 4 * (dim - floats) * which, 4 * (dim - floats));
}

static bool fill(const void *of, uint64_t index, void *row)
{
    const struct dp_import_part *p = of;
    uint64_t dim = p->spec.dim, at = index * dim, floats = p->floats - at < dim ? p->floats - at : dim;
    uint64_t step = p->step ? dp_load_u64le(p->step + 8 * index) : 0;
    char *values = (char *)row + DP_ROW_HEADER;
    if (!p->keys && step == 0 && memcmp(values, p->weights + 4 * at, 4 * floats) == 0)
        return false;
    put(p, index, 0, values);
    dp_row_set_step(row, (uint32_t)step);
    for (uint32_t s = 0; p->step && s < dp_row_slots(&p->spec.optimizer); s++)
        put(p, index, s + 1, values + 4 * dim * (s + 1));
    return true;
}

/* ---- tensors */

struct import_making {
    const struct dp_tensor_set *set;
    struct dp_import_part *part;
};

static enum dp_status take(const struct import_making *m, const char *what, struct dp_tensor_in **out,
                           struct dp_error *err)
{
    char name[DP_TABLE_NAME_MAX + 32];
    (void)snprintf(name, sizeof name, "%s%s%s", m->part->spec.name, what[0] ? "." : "", what);
    *out = dp_tensor_read_find(m->set, name);
    if (!*out)
        return dp_fail(err, DP_DATA, "the file has no tensor '%s', which the model needs", name);
    (*out)->taken = true;
    return DP_OK;
}

static enum dp_status check_finite(const struct dp_tensor_in *t, struct dp_error *err)
{
    for (uint64_t i = 0; i < t->elements; i++)
        if ((dp_load_u32le(t->data + 4 * i) & 0x7f800000u) == 0x7f800000u)
            return dp_fail(err, DP_DATA, "tensor '%s': element %" PRIu64 " is not finite (NaN or infinite)",
                           t->name, i);
    return DP_OK;
}

/* F32 [rows, width]. */
static enum dp_status take_floats(const struct import_making *m, const char *what, uint64_t rows,
                                  uint64_t width, const unsigned char **out, struct dp_error *err)
{
    struct dp_tensor_in *t;
    char shape[DP_TENSOR_SHAPE_BYTES];
    enum dp_status st = take(m, what, &t, err);
    if (st != DP_OK)
        return st;
    bool matrix = t->dimensions == 2 && t->shape[0] == rows && t->shape[1] == width,
         vector = rows == 1 && t->dimensions == 1 && t->shape[0] == width;
    if (strcmp(t->type, "F32") != 0 || !(matrix || vector))
        return dp_fail(err, DP_DATA, "tensor '%s' is %s, and must be F32 [%" PRIu64 ", %" PRIu64 "]", t->name,
                       dp_tensor_read_shape(t, shape), rows, width);
    *out = t->data;
    return check_finite(t, err);
}

/* I64 [rows]; keys: U64, too, and as many as there are. */
static enum dp_status take_numbers(const struct import_making *m, const char *what, bool keys, uint64_t *rows,
                                   const unsigned char **out, struct dp_error *err)
{
    struct dp_tensor_in *t;
    char shape[DP_TENSOR_SHAPE_BYTES];
    enum dp_status st = take(m, what, &t, err);
    if (st != DP_OK)
        return st;
    bool is_signed = strcmp(t->type, "I64") == 0, fits = is_signed || (keys && strcmp(t->type, "U64") == 0);
    if (keys)
        *rows = t->elements;
    if (!fits || t->dimensions != 1 || t->shape[0] != *rows)
        return dp_fail(err, DP_DATA, "tensor '%s' is %s, and must be I64 [%" PRIu64 "]", t->name,
                       dp_tensor_read_shape(t, shape), *rows);
    *out = t->data;
    for (uint64_t i = 0; i < *rows; i++) {
        uint64_t value = dp_load_u64le(t->data + 8 * i),
                 before = i ? dp_load_u64le(t->data + 8 * (i - 1)) : 0;
        if ((is_signed && value > INT64_MAX) || (!keys && value > UINT32_MAX))
            return dp_fail(err, DP_DATA,
                           "tensor '%s': element %" PRIu64 " is %" PRId64 ", which it cannot be", t->name, i,
                           (int64_t)value);
        if (keys && i > 0 && value <= before)
            return dp_fail(err, DP_DATA,
                           "tensor '%s': key %" PRIu64 " stands behind key %" PRIu64
                           ": keys must ascend, each once (sort keys and weights together)",
                           t->name, value, before);
    }
    return DP_OK;
}

/* Its root is taken at the next push: of Adam's v, Adagrad's squares, FTRL's n. */
static bool is_of_squares(const struct dp_optimizer_spec *optimizer, uint32_t slot)
{
    return optimizer->kind == DP_OPT_ADAGRAD ||
           (slot == 1 && (optimizer->kind == DP_OPT_ADAM || optimizer->kind == DP_OPT_FTRL));
}

static enum dp_status check_squares(const char *table, const char *slot, const unsigned char *data,
                                    uint64_t elements, struct dp_error *err)
{
    for (uint64_t i = 0; i < elements; i++) {
        uint32_t bits = dp_load_u32le(data + 4 * i);
        if (bits > 0x80000000u) /* below -0 */
            return dp_fail(err, DP_DATA,
                           "tensor '%s.%s': element %" PRIu64 " is negative, and it is a sum of squares",
                           table, slot, i);
    }
    return DP_OK;
}

static enum dp_status take_slots(const struct import_making *m, uint64_t rows, uint64_t width,
                                 struct dp_error *err)
{
    struct dp_import_part *part = m->part;
    uint32_t slots = dp_row_slots(&part->spec.optimizer);
    uint64_t behind = part->rows * part->spec.dim - part->floats;
    char padding[DP_TABLE_NAME_MAX + 32];
    enum dp_status st = take_numbers(m, "step", false, &part->rows, &part->step, err);
    for (uint32_t s = 0; st == DP_OK && s < slots; s++) {
        const char *name = dp_show_slot_name(&part->spec.optimizer, s);
        st = take_floats(m, name, rows, width, &part->slot[s], err);
        if (st == DP_OK && is_of_squares(&part->spec.optimizer, s))
            st = check_squares(part->spec.name, name, part->slot[s], rows * width, err);
    }
    (void)snprintf(padding, sizeof padding, "%s.padding", part->spec.name);
    if (st == DP_OK && behind > 0 && dp_tensor_read_find(m->set, padding))
        st = take_floats(m, "padding", slots + 1, behind, &part->padding, err);
    for (uint32_t s = 0; st == DP_OK && part->padding && s < slots; s++)
        if (is_of_squares(&part->spec.optimizer, s))
            st = check_squares(part->spec.name, "padding", part->padding + 4 * behind * (s + 1), behind, err);
    return st;
}

static enum dp_status take_part(const struct import_making *m, bool slots, struct dp_error *err)
{
    struct dp_import_part *part = m->part;
    const struct dp_parameter *p = part->parameter;
    uint64_t dim = part->spec.dim, rows = p->rows, width = p->width;
    enum dp_status st = DP_OK;
    if (p->sparse)
        st = take_numbers(m, "keys", true, &rows, &part->keys, err);
    if (st == DP_OK)
        st = take_floats(m, p->sparse ? "weights" : "", rows, width, &part->weights, err);
    part->floats = rows * width;
    part->rows = (part->floats + dim - 1) / dim;
    return st == DP_OK && slots ? take_slots(m, rows, width, err) : st;
}

static bool has_slots(const struct dp_graph *graph, const struct dp_tensor_set *set)
{
    for (int i = 0; i < dp_graph_parameters(graph); i++) {
        char name[DP_TABLE_NAME_MAX + 32];
        (void)snprintf(name, sizeof name, "%s.step", dp_graph_parameter(graph, i)->table.name);
        if (dp_tensor_read_find(set, name))
            return true;
    }
    return false;
}

static enum dp_status check_all_taken(const struct dp_tensor_set *set, const struct dp_import_tables *tables,
                                      struct dp_error *err)
{
    char names[128] = "";
    for (uint32_t i = 0; i < tables->count; i++) {
        size_t len = strlen(names);
        (void)snprintf(names + len, sizeof names - len, "%s%s", len ? ", " : "", tables->table[i].spec.name);
    }
    for (size_t i = 0; i < set->count; i++)
        if (!set->one[i].taken)
            return dp_fail(err, DP_DATA, "tensor '%.64s' is of no table of the model, which has %s%s",
                           set->one[i].name, names, tables->slots ? "" : " (slots: only with TABLE.step)");
    return DP_OK;
}

enum dp_status dp_import_tables_make(const struct dp_graph *graph, const struct dp_tensor_set *set,
                                     struct dp_import_tables *out, struct dp_error *err)
{
    uint32_t count = (uint32_t)dp_graph_parameters(graph);
    *out = (struct dp_import_tables){.table = calloc(count + 1, sizeof *out->table),
                                     .part = calloc(count + 1, sizeof *out->part),
                                     .slots = has_slots(graph, set)};
    enum dp_status st =
        out->table && out->part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " tables", count);
    for (uint32_t i = 0; st == DP_OK && i < count; i++) {
        struct dp_import_part *part = &out->part[i];
        part->parameter = dp_graph_parameter(graph, (int)i);
        part->spec = part->parameter->table;
        const struct import_making making = {set, part};
        st = take_part(&making, out->slots, err);
        out->table[i] = (struct dp_import_table){
            .spec = part->spec, .rows = part->rows, .of = part, .key = key_of, .fill = fill};
        out->count = i + 1;
    }
    return st == DP_OK ? check_all_taken(set, out, err) : st;
}

void dp_import_tables_clear(struct dp_import_tables *tables)
{
    free(tables->table);
    free(tables->part);
    *tables = (struct dp_import_tables){0};
}
