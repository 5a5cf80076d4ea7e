#include "deploy/checkpoint/import_tables.h"

#include "common/model/optimizer_kinds.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_MAX 2u

#define CHUNK 65536u

struct dp_import_part {
    const struct dp_tensor_set *set;
    const struct dp_parameter *parameter;
    struct dp_table_spec spec;
    uint64_t rows, floats;                                                 /* floats: of its weights */
    uint64_t *keys;                                                        /* heap; NULL: it is dense */
    const struct dp_tensor_in *weights, *step, *slot[SLOTS_MAX], *padding; /* NULL: the file has none */
    char *seen;                                                            /* heap: the weights of one row */
};

/* ---- rows */

static uint64_t key_of(const void *of, uint64_t index)
{
    const struct dp_import_part *p = of;
    return p->keys ? p->keys[index] : index;
}

/* How many floats of a row are in the model's shape; what follows is padding. */
static uint64_t floats_of(const struct dp_import_part *p, uint64_t index)
{
    uint64_t dim = p->spec.dim, left = p->floats - index * dim;
    return left < dim ? left : dim;
}

/* Floats `which` (0: the weights) of a row. */
static enum dp_status put(const struct dp_import_part *p, uint64_t index, uint32_t which, char *to,
                          struct dp_error *err)
{
    uint64_t dim = p->spec.dim, floats = floats_of(p, index);
    const struct dp_tensor_in *from = which == 0 ? p->weights : p->slot[which - 1];
    enum dp_status st = dp_tensor_set_get(p->set, from, 4 * index * dim, to, 4 * floats, err);
    return st == DP_OK && p->padding && floats < dim
               ? dp_tensor_set_get(p->set, p->padding, 4 * (dim - floats) * which, to + 4 * floats,
                                   4 * (dim - floats), err)
               : st;
}

static enum dp_status step_of(const struct dp_import_part *p, uint64_t index, uint64_t *step,
                              struct dp_error *err)
{
    char bytes[8];
    *step = 0;
    enum dp_status st = p->step ? dp_tensor_set_get(p->set, p->step, 8 * index, bytes, 8, err) : DP_OK;
    if (st == DP_OK && p->step)
        *step = dp_load_u64le(bytes);
    return st;
}

static enum dp_status fill(const void *of, uint64_t index, void *row, bool *stored, struct dp_error *err)
{
    const struct dp_import_part *p = of;
    uint64_t dim = p->spec.dim, floats = floats_of(p, index), step = 0;
    char *values = (char *)row + DP_ROW_HEADER;
    memcpy(p->seen, values, 4 * dim);
    enum dp_status st = step_of(p, index, &step, err);
    if (st == DP_OK)
        st = put(p, index, 0, values, err);
    if (st != DP_OK)
        return st;
    bool listed = p->keys && !p->step; /* all that is known of the row is that it is there */
    *stored = listed || step > 0 || memcmp(values, p->seen, 4 * floats) != 0;
    dp_row_set_step(row, (uint32_t)step);
    for (uint32_t s = 0; st == DP_OK && p->step && s < dp_row_slots(&p->spec.optimizer); s++)
        st = put(p, index, s + 1, values + 4 * dim * (s + 1), err);
    return st;
}

static enum dp_status unchanged(const void *of, struct dp_error *err)
{
    const struct dp_import_part *p = of;
    const struct dp_tensor_in *const all[] = {p->weights, p->step, p->slot[0], p->slot[1], p->padding};
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof all / sizeof all[0]; i++)
        if (all[i])
            st = dp_tensor_set_unchanged(p->set, all[i], err);
    return st;
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
    *out = dp_tensor_set_find(m->set, name);
    if (!*out && m->set->directory)
        return dp_fail(err, DP_DATA, "there is no file '%s.npy', which the model needs%s", name,
                       strcmp(what, "keys") == 0 ? ": the keys of its rows, in the rows' order, as '<i8' (an "
                                                   "export of this version has it)"
                                                 : "");
    if (!*out)
        return dp_fail(err, DP_DATA, "the file has no tensor '%s', which the model needs", name);
    (*out)->taken = true;
    return DP_OK;
}

/* Elements first .. first + *count - 1, as many as there is room for. */
static enum dp_status chunk(const struct import_making *m, const struct dp_tensor_in *t, uint64_t first,
                            uint64_t element, char bytes[CHUNK], uint64_t *count, struct dp_error *err)
{
    uint64_t left = t->elements - first;
    *count = left < CHUNK / element ? left : CHUNK / element;
    return dp_tensor_set_get(m->set, t, element * first, bytes, element * *count, err);
}

static bool is_finite(uint32_t bits)
{
    return (bits & 0x7f800000u) != 0x7f800000u;
}

static bool is_square(uint32_t bits)
{
    return bits <= 0x80000000u; /* -0 is */
}

/* Elements from .. to - 1. */
static enum dp_status check_floats(const struct import_making *m, const struct dp_tensor_in *t, uint64_t from,
                                   uint64_t to, bool (*fits)(uint32_t bits), const char *what,
                                   struct dp_error *err)
{
    char bytes[CHUNK];
    uint64_t count = 0;
    for (uint64_t first = from; first < to; first += count) {
        enum dp_status st = chunk(m, t, first, 4, bytes, &count, err);
        count = count < to - first ? count : to - first;
        if (st != DP_OK)
            return st;
        for (uint64_t i = 0; i < count; i++)
            if (!fits(dp_load_u32le(bytes + 4 * i)))
                return dp_fail(err, DP_DATA, "tensor '%s': element %" PRIu64 " %s", t->name, first + i, what);
    }
    return DP_OK;
}

/* F32 [rows, width]. */
static enum dp_status take_floats(const struct import_making *m, const char *what, uint64_t rows,
                                  uint64_t width, const struct dp_tensor_in **out, struct dp_error *err)
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
                       dp_tensor_set_shape(t, shape), rows, width);
    *out = t;
    return check_floats(m, t, 0, t->elements, is_finite, "is not finite (NaN or infinite)", err);
}

/* I64 [rows]; keys: U64, too, and as many as there are. */
static enum dp_status take_numbers(const struct import_making *m, const char *what, bool keys, uint64_t *rows,
                                   const struct dp_tensor_in **out, struct dp_error *err)
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
                       dp_tensor_set_shape(t, shape), *rows);
    *out = t;
    return DP_OK;
}

/* Each within its bounds; values: [elements], or NULL. */
static enum dp_status read_numbers(const struct import_making *m, const struct dp_tensor_in *t, bool keys,
                                   uint64_t *values, struct dp_error *err)
{
    char bytes[CHUNK];
    uint64_t count = 0, max = !keys ? UINT32_MAX : strcmp(t->type, "I64") == 0 ? INT64_MAX : UINT64_MAX;
    for (uint64_t first = 0; first < t->elements; first += count) {
        enum dp_status st = chunk(m, t, first, 8, bytes, &count, err);
        if (st != DP_OK)
            return st;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t value = dp_load_u64le(bytes + 8 * i);
            if (value > max)
                return dp_fail(err, DP_DATA,
                               "tensor '%s': element %" PRIu64 " is %" PRId64 ", which it cannot be", t->name,
                               first + i, (int64_t)value);
            if (values)
                values[first + i] = value;
        }
    }
    return DP_OK;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static bool ascending(const uint64_t *keys, uint64_t count)
{
    for (uint64_t i = 1; i < count; i++)
        if (keys[i] <= keys[i - 1])
            return false;
    return true;
}

static enum dp_status check_once(const char *name, const uint64_t *keys, uint64_t count, struct dp_error *err)
{
    if (ascending(keys, count))
        return DP_OK;
    uint64_t *sorted = malloc(count * sizeof *sorted), i = 1;
    if (!sorted)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " keys", count);
    memcpy(sorted, keys, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_number);
    while (i < count && sorted[i] != sorted[i - 1])
        i++;
    enum dp_status st = i == count
                            ? DP_OK
                            : dp_fail(err, DP_DATA,
                                      "tensor '%s': key %" PRIu64 " is there more than once: give each "
                                      "key one row",
                                      name, sorted[i]);
    free(sorted);
    return st;
}

static enum dp_status take_keys(const struct import_making *m, uint64_t *rows, struct dp_error *err)
{
    const struct dp_tensor_in *t;
    enum dp_status st = take_numbers(m, "keys", true, rows, &t, err);
    if (st != DP_OK)
        return st;
    m->part->keys = malloc((*rows + 1) * sizeof *m->part->keys); /* no more than the file has bytes */
    if (!m->part->keys)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " keys", *rows);
    st = read_numbers(m, t, true, m->part->keys, err);
    return st == DP_OK ? check_once(t->name, m->part->keys, *rows, err) : st;
}

/* Its root is taken at the next push. */
static bool is_of_squares(const struct dp_optimizer_spec *optimizer, uint32_t slot)
{
    return dp_optimizer_traits(optimizer)->squares == slot + 1;
}

static enum dp_status check_squares(const struct import_making *m, const struct dp_tensor_in *t,
                                    uint64_t from, uint64_t to, struct dp_error *err)
{
    return check_floats(m, t, from, to, is_square, "is negative, and it is a sum of squares", err);
}

static enum dp_status take_slots(const struct import_making *m, uint64_t rows, uint64_t width,
                                 struct dp_error *err)
{
    struct dp_import_part *part = m->part;
    uint32_t slots = dp_row_slots(&part->spec.optimizer);
    uint64_t behind = part->rows * part->spec.dim - part->floats;
    char padding[DP_TABLE_NAME_MAX + 32];
    enum dp_status st = take_numbers(m, "step", false, &part->rows, &part->step, err);
    if (st == DP_OK)
        st = read_numbers(m, part->step, false, NULL, err);
    for (uint32_t s = 0; st == DP_OK && s < slots; s++) {
        const char *name = dp_row_slot_name(&part->spec.optimizer, s);
        st = take_floats(m, name, rows, width, &part->slot[s], err);
        if (st == DP_OK && is_of_squares(&part->spec.optimizer, s))
            st = check_squares(m, part->slot[s], 0, part->slot[s]->elements, err);
    }
    (void)snprintf(padding, sizeof padding, "%s.padding", part->spec.name);
    if (st == DP_OK && behind > 0 && dp_tensor_set_find(m->set, padding))
        st = take_floats(m, "padding", slots + 1, behind, &part->padding, err);
    for (uint32_t s = 0; st == DP_OK && part->padding && s < slots; s++)
        if (is_of_squares(&part->spec.optimizer, s))
            st = check_squares(m, part->padding, behind * (s + 1), behind * (s + 2), err);
    return st;
}

static enum dp_status take_part(const struct import_making *m, bool slots, struct dp_error *err)
{
    struct dp_import_part *part = m->part;
    const struct dp_parameter *p = part->parameter;
    uint64_t dim = part->spec.dim, rows = p->rows, width = p->width;
    enum dp_status st = DP_OK;
    if (p->sparse)
        st = take_keys(m, &rows, err);
    if (st == DP_OK)
        st = take_floats(m, p->sparse && !m->set->directory ? "weights" : "", rows, width, &part->weights,
                         err);
    part->floats = rows * width;
    part->rows = (part->floats + dim - 1) / dim;
    return st == DP_OK && slots ? take_slots(m, rows, width, err) : st;
}

static bool has_slots(const struct dp_graph *graph, const struct dp_tensor_set *set)
{
    for (int i = 0; i < dp_graph_parameters(graph); i++) {
        char name[DP_TABLE_NAME_MAX + 32];
        (void)snprintf(name, sizeof name, "%s.step", dp_graph_parameter(graph, i)->table.name);
        if (dp_tensor_set_find(set, name))
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
        part->set = set;
        part->seen = malloc(4 * (size_t)part->spec.dim);
        const struct import_making making = {set, part};
        st = part->seen ? take_part(&making, out->slots, err)
                        : dp_fail(err, DP_NOMEM, "no memory for a row of table '%s'", part->spec.name);
        out->table[i] = (struct dp_import_table){.spec = part->spec,
                                                 .rows = part->rows,
                                                 .of = part,
                                                 .key = key_of,
                                                 .fill = fill,
                                                 .unchanged = unchanged};
        out->count = i + 1;
    }
    return st == DP_OK ? check_all_taken(set, out, err) : st;
}

void dp_import_tables_clear(struct dp_import_tables *tables)
{
    for (uint32_t i = 0; i < tables->count; i++) {
        free(tables->part[i].keys);
        free(tables->part[i].seen);
    }
    free(tables->table);
    free(tables->part);
    *tables = (struct dp_import_tables){0};
}
