/* CSV with a header (RFC 4180): one column is the label; the others are numbers or categories.
 *     a training file:  header and first lines -> which column is what -> the whole file -> means, deviations, labels -> its records
 *     any other:        the training file's schema -> this file's header, by names -> its records
 * Why   What another file's columns are is what they were in the training file: its own lines might say otherwise. So a training file
 *       is read up to three times, the last time as any other, and a row in both gives the same bits. */
#include "worker/read/columns.h"

#include "common/base/log.h"
#include "worker/read/csv_header.h"
#include "worker/read/lines.h"
#include "worker/read/survey.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct csv {
    const struct dp_dataset_options *options;
    const struct dp_schema *schema; /* of the training file */
    struct dp_names names;          /* of its columns */
    struct csv_place {
        uint32_t place; /* among those of its kind */
        uint64_t salt;
    } * place; /* [schema->columns] */
    /* Of the file at hand: */
    uint32_t *column_of; /* [cells]: which column of the training file a cell is */
    size_t cells;
    struct dp_csv_record record;
    char separator; /* by its header */
    struct dp_columns rows;
    bool labelled;
    struct dp_name_set *naming; /* the records are looked at for this only */
    /* Of the numbers, by place: */
    uint64_t *salt;
    double *mean, *deviation;
};

static enum dp_status match_names(struct csv *csv, const char *at, const char *end, struct dp_error *err)
{
    const struct dp_schema *schema = csv->schema;
    csv->separator = dp_csv_record_separator(at, end);
    enum dp_status st = dp_csv_record_split(&csv->record, csv->separator, at, end, err);
    if (st != DP_OK)
        return st;
    csv->cells = csv->record.count;
    csv->column_of = calloc(csv->cells, sizeof *csv->column_of);
    bool *seen = calloc(schema->columns, sizeof *seen);
    if (!csv->column_of || !seen)
        st = dp_fail(err, DP_NOMEM, "no memory for %zu columns", csv->cells);
    for (size_t i = 0; st == DP_OK && i < csv->cells; i++) {
        struct dp_cell name = dp_cell_trim(csv->record.cells[i]);
        uint32_t column = dp_names_find(&csv->names, name.at, (size_t)(name.end - name.at));
        if (column == DP_NAMES_NONE) {
            st = dp_csv_header_no_such(schema, "this file has a column", name, "the training file", err);
        } else if (seen[column]) {
            st = dp_fail(err, DP_DATA, "two columns are named '%s'", dp_cell_show(name).text);
        } else {
            csv->column_of[i] = column;
            seen[column] = true;
        }
    }
    for (uint32_t i = 0; st == DP_OK && i < schema->columns; i++) {
        bool label = schema->column[i].kind == DP_COLUMN_LABEL;
        csv->labelled |= seen[i] && label;
        if (!seen[i] && !(csv->options->scored && label))
            st = dp_fail(err, DP_DATA, "column '%s' of the training file is missing", schema->column[i].name);
    }
    free(seen);
    return st;
}

static enum dp_status add_cell(struct csv *csv, uint32_t i, struct dp_cell cell, struct dp_error *err)
{
    const struct dp_schema_column *column = &csv->schema->column[i];
    const struct csv_place *place = &csv->place[i];
    struct dp_cell number = dp_cell_trim(cell);
    enum dp_status st = DP_OK;
    if (column->kind == DP_COLUMN_CATEGORY) {
        cell = csv->schema->trimmed ? number : cell;
        dp_columns_category(&csv->rows, place->place, place->salt, cell.at, (size_t)(cell.end - cell.at));
    } else if (column->kind ==
               DP_COLUMN_LABEL) /* where it is only scored, whatever stands there is no label */
        st = dp_columns_label(&csv->rows, csv->options->scored ? number.end : number.at, number.end, err);
    else
        st = dp_columns_number(&csv->rows, place->place, dp_cell_is_missing(number) ? number.end : number.at,
                               number.end, NULL, err);
    if (st != DP_OK && column->kind == DP_COLUMN_NUMBER)
        return dp_wrap(err, st, "column '%s' (%s)", column->name,
                       csv->options->scored ? "numbers in training"
                                            : "text? name it in --categories, data.categories");
    return st == DP_OK ? st : dp_wrap(err, st, "column '%s'", column->name);
}

static enum dp_status name_cells(struct csv *csv, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < csv->cells; i++) {
        uint32_t c = csv->column_of[i];
        const struct dp_schema_column *column = &csv->schema->column[c];
        struct dp_cell whole = csv->record.cells[i];
        struct dp_cell cell = csv->schema->trimmed ? dp_cell_trim(whole) : whole;
        const struct dp_columns_name of = {column->name, csv->place[c].place, c, csv->place[c].salt};
        if (column->kind == DP_COLUMN_CATEGORY)
            st = dp_columns_name_category(csv->options, &of, cell.at, (size_t)(cell.end - cell.at),
                                          csv->naming, err);
    }
    return st == DP_OK && csv->naming->cut ? dp_fail(err, DP_STOPPING, "enough") : st;
}

static enum dp_status add_record(void *self, const char *at, const char *end, uint64_t line,
                                 struct dp_error *err)
{
    struct csv *csv = self;
    (void)line;
    if (at == end)
        return DP_OK;
    if (!csv->column_of)
        return match_names(csv, at, end, err);
    enum dp_status st = dp_csv_record_split(&csv->record, csv->separator, at, end, err);
    if (st == DP_OK && csv->record.count != csv->cells)
        st = dp_fail(err, DP_DATA, "expected %zu columns, as the header has, found %zu", csv->cells,
                     csv->record.count);
    if (st == DP_OK && csv->naming)
        return name_cells(csv, err);
    if (st == DP_OK)
        st = dp_columns_row(&csv->rows, err);
    if (st == DP_OK && !csv->labelled)
        st = dp_columns_label(&csv->rows, at, at, err);
    for (size_t i = 0; st == DP_OK && i < csv->cells; i++)
        st = add_cell(csv, csv->column_of[i], csv->record.cells[i], err);
    return st;
}

/* What is looked up for each cell. */
static enum dp_status plan_cells(struct csv *csv, struct dp_error *err)
{
    const struct dp_schema *schema = csv->schema;
    uint32_t places[DP_COLUMN_KINDS] = {0}, columns = schema->columns;
    enum dp_status st = dp_names_init(&csv->names, columns, err);
    if (st != DP_OK)
        return st;
    csv->place = calloc(columns, sizeof *csv->place);
    csv->salt = calloc(columns, sizeof *csv->salt);
    csv->mean = calloc(columns, sizeof *csv->mean);
    csv->deviation = calloc(columns, sizeof *csv->deviation);
    if (!csv->place || !csv->salt || !csv->mean || !csv->deviation)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " columns", columns);
    for (uint32_t i = 0; i < columns; i++) {
        const struct dp_schema_column *column = &schema->column[i];
        struct csv_place *place = &csv->place[i];
        size_t len = strlen(column->name);
        place->place = places[column->kind]++;
        place->salt = dp_hash_bytes(DP_HASH_BEGIN, column->name, len);
        if (dp_names_add(&csv->names, column->name, len, i) != i)
            return dp_fail(err, DP_DATA, "two columns are named '%s'",
                           dp_cell_show(dp_cell_of(column->name)).text);
        if (column->kind != DP_COLUMN_NUMBER)
            continue;
        csv->salt[place->place] = place->salt;
        csv->mean[place->place] = column->mean;
        csv->deviation[place->place] = column->deviation;
    }
    return DP_OK;
}

static enum dp_status read_rows(struct csv *csv, struct dp_unpack *unpack, struct dp_content *out,
                                struct dp_error *err)
{
    uint32_t count[DP_COLUMN_KINDS] = {0};
    for (uint32_t i = 0; i < csv->schema->columns; i++)
        count[csv->schema->column[i].kind]++;
    enum dp_status st = plan_cells(csv, err);
    if (st == DP_OK)
        st = dp_columns_begin(&csv->rows, csv->options, out, count[DP_COLUMN_NUMBER],
                              count[DP_COLUMN_CATEGORY], err);
    if (st == DP_OK && csv->schema->standardized)
        dp_columns_standardize(&csv->rows, csv->mean, csv->deviation);
    if (csv->schema->classes > 0 && !csv->options->scored)
        dp_columns_name_labels(&csv->rows, csv->schema);
    csv->rows.rule.base = csv->schema->label_base;
    if (st == DP_OK)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_record, csv}, err);
    return st == DP_OK ? dp_columns_end(&csv->rows, csv->salt, err) : st;
}

/* ---- the schema */

static enum dp_status check_label(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                  struct dp_error *err)
{
    const unsigned char *bytes = NULL;
    size_t len = 0;
    if (options->label && options->label[0])
        return DP_OK;
    enum dp_status st = dp_unpack_peek(unpack, &bytes, &len, err);
    if (st != DP_OK)
        return st;
    const unsigned char *end = len ? memchr(bytes, '\n', len) : NULL;
    size_t line = end ? (size_t)(end - bytes) : len;
    line -= line > 0 && bytes[line - 1] == '\r';
    return dp_fail(
        err, DP_ARGUMENT,
        "%s: a CSV file needs the name of its label's column: --label NAME (data.label); its header "
        "is: %.*s%s",
        options->path, (int)(line < 100 ? line : 100), (const char *)bytes, line > 100 ? "..." : "");
}

static enum dp_status fits(const struct dp_dataset_options *options, const struct dp_schema *schema,
                           const char *why, struct dp_error *err)
{
    uint32_t count[DP_COLUMN_KINDS] = {0};
    for (uint32_t i = 0; i < schema->columns; i++)
        count[schema->column[i].kind]++;
    return dp_columns_fit(options, count[DP_COLUMN_NUMBER], count[DP_COLUMN_CATEGORY], why, err);
}

/* Once a training: where the file that is looked at is the one that is read. */
static void tell_categories(const struct dp_dataset_options *options, const struct dp_csv_header *header)
{
    char list[640];
    dp_csv_header_list(header, list, sizeof list);
    if (list[0] && !options->held)
        dp_log(DP_LOG_INFO,
               "%s: categories, by the first cell that is no number: %s; the other columns are numbers",
               options->path, list);
}

/* Of the training file: the one that is read, or like_path. */
static enum dp_status find_schema(const struct dp_dataset_options *options, struct dp_csv_header *header,
                                  struct dp_error *err)
{
    char why[200];
    bool trained = !options->like_path || strcmp(options->like_path, options->path) == 0;
    enum dp_status st =
        dp_csv_header_look(options, trained ? options->path : options->like_path, header, err);
    if (st == DP_OK && trained)
        tell_categories(options, header);
    dp_csv_header_list(header, why, sizeof why);
    if (st == DP_OK) /* before the whole file is read for the rest */
        st = fits(options, &header->schema, why[0] ? why : NULL, err);
    return st == DP_OK && trained ? dp_survey(options, &header->schema, err) : st;
}

/* The label's name comes from the cluster file that the schema was made by: another one is another training's. */
static enum dp_status check_like(const struct dp_dataset_options *options, struct dp_error *err)
{
    const struct dp_schema *like = options->like;
    const struct dp_cell label = dp_cell_of(options->label);
    for (uint32_t i = 0; i < like->columns; i++) {
        const struct dp_schema_column *column = &like->column[i];
        if (column->kind == DP_COLUMN_LABEL && strcmp(column->name, options->label) != 0)
            return dp_fail(
                err, DP_DATA,
                "%s: the label is '%s', but '%s' was when the model was trained (--label, data.label)",
                options->path, dp_cell_show(label).text, dp_cell_show(dp_cell_of(column->name)).text);
    }
    return fits(options, like, NULL, err);
}

static enum dp_status keep_schema(const struct dp_schema *schema, struct dp_content *out,
                                  struct dp_error *err)
{
    char *text = NULL;
    enum dp_status st = dp_schema_write(schema, &text, err);
    out->schema = (uint8_t *)text;
    out->schema_len = text ? strlen(text) : 0;
    return st;
}

static void csv_clear(struct csv *csv)
{
    dp_names_clear(&csv->names);
    dp_csv_record_clear(&csv->record);
    free(csv->place);
    free(csv->column_of);
    free(csv->salt);
    free(csv->mean);
    free(csv->deviation);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct dp_csv_header header = {0};
    struct csv csv = {.options = options, .schema = options->like ? options->like : &header.schema};
    enum dp_status st = check_label(options, unpack, err);
    if (st == DP_OK)
        st = options->like ? check_like(options, err) : find_schema(options, &header, err);
    if (st == DP_OK)
        st = read_rows(&csv, unpack, out, err);
    if (st == DP_OK)
        st = keep_schema(csv.schema, out, err);
    csv_clear(&csv);
    dp_csv_header_clear(&header);
    return st;
}

/* Not kept with the content: out of a cache, the file is doubtful still. */
static void doubt(const struct dp_dataset_options *options, char *out, size_t size)
{
    struct dp_csv_header header = {0};
    struct dp_error unheard = {0}; /* it was read before */
    if (dp_csv_header_look(options, options->path, &header, &unheard) == DP_OK)
        dp_csv_header_doubt(&header, options->path, out, size);
    dp_csv_header_clear(&header);
}

/* ---- names */

static enum dp_status check_unchanged(const struct dp_dataset_options *options,
                                      const struct dp_schema *schema, struct dp_error *err)
{
    struct dp_csv_header header = {0};
    enum dp_status st = dp_csv_header_look(options, options->path, &header, err);
    bool same = header.schema.columns == schema->columns;
    for (uint32_t i = 0; same && i < schema->columns; i++)
        same = strcmp(header.schema.column[i].name, schema->column[i].name) == 0 &&
               header.schema.column[i].kind == schema->column[i].kind;
    dp_csv_header_clear(&header);
    return st == DP_OK && !same ? dp_fail(err, DP_DATA, "'%s' changed while it was read", options->path) : st;
}

static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct dp_schema schema;
    struct csv csv = {.options = options, .schema = &schema, .naming = set};
    struct dp_unpack *unpack = NULL;
    bool categories = false;
    set->max = DP_COLUMNS_NAMES_MAX;
    enum dp_status st = dp_schema_parse("the schema", content->schema, content->schema_len, &schema, err);
    if (st == DP_OK)
        st = check_unchanged(options, &schema, err);
    if (st == DP_OK)
        st = plan_cells(&csv, err);
    for (uint32_t i = 0; st == DP_OK && i < schema.columns; i++) {
        const struct dp_schema_column *column = &schema.column[i];
        const struct dp_columns_name of = {column->name, csv.place[i].place, i, csv.place[i].salt};
        categories |= column->kind == DP_COLUMN_CATEGORY;
        if (column->kind == DP_COLUMN_NUMBER)
            st = dp_columns_name_number(options, &of, set, err);
    }
    if (st == DP_OK && categories)
        st = dp_unpack_open(options->path, &unpack, err);
    if (unpack)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_record, &csv}, err);
    dp_unpack_close(&unpack);
    csv_clear(&csv);
    dp_schema_clear(&schema);
    return st == DP_STOPPING ? DP_OK : st;
}

const struct dp_format dp_format_csv = {
    .name = "csv",
    .holds = "a header and lines of values parted by commas, semicolons or tabs",
    .forms = 1u << DP_FORM_SPARSE | 1u << DP_FORM_DENSE | 1u << DP_FORM_FIELDS | 1u << DP_FORM_TABLES,
    .decodes_slowly = true,
    .load = load,
    .like_apart = true,
    .doubt = doubt,
    .names = names,
    .shape = dp_columns_shape,
    .fill = dp_columns_fill};
