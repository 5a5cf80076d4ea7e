/* Files of named columns (tabular.h), CSV among them: one column is the label; the others are numbers or
 * categories.
 *     a first training file: header and first lines -> which column is what -> the whole file -> means,
 *                            deviations, labels -> its records
 *     any other:             the training file's schema -> this file's header, by names -> its records
 * Why   Another file's columns have the kinds that they had in the training file: its own lines might
 *       suggest others. A training file is read up to three times, the last time like any other file. So a
 *       row in both files gives the same bits. */
#include "worker/read/columns.h"

#include "common/base/log.h"
#include "worker/read/survey.h"
#include "worker/read/tabular_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* "'a', 'b', ...": as many as there is room for. */
struct name_list {
    char text[120];
    bool cut;
};

struct tabular {
    const struct dp_dataset_options *options;
    const struct dp_schema *schema; /* of the training file */
    struct dp_name_set names;       /* of its columns; their keys are the places */
    struct tabular_place {
        uint32_t place; /* among those of its kind */
        uint64_t salt;
    } * place; /* [schema->columns] */
    /* Of the file at hand: */
    uint32_t *column_of; /* [cells]: which column of the training file a cell is; UINT32_MAX: none */
    size_t cells;
    uint32_t *missing; /* [missing_count]: columns of the training file that this one lacks */
    uint32_t missing_count;
    struct dp_cell *list; /* [columns]: cells of a record, by place */
    uint32_t fields;      /* categories in an example */
    struct dp_columns rows;
    bool labelled, identified;          /* its examples have labels, and ids that are kept */
    uint64_t ids_max, id_bytes_max;     /* for which there is memory */
    struct name_list left_out, lacking; /* columns that only this file has, and that it lacks */
    struct dp_name_set *naming;         /* the records are looked at for this only */
    /* Of the numbers, by place: */
    uint64_t *salt;
    double *mean, *deviation;
};

static void list_name(struct name_list *list, struct dp_cell name)
{
    const struct dp_shown shown = dp_cell_show(name);
    size_t len = strlen(list->text), room = sizeof list->text - len;
    if (list->cut)
        return;
    list->cut = strlen(shown.text) + sizeof ", '', ..." > room;
    if (list->cut)
        (void)snprintf(list->text + len, room, ", ...");
    else
        (void)snprintf(list->text + len, room, "%s'%s'", len ? ", " : "", shown.text);
}

/* "a,b"; or NULL. */
static bool is_named(const char *names, struct dp_cell name)
{
    bool named = false;
    for (const char *at = names; at && *at && !named;) {
        size_t len = strcspn(at, ",");
        struct dp_cell one = dp_cell_trim((struct dp_cell){at, at + len});
        named = one.end - one.at == name.end - name.at &&
                (one.at == one.end || memcmp(one.at, name.at, (size_t)(one.end - one.at)) == 0);
        at += len + (at[len] == ',');
    }
    return named;
}

static enum dp_status match_cells(struct tabular *tabular, const struct dp_tabular_record *record, bool *seen,
                                  struct name_list *extra, struct dp_error *err)
{
    for (size_t i = 0; i < tabular->cells; i++) {
        struct dp_cell name = dp_cell_trim(record->cells[i]);
        uint32_t column = tabular->column_of[i] = dp_tabular_place(&tabular->names, name);
        if (column != UINT32_MAX && seen[column])
            return dp_fail(err, DP_DATA, "two columns are named '%s'", dp_cell_show(name).text);
        if (column != UINT32_MAX) {
            seen[column] = true;
            continue;
        }
        list_name(&tabular->left_out, name);
        if (!tabular->options->new_ignored && !is_named(tabular->options->ignore, name))
            list_name(extra, name);
    }
    return DP_OK;
}

static enum dp_status find_missing(struct tabular *tabular, const bool *seen, struct dp_error *err)
{
    const struct dp_schema *schema = tabular->schema;
    for (uint32_t i = 0; i < schema->columns; i++) {
        const struct dp_cell name = dp_cell_of(schema->column[i].name);
        enum dp_column_kind kind = schema->column[i].kind;
        bool label = kind == DP_COLUMN_LABEL, weighs = kind == DP_COLUMN_WEIGHT && tabular->options->weighs,
             unused =
                 !weighs && (kind == DP_COLUMN_IGNORED || kind == DP_COLUMN_ID || kind == DP_COLUMN_WEIGHT);
        tabular->labelled |= seen[i] && label;
        tabular->identified |= seen[i] && kind == DP_COLUMN_ID && tabular->options->keeps_ids;
        if (seen[i] || unused || (label && tabular->options->scored))
            continue;
        if (label)
            return dp_fail(err, DP_DATA, "the label's column '%s' is missing", dp_cell_show(name).text);
        if (weighs)
            return dp_fail(
                err, DP_DATA,
                "the column '%s' of weights (--weight, data.weight) is missing: add it (1 weighs all "
                "rows alike), or train with --fresh or in another --dir",
                dp_cell_show(name).text);
        tabular->missing[tabular->missing_count++] = i;
        list_name(&tabular->lacking, name);
    }
    return DP_OK;
}

static enum dp_status match_names(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct tabular *tabular = self;
    struct name_list extra = {.cut = false};
    tabular->cells = record->count;
    tabular->column_of = calloc(tabular->cells, sizeof *tabular->column_of);
    tabular->missing = calloc(tabular->schema->columns, sizeof *tabular->missing);
    bool *seen = calloc(tabular->schema->columns, sizeof *seen);
    enum dp_status st = tabular->column_of && tabular->missing && seen
                            ? match_cells(tabular, record, seen, &extra, err)
                            : dp_fail(err, DP_NOMEM, "no memory for %zu columns", tabular->cells);
    if (st == DP_OK)
        st = find_missing(tabular, seen, err);
    free(seen);
    const char *lacking = tabular->options->missing_empty ? "" : tabular->lacking.text;
    if (st != DP_OK || !(extra.text[0] || lacking[0]))
        return st;
    return dp_fail(err, DP_DATA, "%s%s%s%s%s%s%s",
                   lacking[0] ? "columns of the training file are missing: " : "", lacking,
                   lacking[0] ? " (--missing-columns empty, data.missing_columns, takes them as empty cells)"
                              : "",
                   lacking[0] && extra.text[0] ? "; " : "",
                   extra.text[0] ? "columns are not in the training file: " : "", extra.text,
                   extra.text[0] ? " (--new-columns ignore, data.new_columns, leaves them out)" : "");
}

/* NA is a text as others are; one of --missing is an empty cell. */
static struct dp_cell category_of(const struct dp_schema *schema, struct dp_cell cell)
{
    if (dp_schema_says_missing(schema, cell))
        cell.at = cell.end;
    return cell;
}

/* content, of scored files:  pixels   the ids, each with a NUL
 *                            offsets  [examples + 1], where they begin */
static enum dp_status keep_id(struct tabular *tabular, struct dp_cell cell, struct dp_error *err)
{
    struct dp_content *content = tabular->rows.content;
    uint64_t row = content->examples - 1, at = content->pixels_len, len = (uint64_t)(cell.end - cell.at);
    enum dp_status st = DP_OK;
    if (row + 2 > tabular->ids_max) {
        st = DP_CONTENT_GROW(content->offsets, row * 2 + 1024, err);
        tabular->ids_max = row * 2 + 1024;
    }
    if (st == DP_OK && at + len + 1 > tabular->id_bytes_max) {
        tabular->id_bytes_max = (at + len + 1) * 2;
        st = DP_CONTENT_GROW(content->pixels, tabular->id_bytes_max, err);
    }
    if (st != DP_OK)
        return st;
    memcpy(content->pixels + at, cell.at, len);
    content->pixels[at + len] = '\0';
    content->offsets[row] = at;
    content->offsets[row + 1] = content->pixels_len = at + len + 1;
    content->offsets_len = row + 2;
    return DP_OK;
}

static enum dp_status add_cell(struct tabular *tabular, uint32_t i, struct dp_cell cell, struct dp_error *err)
{
    const struct dp_schema_column *column = &tabular->schema->column[i];
    const struct tabular_place *place = &tabular->place[i];
    cell = dp_cell_trim(cell);
    enum dp_status st = DP_OK;
    switch (column->kind) {
    case DP_COLUMN_CATEGORY:
        cell = category_of(tabular->schema, cell);
        dp_columns_category(&tabular->rows, place->place, place->salt, cell.at, (size_t)(cell.end - cell.at));
        break;
    case DP_COLUMN_LIST: /* until all cells are there */
        tabular->list[place->place] = cell;
        break;
    case DP_COLUMN_LABEL: /* where it is only scored, whatever stands there is no label */
        st = dp_columns_label(&tabular->rows, tabular->options->scored ? cell.end : cell.at, cell.end, err);
        break;
    case DP_COLUMN_NUMBER:
        st = dp_columns_number(&tabular->rows, place->place,
                               dp_schema_is_missing(tabular->schema, cell) ? cell.end : cell.at, cell.end,
                               NULL, err);
        break;
    case DP_COLUMN_WEIGHT:
        st = tabular->rows.weighs ? dp_columns_weight(&tabular->rows, cell.at, cell.end, err) : DP_OK;
        break;
    case DP_COLUMN_ID:
        return tabular->identified ? keep_id(tabular, cell, err) : DP_OK;
    default: /* ignored */
        break;
    }
    if (st != DP_OK && column->kind == DP_COLUMN_NUMBER)
        return dp_wrap(err, st, "column '%s' (%s)", column->name,
                       tabular->options->scored || tabular->options->like
                           ? "numbers in training"
                           : "text? name it in --categories, data.categories");
    return st == DP_OK ? st : dp_wrap(err, st, "column '%s'", column->name);
}

/* Each entry of a list's cell. A list without entries has one, the empty text. */
static enum dp_status each_entry(struct tabular *tabular, uint32_t i, struct dp_cell rest,
                                 struct dp_error *err)
{
    static const char none[] = "";
    const struct tabular_place *place = &tabular->place[i];
    const struct dp_columns_name of = {tabular->schema->column[i].name, tabular->fields + place->place, i,
                                       place->salt};
    struct dp_cell entry = {none, none};
    enum dp_status st = DP_OK;
    bool some = dp_schema_next_entry(tabular->schema, &rest, &entry);
    do {
        size_t len = some ? (size_t)(entry.end - entry.at) : 0;
        st = tabular->naming
                 ? dp_columns_name_category(tabular->options, &of, entry.at, len, tabular->naming, err)
                 : dp_columns_entry(&tabular->rows, place->salt, entry.at, len, err);
    } while (st == DP_OK && some && dp_schema_next_entry(tabular->schema, &rest, &entry));
    return st;
}

static enum dp_status add_lists(struct tabular *tabular, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < tabular->schema->columns && tabular->rows.lists > 0; i++)
        if (tabular->schema->column[i].kind == DP_COLUMN_LIST) {
            st = each_entry(tabular, i, tabular->list[tabular->place[i].place], err);
            dp_columns_list_end(&tabular->rows, tabular->place[i].place);
        }
    return st;
}

static enum dp_status name_cells(struct tabular *tabular, const struct dp_tabular_record *record,
                                 struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < tabular->cells; i++) {
        uint32_t c = tabular->column_of[i];
        if (c == UINT32_MAX)
            continue;
        const struct dp_schema_column *column = &tabular->schema->column[c];
        struct dp_cell cell = category_of(tabular->schema, dp_cell_trim(record->cells[i]));
        const struct dp_columns_name of = {column->name, tabular->place[c].place, c, tabular->place[c].salt};
        if (column->kind == DP_COLUMN_CATEGORY)
            st = dp_columns_name_category(tabular->options, &of, cell.at, (size_t)(cell.end - cell.at),
                                          tabular->naming, err);
        else if (column->kind == DP_COLUMN_LIST)
            st = each_entry(tabular, c, cell, err);
    }
    return st == DP_OK && tabular->naming->cut ? dp_fail(err, DP_STOPPING, "enough") : st;
}

static enum dp_status add_record(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct tabular *tabular = self;
    static const char none[] = "";
    if (tabular->naming)
        return name_cells(tabular, record, err);
    enum dp_status st = dp_columns_row(&tabular->rows, err);
    if (st == DP_OK && !tabular->labelled)
        st = dp_columns_label(&tabular->rows, none, none, err);
    for (size_t i = 0; st == DP_OK && i < tabular->cells; i++)
        if (tabular->column_of[i] != UINT32_MAX)
            st = add_cell(tabular, tabular->column_of[i], record->cells[i], err);
    for (uint32_t i = 0; st == DP_OK && i < tabular->missing_count; i++)
        st = add_cell(tabular, tabular->missing[i], (struct dp_cell){none, none}, err);
    return st == DP_OK ? add_lists(tabular, err) : st;
}

/* What is looked up for each cell. */
static enum dp_status plan_cells(struct tabular *tabular, struct dp_error *err)
{
    const struct dp_schema *schema = tabular->schema;
    uint32_t places[DP_COLUMN_KINDS] = {0}, columns = schema->columns;
    enum dp_status st = DP_OK;
    tabular->place = calloc(columns, sizeof *tabular->place);
    tabular->salt = calloc(columns, sizeof *tabular->salt);
    tabular->mean = calloc(columns, sizeof *tabular->mean);
    tabular->deviation = calloc(columns, sizeof *tabular->deviation);
    tabular->list = calloc(columns, sizeof *tabular->list);
    if (!tabular->place || !tabular->salt || !tabular->mean || !tabular->deviation || !tabular->list)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " columns", columns);
    for (uint32_t i = 0; st == DP_OK && i < columns; i++) {
        const struct dp_schema_column *column = &schema->column[i];
        struct tabular_place *place = &tabular->place[i];
        place->place = places[column->kind]++;
        place->salt = dp_hash_text(column->name);
        st = dp_tabular_add_name(&tabular->names, dp_cell_of(column->name), i, err);
        if (column->kind != DP_COLUMN_NUMBER)
            continue;
        tabular->salt[place->place] = place->salt;
        tabular->mean[place->place] = column->mean;
        tabular->deviation[place->place] = column->deviation;
    }
    tabular->fields = places[DP_COLUMN_CATEGORY];
    return st;
}

static struct dp_columns_count count_of(const struct dp_schema *schema)
{
    uint32_t count[DP_COLUMN_KINDS] = {0};
    for (uint32_t i = 0; i < schema->columns; i++)
        count[schema->column[i].kind]++;
    return (struct dp_columns_count){count[DP_COLUMN_NUMBER], count[DP_COLUMN_CATEGORY],
                                     count[DP_COLUMN_LIST]};
}

static enum dp_status read_rows(struct tabular *tabular, struct dp_unpack *unpack, struct dp_content *out,
                                struct dp_error *err)
{
    const struct dp_columns_count count = count_of(tabular->schema);
    enum dp_status st = plan_cells(tabular, err);
    if (st == DP_OK)
        st = dp_columns_begin(&tabular->rows, tabular->options, out, &count, err);
    for (uint32_t i = 0; i < tabular->schema->columns; i++)
        tabular->rows.weighs |=
            tabular->schema->column[i].kind == DP_COLUMN_WEIGHT && tabular->options->weighs;
    if (st == DP_OK && tabular->schema->standardized)
        dp_columns_standardize(&tabular->rows, tabular->mean, tabular->deviation);
    if (tabular->schema->classes > 0 && !tabular->options->scored)
        dp_columns_name_labels(&tabular->rows, tabular->schema);
    if (!tabular->options->like) /* else the options have it */
        tabular->rows.rule.base = tabular->schema->label_base;
    if (st == DP_OK)
        st = dp_tabular_records(tabular->options->format, unpack,
                                (struct dp_tabular_sink){match_names, add_record, tabular}, err);
    return st == DP_OK ? dp_columns_end(&tabular->rows, tabular->salt, err) : st;
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
    const struct dp_columns_count count = count_of(schema);
    return dp_columns_fit(options, &count, why, err);
}

/* Once a training: where the file that is looked at is the one that is read. */
static void log_categories(const struct dp_dataset_options *options, const struct dp_tabular_header *header)
{
    char list[640];
    dp_tabular_header_list(header, list, sizeof list);
    if (list[0] && !options->held)
        dp_log(DP_LOG_INFO,
               "%s: categories, by the first cell that is no number: %s; the other columns are numbers",
               options->path, list);
}

/* Of the training file. */
static enum dp_status find_schema(const struct dp_dataset_options *options, struct dp_tabular_header *header,
                                  struct dp_error *err)
{
    char why[200];
    enum dp_status st = dp_tabular_header_look(options, options->path, header, err);
    if (st == DP_OK)
        log_categories(options, header);
    dp_tabular_header_list(header, why, sizeof why);
    if (st == DP_OK) /* before the whole file is read for the rest */
        st = fits(options, &header->schema, why[0] ? why : NULL, err);
    return st == DP_OK ? dp_survey(options, &header->schema, err) : st;
}

/* By its name or, where no column has that, by its number. */
static bool is_meant(const char *names, const struct dp_schema *schema, uint32_t i)
{
    char number[16];
    (void)snprintf(number, sizeof number, "%" PRIu32, i + 1);
    bool named = is_named(names, dp_cell_of(schema->column[i].name)),
         numbered = !named && is_named(names, dp_cell_of(number));
    for (uint32_t other = 0; numbered && other < schema->columns; other++)
        numbered = strcmp(schema->column[other].name, number) != 0;
    return named || numbered;
}

static bool is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

/* Weights count from the first file on: the schema has their column. */
static enum dp_status check_weight(const struct dp_dataset_options *options, struct dp_error *err)
{
    for (uint32_t i = 0; i < options->like->columns; i++)
        if (!options->weight || options->like->column[i].kind == DP_COLUMN_WEIGHT)
            return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "%s: --weight (data.weight) names '%s', but the model was trained without weights: omit the "
        "flag, or train with --fresh or in another --dir",
        options->path, dp_cell_show(dp_cell_of(options->weight)).text);
}

/* What flags name is what the training file has, in any order. Names that it lacks are for this file. */
static enum dp_status check_kinds(const struct dp_dataset_options *options, struct dp_error *err)
{
    const struct {
        const char *names, *flag, *what;
        enum dp_column_kind kind;
    } given[] = {{options->categories, "--categories (data.categories)", "a category", DP_COLUMN_CATEGORY},
                 {options->lists, "--lists (data.lists)", "a list", DP_COLUMN_LIST},
                 {options->ignore, "--ignore (data.ignore)", "left out", DP_COLUMN_IGNORED},
                 {options->id, "--id (data.id)", "an id", DP_COLUMN_ID},
                 {options->weight, "--weight (data.weight)", "a weight", DP_COLUMN_WEIGHT}};
    for (size_t g = 0; g < sizeof given / sizeof given[0]; g++)
        for (uint32_t i = 0; given[g].names && i < options->like->columns; i++) {
            const struct dp_schema_column *column = &options->like->column[i];
            bool is = column->kind == given[g].kind,
                 more = given[g].kind == DP_COLUMN_CATEGORY; /* than flags name */
            bool one = given[g].kind == DP_COLUMN_ID || given[g].kind == DP_COLUMN_WEIGHT;
            bool number = given[g].kind == DP_COLUMN_WEIGHT && is_number(given[g].names);
            bool named = one && !number ? strcmp(given[g].names, column->name) == 0
                                        : is_meant(given[g].names, options->like, i);
            if (named != is && !(is && more))
                return dp_fail(
                    err, DP_ARGUMENT,
                    "%s: by %s column '%s' is %s%s, but it was %s%s when the model was trained: omit the "
                    "flag, or train with --fresh or in another --dir",
                    options->path, given[g].flag, dp_cell_show(dp_cell_of(column->name)).text,
                    named ? "" : "not ", given[g].what, is ? "" : "not ", given[g].what);
        }
    return DP_OK;
}

/* "?,-": those of the training file. */
static enum dp_status check_missing(const struct dp_dataset_options *options, struct dp_error *err)
{
    uint32_t count = 0;
    bool same = true;
    for (const char *at = options->missing; at && *at; count++) {
        size_t len = strcspn(at, ",");
        same &= dp_schema_says_missing(options->like, dp_cell_trim((struct dp_cell){at, at + len}));
        at += len + (at[len] == ',');
    }
    if (!options->missing || (same && count == options->like->missing))
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "%s: --missing (data.missing) names other texts than when the model was trained: omit it, or "
        "train with --fresh or in another --dir",
        options->path);
}

/* The label's name comes from the cluster file that the schema was made by: another one is another
 * training's. */
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
    if (like->classes > 0 && options->label_base != DP_LABEL_BASE_AUTO &&
        options->label_base != like->label_base)
        return dp_fail(err, DP_ARGUMENT, "%s: labels are texts such as '%s', which have no base: %s",
                       options->path, dp_cell_show(dp_cell_of(like->class_text[0])).text,
                       "leave --label-base (data.label_base) out");
    enum dp_status st = check_kinds(options, err);
    if (st == DP_OK)
        st = check_missing(options, err);
    if (st == DP_OK)
        st = check_weight(options, err);
    return st == DP_OK ? fits(options, like, NULL, err) : st;
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

static void tabular_clear(struct tabular *tabular)
{
    dp_name_set_clear(&tabular->names);
    free(tabular->place);
    free(tabular->column_of);
    free(tabular->missing);
    free(tabular->salt);
    free(tabular->mean);
    free(tabular->deviation);
    free(tabular->list);
    dp_columns_clear(&tabular->rows);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct dp_tabular_header header = {0};
    struct tabular tabular = {.options = options, .schema = options->like ? options->like : &header.schema};
    enum dp_status st = check_label(options, unpack, err);
    if (st == DP_OK)
        st = options->like ? check_like(options, err) : find_schema(options, &header, err);
    if (st == DP_OK)
        st = read_rows(&tabular, unpack, out, err);
    if (st == DP_OK)
        st = keep_schema(tabular.schema, out, err);
    tabular_clear(&tabular);
    dp_tabular_header_clear(&header);
    return st;
}

static enum dp_status stop_at_names(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    enum dp_status st = match_names(self, record, err);
    return st == DP_OK ? dp_fail(err, DP_STOPPING, "enough") : st;
}

static void add_line(struct dp_understood *out, const char *what, const struct name_list *names)
{
    if (names->text[0])
        (void)snprintf(out->line[out->lines++], sizeof out->line[0], "%s: %s", what, names->text);
}

/* The kinds are those of the first training file; columns that only one of the two has are named. */
static void understood_further(const struct dp_dataset_options *options, const struct dp_content *content,
                               const struct dp_schema *schema, struct dp_understood *out)
{
    struct tabular tabular = {.options = options, .schema = schema};
    struct dp_error unheard = {0}; /* it was read before */
    if (plan_cells(&tabular, &unheard) == DP_OK)
        (void)dp_tabular_read(options, options->path, (struct dp_tabular_sink){stop_at_names, NULL, &tabular},
                              &unheard);
    dp_understood_lines(schema, content, options, out);
    add_line(out, "left out, as the model has no such column", &tabular.left_out);
    add_line(out, "taken as empty, as the file has no such column", &tabular.lacking);
    tabular_clear(&tabular);
}

/* The header is not kept with the content: its first lines are looked at again. */
static void understood(const struct dp_dataset_options *options, const struct dp_content *content,
                       const struct dp_schema *schema, struct dp_understood *out)
{
    if (options->columns_path) {
        understood_further(options, content, schema, out);
        return;
    }
    struct dp_tabular_header header = {0};
    struct dp_error unheard = {0}; /* it was read before */
    if (dp_tabular_header_look(options, options->path, &header, &unheard) == DP_OK &&
        header.schema.columns == schema->columns) {
        header.rows = content->examples;
        dp_understood_columns(&header, schema, content, options, out);
    }
    dp_tabular_header_clear(&header);
}

/* ---- names */

static enum dp_status check_unchanged(const struct dp_dataset_options *options,
                                      const struct dp_schema *schema, struct dp_error *err)
{
    struct dp_tabular_header header = {0};
    enum dp_status st = dp_tabular_header_look(options, options->path, &header, err);
    bool same = header.schema.columns == schema->columns;
    for (uint32_t i = 0; same && i < schema->columns; i++)
        same = strcmp(header.schema.column[i].name, schema->column[i].name) == 0 &&
               header.schema.column[i].kind == schema->column[i].kind;
    dp_tabular_header_clear(&header);
    return st == DP_OK && !same ? dp_fail(err, DP_DATA, "'%s' changed while it was read", options->path) : st;
}

static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct dp_schema schema;
    struct tabular tabular = {.options = options, .schema = &schema, .naming = set};
    bool categories = false;
    set->max = DP_COLUMNS_NAMES_MAX;
    enum dp_status st = dp_schema_parse("the schema", content->schema, content->schema_len, &schema, err);
    if (st == DP_OK && !options->columns_path)
        st = check_unchanged(options, &schema, err);
    if (st == DP_OK)
        st = plan_cells(&tabular, err);
    for (uint32_t i = 0; st == DP_OK && i < schema.columns; i++) {
        const struct dp_schema_column *column = &schema.column[i];
        const struct dp_columns_name of = {column->name, tabular.place[i].place, i, tabular.place[i].salt};
        categories |= column->kind == DP_COLUMN_CATEGORY || column->kind == DP_COLUMN_LIST;
        if (column->kind == DP_COLUMN_NUMBER)
            st = dp_columns_name_number(options, &of, set, err);
    }
    if (st == DP_OK && categories)
        st = dp_tabular_read(options, options->path,
                             (struct dp_tabular_sink){match_names, add_record, &tabular}, err);
    tabular_clear(&tabular);
    dp_schema_clear(&schema);
    return st == DP_STOPPING ? DP_OK : st;
}

const struct dp_format dp_format_tabular = {
    .name = "csv",
    .holds = "a header and lines of values parted by commas, semicolons or tabs",
    .forms = 1u << DP_FORM_SPARSE | 1u << DP_FORM_DENSE | 1u << DP_FORM_FIELDS | 1u << DP_FORM_TABLES,
    .decodes_slowly = true,
    .load = load,
    .schema_needed = true,
    .understood = understood,
    .names = names,
    .shape = dp_columns_shape,
    .fill = dp_columns_fill};
