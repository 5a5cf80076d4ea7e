#include "worker/read/tabular_header.h"

#include "common/base/hash.h"
#include "common/base/text.h"
#include "worker/read/column_hint.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_LINES  1000u
#define COLUMNS_MAX 65536u
#define CODE_DIGITS 5u  /* years have fewer */
#define RISES_MIN   20u /* of fewer rows it may be chance */

static enum dp_status no_such(const struct dp_schema *schema, const char *what, struct dp_cell name,
                              struct dp_error *err)
{
    char names[200] = "";
    for (size_t i = 0, len = 0; i < schema->columns && len < sizeof names; i++)
        len += (size_t)snprintf(names + len, sizeof names - len, "%s%s", i ? ", " : "",
                                dp_cell_show(dp_cell_of(schema->column[i].name)).text);
    dp_text_mend_end(names);
    char hint[DP_COLUMN_HINT_BYTES];
    return dp_fail(err, DP_DATA, "%s '%s', which is no column of this file; there are: %s%s", what,
                   dp_cell_show(name).text, names, dp_column_hint(schema, dp_cell_show(name).text, hint));
}

static uint64_t hash_of(struct dp_cell name)
{
    return dp_hash_bytes(DP_HASH_BEGIN, name.at, (size_t)(name.end - name.at));
}

uint32_t dp_tabular_place(struct dp_name_set *names, struct dp_cell name)
{
    const struct dp_name_entry *found = dp_name_set_find(names, 0, hash_of(name));
    return found ? (uint32_t)found->key : UINT32_MAX;
}

enum dp_status dp_tabular_add_name(struct dp_name_set *names, struct dp_cell name, uint32_t place,
                                   struct dp_error *err)
{
    const struct dp_vocab_name column = {.key = place, .text = name.at, .len = (size_t)(name.end - name.at)};
    if (dp_name_set_find(names, 0, hash_of(name)))
        return dp_fail(err, DP_DATA, "two columns are named '%s'", dp_cell_show(name).text);
    return dp_name_set_add(names, &column, hash_of(name), 0, err);
}

static struct dp_schema_column *find_column(struct dp_tabular_header *header, struct dp_cell name)
{
    uint32_t place = dp_tabular_place(&header->names, name);
    return place == UINT32_MAX ? NULL : &header->schema.column[place];
}

static enum dp_status set_kind(struct dp_tabular_header *header, struct dp_cell name,
                               enum dp_column_kind kind, const char *flag, struct dp_error *err)
{
    static const char *const is[DP_COLUMN_KINDS] = {
        [DP_COLUMN_CATEGORY] = "a category", [DP_COLUMN_LIST] = "a list",
        [DP_COLUMN_LABEL] = "the label",     [DP_COLUMN_IGNORED] = "ignored",
        [DP_COLUMN_WEIGHT] = "the weight",   [DP_COLUMN_ID] = "the id"};
    struct dp_schema_column *column = find_column(header, name);
    if (!column)
        return no_such(&header->schema, flag, name, err);
    if (column->kind != DP_COLUMN_NUMBER && column->kind != kind)
        return dp_fail(err, DP_DATA, "column '%s' is %s and cannot be %s too", dp_cell_show(name).text,
                       is[column->kind], is[kind]);
    column->kind = kind;
    return DP_OK;
}

/* A column by its name, or by its number from 1. */
static struct dp_cell by_number(struct dp_tabular_header *header, struct dp_cell name)
{
    uint64_t number = 0;
    bool is = dp_tabular_place(&header->names, name) == UINT32_MAX &&
              dp_number_index(name.at, name.end, &number) == name.end && number > 0 &&
              number <= header->schema.columns;
    return is ? dp_cell_of(header->schema.column[number - 1].name) : name;
}

/* Each text of "a,b", without the blanks around it: none has a comma in it. */
static enum dp_status each_text(const char *list, struct dp_tabular_header *header, enum dp_column_kind kind,
                                const char *flag, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (const char *at = list; at && st == DP_OK && *at;) {
        size_t len = strcspn(at, ",");
        struct dp_cell text = dp_cell_trim((struct dp_cell){at, at + len});
        st = kind == DP_COLUMN_KINDS ? dp_schema_add_missing(&header->schema, text, err)
                                     : set_kind(header, by_number(header, text), kind, flag, err);
        at += len + (at[len] == ',');
    }
    return st;
}

static bool has_features(const struct dp_schema *schema)
{
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind <= DP_COLUMN_LIST)
            return true;
    return false;
}

/* What the options say of columns, the label's first. */
static enum dp_status name_kinds(struct dp_tabular_header *header, struct dp_error *err)
{
    const struct dp_dataset_options *o = header->options;
    enum dp_status st =
        set_kind(header, dp_cell_of(o->label), DP_COLUMN_LABEL, "--label (data.label) is", err);
    if (st == DP_OK && o->id)
        st = set_kind(header, dp_cell_of(o->id), DP_COLUMN_ID, "--id (data.id) is", err);
    if (st == DP_OK && o->weight)
        st = set_kind(header, by_number(header, dp_cell_of(o->weight)), DP_COLUMN_WEIGHT,
                      "--weight (data.weight) is", err);
    if (st == DP_OK)
        st = each_text(o->ignore, header, DP_COLUMN_IGNORED, "--ignore (data.ignore) names", err);
    if (st == DP_OK)
        st =
            each_text(o->categories, header, DP_COLUMN_CATEGORY, "--categories (data.categories) names", err);
    if (st == DP_OK)
        st = each_text(o->lists, header, DP_COLUMN_LIST, "--lists (data.lists) names", err);
    if (st == DP_OK && !has_features(&header->schema))
        return dp_fail(err, DP_DATA,
                       "no column is left to train on, without the label, --ignore, --id and --weight "
                       "(data.ignore, data.id, data.weight)");
    return st == DP_OK ? each_text(o->missing, header, DP_COLUMN_KINDS, NULL, err) : st;
}

/* One more column; its name must be a new one. */
static enum dp_status add_column(struct dp_tabular_header *header, struct dp_cell name, struct dp_error *err)
{
    struct dp_schema *schema = &header->schema;
    struct dp_schema_column *column = &schema->column[schema->columns];
    size_t len = (size_t)(name.end - name.at);
    if (len == 0)
        return dp_fail(err, DP_DATA,
                       "column %" PRIu32
                       " has no name: expected a header with a name for each column (pandas writes its index "
                       "without one: index=False)",
                       schema->columns + 1);
    column->name = strndup(name.at, len);
    if (!column->name)
        return dp_fail(err, DP_NOMEM, "no memory for the names of columns");
    return dp_tabular_add_name(&header->names, name, schema->columns++, err);
}

static enum dp_status read_names(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct dp_tabular_header *header = self;
    if (record->count > COLUMNS_MAX)
        return dp_fail(err, DP_DATA, "more than %u columns", COLUMNS_MAX);
    header->schema.column = calloc(record->count, sizeof *header->schema.column);
    header->by = calloc(record->count, sizeof *header->by);
    if (!header->schema.column || !header->by)
        return dp_fail(err, DP_NOMEM, "no memory for %zu columns", record->count);
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < record->count; i++)
        st = add_column(header, dp_cell_trim(record->cells[i]), err);
    return st == DP_OK ? name_kinds(header, err) : st;
}

/* "1,5" and "1.234,5": taken for texts, such numbers would be as many categories. */
static bool has_comma(struct dp_cell cell)
{
    bool comma = false, digit = false;
    if (cell.at < cell.end && (*cell.at == '-' || *cell.at == '+'))
        cell.at++;
    for (const char *at = cell.at; at < cell.end; at++) {
        bool is_digit = *at >= '0' && *at <= '9';
        digit |= is_digit;
        comma |= *at == ',';
        if (!is_digit && *at != ',' && *at != '.')
            return false;
    }
    return comma && digit && cell.at[0] != ',' && cell.end[-1] != ',';
}

/* The place after a number that may have commas between thousands. */
static const char *after_number(const char *at, const char *end, bool *thousands)
{
    const char *to = at;
    while (to < end && ((*to >= '0' && *to <= '9') || *to == '.' ||
                        (*to == ',' && to > at && end - to > 3 && to[1] >= '0' && to[1] <= '9'))) {
        *thousands |= *to == ',';
        to++;
    }
    return to;
}

/* A word and a whole number are a code: "district 7", "Room-12". "EUR 7.5" is an amount, and so is "US$7". */
static bool is_named(struct dp_cell cell, size_t before)
{
    const unsigned char first = before > 0 ? (unsigned char)cell.at[0] : 0;
    bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                  (first >= 0xc3 && first != 0xe2); /* 0xe2: of most currencies' signs */
    return letter && !memchr(cell.at, '$', before) &&
           !memchr(cell.at + before, '.', (size_t)(cell.end - cell.at) - before);
}

/* A sign ("$", "US$", "EUR ") ends in no letter and no digit; a unit ("%", " km", "kg") has no digit. What is
 * not so is a text. */
static bool split_unit(struct dp_cell cell, struct dp_tabular_unit *out)
{
    const char *at = cell.at + (cell.at < cell.end && (*cell.at == '-' || *cell.at == '+')), *from = at;
    while (at < cell.end && (*at < '0' || *at > '9'))
        at++;
    size_t before = (size_t)(at - from) - (at > from && at[-1] == '-'); /* "$-5" */
    const char *to = after_number(at, cell.end, &out->thousands);
    size_t after = (size_t)(cell.end - to);
    if (at == cell.end || before >= sizeof out->before || after >= sizeof out->after ||
        (before > 0 && ((from[before - 1] | 32) >= 'a' && (from[before - 1] | 32) <= 'z')) ||
        (after > 0 && strchr("-/:.,_", *to)) || is_named((struct dp_cell){from, cell.end}, before))
        return false;
    for (const char *rest = to; rest < cell.end; rest++)
        if (*rest >= '0' && *rest <= '9')
            return false;
    memcpy(out->before, from, before);
    memcpy(out->after, to, after);
    return before > 0 || after > 0 || out->thousands;
}

static void see_text(struct dp_tabular_header_by *by, struct dp_cell cell)
{
    struct dp_tabular_unit unit = {{0}, {0}, false};
    uint32_t k = 0;
    if (!split_unit(cell, &unit))
        return;
    while (k < by->kinds && k < DP_TABULAR_UNITS &&
           (strcmp(unit.before, by->unit[k].before) != 0 || strcmp(unit.after, by->unit[k].after) != 0))
        k++;
    if (k < DP_TABULAR_UNITS && k == by->kinds)
        by->unit[by->kinds++] = unit;
    if (k == DP_TABULAR_UNITS)
        return;
    by->unit[k].thousands |= unit.thousands;
    by->units++;
}

/* 0: it has other characters. */
static size_t digits_of(struct dp_cell cell)
{
    for (const char *at = cell.at; at < cell.end; at++)
        if (*at < '0' || *at > '9')
            return 0;
    return (size_t)(cell.end - cell.at);
}

/* Standardized numbers are read as f64, others as f32. */
static void see_number(struct dp_tabular_header_by *by, struct dp_cell cell, bool standardize)
{
    double x;
    if (dp_number_f64(cell.at, cell.end, &x) != cell.end)
        return;
    by->rises += by->numbers > 1 && x > by->last;
    by->last = x;
    size_t digits = digits_of(cell);
    by->codes += digits >= CODE_DIGITS && (by->codes == 0 || digits == by->digits);
    by->digits = digits;
    by->rounded += x == floor(x) && (standardize ? fabs(x) >= DP_NUMBER_WHOLE_MAX : (double)(float)x != x);
}

const struct dp_tabular_unit *dp_tabular_header_units(const struct dp_tabular_header *header, uint32_t i,
                                                      uint32_t *kinds)
{
    const struct dp_tabular_header_by *by = &header->by[i];
    *kinds = by->kinds;
    return by->line > 0 && by->texts > 1 && by->units == by->texts && by->texts > by->numbers ? by->unit
                                                                                              : NULL;
}

bool dp_tabular_header_lists(const struct dp_tabular_header *header, uint32_t i)
{
    const struct dp_tabular_header_by *by = &header->by[i];
    return header->schema.column[i].kind == DP_COLUMN_CATEGORY && by->line > 0 &&
           by->lists > (by->numbers + by->texts) / 2;
}

bool dp_tabular_header_rises(const struct dp_tabular_header *header, uint32_t i)
{
    const struct dp_tabular_header_by *by = &header->by[i];
    return header->schema.column[i].kind == DP_COLUMN_NUMBER && by->numbers >= RISES_MIN &&
           by->rises == by->numbers - 1;
}

bool dp_tabular_header_rounds(const struct dp_tabular_header *header, uint32_t i)
{
    const struct dp_tabular_header_by *by = &header->by[i];
    return header->schema.column[i].kind == DP_COLUMN_NUMBER && by->numbers >= RISES_MIN &&
           by->rounded > by->numbers / 2;
}

bool dp_tabular_header_codes(const struct dp_tabular_header *header, uint32_t i)
{
    const struct dp_tabular_header_by *by = &header->by[i];
    return by->numbers > 0 && by->codes == by->numbers;
}

/* What the first records say; DP_STOPPING: enough is seen. */
static enum dp_status look(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct dp_tabular_header *header = self;
    if (header->looked++ == LOOK_LINES)
        return dp_fail(err, DP_STOPPING, "enough");
    for (uint32_t i = 0; i < header->schema.columns; i++) {
        struct dp_cell cell = dp_cell_trim(record->cells[i]);
        struct dp_schema_column *column = &header->schema.column[i];
        struct dp_tabular_header_by *by = &header->by[i];
        /* One out of range is a number, to be refused by its line: it makes no categories of the others. */
        bool number = dp_number_end(cell.at, cell.end) == cell.end;
        if ((column->kind != DP_COLUMN_NUMBER && column->kind != DP_COLUMN_CATEGORY) ||
            dp_schema_is_missing(&header->schema, cell))
            continue;
        by->numbers += number;
        by->texts += !number;
        by->lists += memchr(cell.at, '|', (size_t)(cell.end - cell.at)) != NULL;
        if (number)
            see_number(by, cell, header->options->standardize);
        else
            see_text(by, cell);
        if (number || column->kind != DP_COLUMN_NUMBER)
            continue;
        if (has_comma(cell))
            return dp_fail(
                err, DP_DATA,
                "column '%s': '%s' is a number with a comma: write a point for the decimals and nothing "
                "between thousands (1234.5), or, if it is text, name the column in --categories "
                "(data.categories)",
                dp_cell_show(dp_cell_of(column->name)).text, dp_cell_show(cell).text);
        column->kind = DP_COLUMN_CATEGORY;
        by->line = record->line;
        by->cell = dp_cell_show(cell);
    }
    return DP_OK;
}

enum dp_status dp_tabular_header_look(const struct dp_dataset_options *options, const char *path,
                                      struct dp_tabular_header *out, struct dp_error *err)
{
    struct dp_error last = {0};
    *out = (struct dp_tabular_header){.options = options};
    enum dp_status st =
        dp_tabular_read(options, path, (struct dp_tabular_sink){read_names, look, out}, &last);
    if (st == DP_STOPPING)
        st = DP_OK;
    if (st != DP_OK) {
        if (err)
            *err = last;
        return st;
    }
    if (out->schema.columns == 0)
        return dp_fail(err, DP_DATA, "%s: has no header", path);
    if (out->looked == 0)
        return dp_fail(err, DP_DATA, "%s: holds no examples, only a header", path);
    memcpy(out->schema.format, "csv", sizeof "csv");
    return DP_OK;
}

void dp_tabular_header_clear(struct dp_tabular_header *header)
{
    dp_schema_clear(&header->schema);
    dp_name_set_clear(&header->names);
    free(header->by);
    header->by = NULL;
}

void dp_tabular_header_list(const struct dp_tabular_header *header, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < header->schema.columns; i++) {
        const struct dp_tabular_header_by *by = &header->by[i];
        char one[160];
        if (by->line == 0)
            continue;
        int n =
            snprintf(one, sizeof one, "%s'%s' by '%s' in line %" PRIu64, len > 0 ? ", " : "",
                     dp_cell_show(dp_cell_of(header->schema.column[i].name)).text, by->cell.text, by->line);
        if (len + (size_t)n + sizeof ", ..." > size) {
            (void)snprintf(out + len, size - len, ", ...");
            return;
        }
        memcpy(out + len, one, (size_t)n + 1);
        len += (size_t)n;
    }
}

static bool is_doubtful(const struct dp_tabular_header_by *by)
{
    return by->line > 0 && by->numbers > by->texts;
}

void dp_tabular_header_doubt(const struct dp_tabular_header *header, const char *path, char *out, size_t size)
{
    uint32_t first = 0, columns = header->schema.columns;
    while (first < columns && !is_doubtful(&header->by[first]))
        first++;
    out[0] = '\0';
    if (first == columns)
        return;
    const struct dp_tabular_header_by *by = &header->by[first];
    const struct dp_shown name = dp_cell_show(dp_cell_of(header->schema.column[first].name));
    const char *cell = by->cell.text;
    char missing[120] = "";
    if (!strpbrk(cell, "0123456789',")) /* "-", "inf", "?" */
        (void)snprintf(missing, sizeof missing, " (as a missing number: --missing '%s')", cell);
    (void)snprintf(
        out, size,
        "%s:%" PRIu64 ": '%s' is no number, so column '%s' became categories, though %" PRIu32
        " of the %" PRIu32 " cells looked at are numbers. If that is a typo, correct the cell or "
        "leave it empty%s, and run again with --fresh; if not, keep the column as it is (--categories "
        "'%s' says so from the start)",
        path, by->line, cell, name.text, by->numbers, by->numbers + by->texts, missing, name.text);
}
