/* CSV with a header (RFC 4180): one column is the label; the others are numbers or categories, told apart by
 * options.categories or by whether all of the first lines are numbers, or say that there is none.
 *     the training file's header and first lines -> which column is what -> this file's header, by names -> its records
 * Why   What a test file's columns are is read in the training file: its own first lines might say otherwise. A training keeps it
 *       (dp_dataset_columns) for predictions, before which the training file may change or go: a line of all names, in quotes, and
 *       a line of their kinds. */
#include "worker/read/columns.h"

#include "common/base/log.h"
#include "worker/read/lines.h"
#include "worker/read/names.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LOOK_LINES  1000u
#define COLUMNS_MAX 65536u

enum kind { KIND_NUMBER, KIND_CATEGORY, KIND_LABEL };

/* As a kept file has them. */
static const char *const kind_names[] = {"number", "category", "label"};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

struct cell {
    const char *at, *end;
};

/* A record taken apart: cells lie in the line, or in `text` where quotes had to be taken out. */
struct record {
    struct cell *cells;
    size_t count, max;
    char *text;
    size_t text_max;
};

/* A text as messages have it: cut to 40 characters, and safe to print. */
struct shown {
    char text[44];
};

struct csv {
    const struct dp_dataset_options *options;
    /* Of the training file: */
    struct column {
        char *name;
        enum kind kind;
        uint32_t place; /* among those of its kind */
        uint64_t salt;
        uint64_t by_line; /* of the first cell that made it a category, and that cell; 0: it was named */
        struct shown by;
    } * column;
    uint32_t columns;
    struct dp_names names; /* of columns */
    uint64_t looked;       /* records */
    /* Of the file at hand: */
    uint32_t *column_of; /* [cells]: which column of the training file a cell is */
    size_t cells;
    struct record record;
    struct dp_columns rows;
    bool labelled;
    struct dp_name_set *naming; /* the records are looked at for this only */
};

static enum dp_status reserve(struct record *r, size_t text, struct dp_error *err)
{
    if (r->count == r->max) {
        size_t max = r->max * 2 + 64;
        struct cell *cells = realloc(r->cells, max * sizeof *cells);
        if (!cells)
            return dp_fail(err, DP_NOMEM, "no memory for %zu cells", max);
        r->cells = cells;
        r->max = max;
    }
    if (text > r->text_max) {
        char *grown = realloc(r->text, text);
        if (!grown)
            return dp_fail(err, DP_NOMEM, "no memory for a line of %zu bytes", text);
        r->text = grown;
        r->text_max = text;
    }
    return DP_OK;
}

/* A quoted cell that starts at `at`; *behind: what follows its second quote. The second may not be there. */
static struct cell unquote(const char *at, const char *end, char **text, const char **behind)
{
    struct cell cell = {*text, *text};
    for (at++; at < end; at++) {
        if (*at == '"' && (at + 1 == end || at[1] != '"'))
            break;
        at += *at == '"';
        *(*text)++ = *at;
    }
    cell.end = *text;
    *behind = at < end ? at + 1 : end;
    return cell;
}

static enum dp_status take_apart(struct record *r, const char *at, const char *end, struct dp_error *err)
{
    char *text = NULL;
    r->count = 0;
    for (;;) {
        enum dp_status st = reserve(r, (size_t)(end - at) * (r->count == 0) + 1, err);
        if (st != DP_OK)
            return st;
        text = r->count ? text : r->text;
        struct cell *cell = &r->cells[r->count++];
        const char *behind;
        if (at < end && *at == '"') {
            *cell = unquote(at, end, &text, &behind);
        } else {
            behind = memchr(at, ',', (size_t)(end - at));
            behind = behind ? behind : end;
            *cell = (struct cell){at, behind};
            if (memchr(at, '"', (size_t)(behind - at)))
                return dp_lines_unexpected("quotes around a whole field only, each inside doubled", at,
                                           behind, err);
        }
        if (behind < end && *behind != ',')
            return dp_lines_unexpected("a comma behind a quoted field", behind, end, err);
        if (behind == end)
            return DP_OK;
        at = behind + 1;
    }
}

static struct cell trimmed(struct cell cell)
{
    while (cell.at < cell.end && (*cell.at == ' ' || *cell.at == '\t'))
        cell.at++;
    while (cell.at < cell.end && (cell.end[-1] == ' ' || cell.end[-1] == '\t'))
        cell.end--;
    return cell;
}

/* Nothing, or what R, Python and SQL write for it: no number is there, which says nothing of the others. */
static bool is_missing(struct cell cell)
{
    static const char *const texts[] = {"NA", "NaN", "null"};
    size_t len = (size_t)(cell.end - cell.at);
    if (len == 0 || (*cell.at != 'n' && *cell.at != 'N'))
        return len == 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strlen(texts[i]) == len && strncasecmp(cell.at, texts[i], len) == 0)
            return true;
    return false;
}

/* ---- what the columns are */

static struct shown shown(struct cell name)
{
    struct shown out;
    dp_lines_show(name.at, name.end, out.text);
    return out;
}

static enum dp_status no_such(const struct csv *csv, const char *what, struct cell name, struct dp_error *err)
{
    char names[128] = "";
    for (uint32_t i = 0; i < csv->columns && strlen(names) + 4 < sizeof names; i++) {
        const char *column = csv->column[i].name;
        (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                       shown((struct cell){column, column + strlen(column)}).text);
    }
    return dp_fail(err, DP_DATA, "%s '%s' is no column; there are: %s", what, shown(name).text, names);
}

static struct column *find_column(struct csv *csv, struct cell name)
{
    uint32_t place = dp_names_find(&csv->names, name.at, (size_t)(name.end - name.at));
    return place == DP_NAMES_NONE ? NULL : &csv->column[place];
}

/* "a,b": names with a comma in them cannot be told. */
static enum dp_status name_categories(struct csv *csv, struct dp_error *err)
{
    for (const char *at = csv->options->categories; *at;) {
        size_t len = strcspn(at, ",");
        struct cell name = trimmed((struct cell){at, at + len});
        struct column *column = find_column(csv, name);
        if (!column)
            return no_such(csv, "category", name, err);
        if (column->kind == KIND_LABEL)
            return dp_fail(err, DP_DATA, "column '%s' is the label and cannot be a category too",
                           shown(name).text);
        column->kind = KIND_CATEGORY;
        at += len + (at[len] == ',');
    }
    return DP_OK;
}

/* One more column; its name must be a new one. */
static enum dp_status add_column(struct csv *csv, struct cell name, struct dp_error *err)
{
    struct column *column = &csv->column[csv->columns];
    size_t len = (size_t)(name.end - name.at);
    if (len == 0)
        return dp_fail(err, DP_DATA, "column %" PRIu32 " has no name: expected a header", csv->columns + 1);
    column->name = strndup(name.at, len);
    if (!column->name)
        return dp_fail(err, DP_NOMEM, "no memory for the names of columns");
    column->salt = dp_columns_hash(0, name.at, len);
    uint32_t place = csv->columns++;
    if (dp_names_add(&csv->names, column->name, len, place) != place)
        return dp_fail(err, DP_DATA, "two columns are named '%s'", shown(name).text);
    return DP_OK;
}

static enum dp_status read_names(struct csv *csv, const char *at, const char *end, struct dp_error *err)
{
    const char *label = csv->options->label;
    enum dp_status st = take_apart(&csv->record, at, end, err);
    if (st != DP_OK)
        return st;
    if (csv->record.count > COLUMNS_MAX)
        return dp_fail(err, DP_DATA, "more than %u columns", COLUMNS_MAX);
    csv->column = calloc(csv->record.count, sizeof *csv->column);
    if (!csv->column)
        return dp_fail(err, DP_NOMEM, "no memory for %zu columns", csv->record.count);
    st = dp_names_init(&csv->names, (uint32_t)csv->record.count, err);
    for (size_t i = 0; st == DP_OK && i < csv->record.count; i++)
        st = add_column(csv, trimmed(csv->record.cells[i]), err);
    if (st != DP_OK)
        return st;
    struct column *named = find_column(csv, (struct cell){label, label + strlen(label)});
    if (!named)
        return no_such(csv, "the label", (struct cell){label, label + strlen(label)}, err);
    named->kind = KIND_LABEL;
    return csv->options->categories ? name_categories(csv, err) : DP_OK;
}

/* The header, and what the first lines say; DP_STOPPING: enough is seen. */
static enum dp_status look(void *self, const char *at, const char *end, uint64_t line, struct dp_error *err)
{
    struct csv *csv = self;
    if (at == end)
        return DP_OK;
    if (!csv->column)
        return read_names(csv, at, end, err);
    if (csv->options->categories || csv->looked++ == LOOK_LINES)
        return dp_fail(err, DP_STOPPING, "enough");
    enum dp_status st = take_apart(&csv->record, at, end, err);
    for (uint32_t i = 0; st == DP_OK && i < csv->columns && i < csv->record.count; i++) {
        struct cell cell = trimmed(csv->record.cells[i]);
        struct column *column = &csv->column[i];
        /* One out of range is a number, to be refused by its line: it makes no categories of the others. */
        if (column->kind != KIND_NUMBER || is_missing(cell) || dp_number_end(cell.at, cell.end) == cell.end)
            continue;
        column->kind = KIND_CATEGORY;
        column->by = shown(cell);
        column->by_line = line;
    }
    return st;
}

/* "'city' by 'Rome' in line 2, ...", as many as there is room for. "": none was found out. */
static void list_categories(const struct csv *csv, char *out, size_t size)
{
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < csv->columns; i++) {
        const struct column *column = &csv->column[i];
        char one[160];
        if (column->by_line == 0)
            continue;
        int n = snprintf(one, sizeof one, "%s'%s' by '%s' in line %" PRIu64, len > 0 ? ", " : "",
                         shown((struct cell){column->name, column->name + strlen(column->name)}).text,
                         column->by.text, column->by_line);
        if (len + (size_t)n + sizeof ", ..." > size) {
            (void)snprintf(out + len, size - len, ", ...");
            return;
        }
        memcpy(out + len, one, (size_t)n + 1);
        len += (size_t)n;
    }
}

/* Once a training: where the file that is looked at is the one that is read. */
static void tell_categories(const struct csv *csv)
{
    const struct dp_dataset_options *o = csv->options;
    char list[640];
    list_categories(csv, list, sizeof list);
    if (list[0] && !o->held && (!o->like_path || strcmp(o->like_path, o->path) == 0))
        dp_log(DP_LOG_INFO,
               "%s: categories, by the first cell that is no number: %s; the other columns are numbers",
               o->path, list);
}

/* The two lines of a kept file, and nothing else: a wrong kind would make other features, without a word. */
static enum dp_status look_kept(void *self, const char *at, const char *end, uint64_t line,
                                struct dp_error *err)
{
    struct csv *csv = self;
    (void)line;
    if (!csv->column)
        return read_names(csv, at, end, err);
    enum dp_status st = take_apart(&csv->record, at, end, err);
    if (st == DP_OK && (csv->looked++ > 0 || csv->record.count != csv->columns))
        st = dp_fail(err, DP_DATA, "expected one line with the kinds of %" PRIu32 " columns", csv->columns);
    for (uint32_t i = 0; st == DP_OK && i < csv->columns; i++) {
        struct cell cell = csv->record.cells[i];
        struct column *column = &csv->column[i];
        size_t len = (size_t)(cell.end - cell.at), kind = 0;
        while (kind < KINDS &&
               (strlen(kind_names[kind]) != len || memcmp(kind_names[kind], cell.at, len) != 0))
            kind++;
        if (kind == KINDS)
            return dp_lines_unexpected("number, category or label", cell.at, cell.end, err);
        if ((kind == KIND_LABEL) != (column->kind == KIND_LABEL))
            return dp_fail(err, DP_DATA, "column '%s' was%s the label when these columns were trained on",
                           column->name, kind == KIND_LABEL ? "" : " not");
        column->kind = (enum kind)kind;
    }
    return st;
}

static enum dp_status read_columns(struct csv *csv, struct dp_error *err)
{
    const struct dp_dataset_options *o = csv->options;
    const char *path = o->columns_path ? o->columns_path : o->like_path ? o->like_path : o->path;
    struct dp_unpack *unpack = NULL;
    struct dp_error last = {0};
    enum dp_status st = dp_unpack_open(path, &unpack, &last);
    if (st != DP_OK && o->columns_path)
        return dp_fail(err, st, "%s; the training kept there what its columns are: bring the file back",
                       last.text);
    if (st == DP_OK)
        st =
            dp_lines_of(unpack, true, (struct dp_lines_sink){o->columns_path ? look_kept : look, csv}, &last);
    dp_unpack_close(&unpack);
    if (st == DP_STOPPING)
        st = DP_OK;
    if (st != DP_OK) {
        if (err)
            *err = last;
        return st;
    }
    uint32_t places[KINDS] = {0};
    for (uint32_t i = 0; i < csv->columns; i++)
        csv->column[i].place = places[csv->column[i].kind]++;
    if (csv->columns == 0)
        return dp_fail(err, DP_DATA, "%s: has no header", path);
    if (o->columns_path && csv->looked == 0)
        return dp_fail(err, DP_DATA, "%s: has no line of the columns' kinds: bring the whole file back",
                       path);
    if (!o->categories && csv->looked == 0)
        return dp_fail(err, DP_DATA, "%s: holds no examples, only a header", path);
    return DP_OK;
}

static uint64_t digest_columns(const struct csv *csv)
{
    uint64_t digest = 0;
    for (uint32_t i = 0; i < csv->columns; i++) {
        const char *name = csv->column[i].name;
        digest = dp_content_digest_bytes(digest, name, strlen(name));
        digest = dp_content_digest(digest, csv->column[i].kind);
    }
    return digest;
}

/* ---- this file */

static uint32_t count_kind(const struct csv *csv, enum kind kind)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < csv->columns; i++)
        count += csv->column[i].kind == kind;
    return count;
}

static enum dp_status match_names(struct csv *csv, const char *at, const char *end, struct dp_error *err)
{
    enum dp_status st = take_apart(&csv->record, at, end, err);
    if (st != DP_OK)
        return st;
    csv->cells = csv->record.count;
    csv->column_of = calloc(csv->cells, sizeof *csv->column_of);
    bool *seen = calloc(csv->columns, sizeof *seen);
    if (!csv->column_of || !seen)
        st = dp_fail(err, DP_NOMEM, "no memory for %zu columns", csv->cells);
    for (size_t i = 0; st == DP_OK && i < csv->cells; i++) {
        struct cell name = trimmed(csv->record.cells[i]);
        struct column *column = find_column(csv, name);
        if (!column) {
            st = no_such(csv, "of the training file,", name, err);
        } else if (seen[column - csv->column]) {
            st = dp_fail(err, DP_DATA, "two columns are named '%s'", shown(name).text);
        } else {
            csv->column_of[i] = (uint32_t)(column - csv->column);
            seen[column - csv->column] = true;
        }
    }
    for (uint32_t i = 0; st == DP_OK && i < csv->columns; i++) {
        csv->labelled |= seen[i] && csv->column[i].kind == KIND_LABEL;
        if (!seen[i] && !(csv->options->scored && csv->column[i].kind == KIND_LABEL))
            st = dp_fail(err, DP_DATA, "column '%s' of the training file is missing", csv->column[i].name);
    }
    free(seen);
    return st;
}

static enum dp_status add_cell(struct csv *csv, const struct column *column, struct cell cell,
                               struct dp_error *err)
{
    struct cell number = trimmed(cell);
    enum dp_status st = DP_OK;
    if (column->kind == KIND_CATEGORY)
        dp_columns_category(&csv->rows, column->place, column->salt, cell.at, (size_t)(cell.end - cell.at));
    else if (column->kind == KIND_LABEL)
        st = dp_columns_label(&csv->rows, number.at, number.end, err);
    else
        st = dp_columns_number(&csv->rows, column->place, is_missing(number) ? number.end : number.at,
                               number.end, NULL, err);
    if (st != DP_OK && column->kind == KIND_NUMBER)
        return dp_wrap(err, st, "column '%s' (text? name it in the setting categories)", column->name);
    return st == DP_OK ? st : dp_wrap(err, st, "column '%s'", column->name);
}

static enum dp_status name_cells(struct csv *csv, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < csv->cells; i++) {
        const struct column *column = &csv->column[csv->column_of[i]];
        struct cell cell = csv->record.cells[i];
        const struct dp_columns_name of = {column->name, column->place, csv->column_of[i], column->salt};
        if (column->kind == KIND_CATEGORY)
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
    enum dp_status st = take_apart(&csv->record, at, end, err);
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
        st = add_cell(csv, &csv->column[csv->column_of[i]], csv->record.cells[i], err);
    return st;
}

static enum dp_status read_rows(struct csv *csv, struct dp_unpack *unpack, struct dp_content *out,
                                struct dp_error *err)
{
    uint32_t numbers = count_kind(csv, KIND_NUMBER), n = 0;
    char why[200];
    uint64_t *salt = calloc(numbers + 1, sizeof *salt);
    if (!salt)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " columns", numbers);
    for (uint32_t i = 0; i < csv->columns; i++)
        if (csv->column[i].kind == KIND_NUMBER)
            salt[n++] = csv->column[i].salt;
    list_categories(csv, why, sizeof why);
    enum dp_status st = dp_columns_begin(&csv->rows, csv->options, out, numbers,
                                         count_kind(csv, KIND_CATEGORY), why[0] ? why : NULL, err);
    out->facts[DP_COLUMNS_KINDS] = digest_columns(csv);
    if (st == DP_OK)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_record, csv}, err);
    if (st == DP_OK)
        st = dp_columns_end(&csv->rows, salt, err);
    free(salt);
    return st;
}

static enum dp_status check_label(const struct dp_dataset_options *options, struct dp_error *err)
{
    return options->label && options->label[0]
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "%s: a CSV file needs the name of its label's column (data.label)",
                         options->path);
}

static void csv_clear(struct csv *csv)
{
    for (uint32_t i = 0; i < csv->columns; i++)
        free(csv->column[i].name);
    dp_names_clear(&csv->names);
    free(csv->column);
    free(csv->column_of);
    free(csv->record.cells);
    free(csv->record.text);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct csv csv = {.options = options};
    enum dp_status st = check_label(options, err);
    if (st == DP_OK)
        st = read_columns(&csv, err);
    if (st == DP_OK)
        tell_categories(&csv);
    if (st == DP_OK)
        st = read_rows(&csv, unpack, out, err);
    csv_clear(&csv);
    return st;
}

/* In quotes: what a name has of commas, line ends and the first bytes of gzip is then no more than that. */
static void write_columns(const struct csv *csv, FILE *stream)
{
    for (uint32_t i = 0; i < csv->columns; i++) {
        (void)fputs(i ? ",\"" : "\"", stream);
        for (const char *at = csv->column[i].name; *at; at++)
            (void)fputs(*at == '"' ? "\"\"" : (const char[]){*at, '\0'}, stream);
        (void)fputc('"', stream);
    }
    for (uint32_t i = 0; i < csv->columns; i++)
        (void)fprintf(stream, "%c%s", i ? ',' : '\n', kind_names[csv->column[i].kind]);
    (void)fputc('\n', stream);
}

static enum dp_status columns(const struct dp_dataset_options *options, const struct dp_content *content,
                              char **text, struct dp_error *err)
{
    struct csv csv = {.options = options};
    size_t len = 0;
    enum dp_status st = read_columns(&csv, err);
    if (st == DP_OK && digest_columns(&csv) != content->facts[DP_COLUMNS_KINDS])
        st = dp_fail(err, DP_DATA, "'%s' changed while it was read", options->path);
    FILE *stream = st == DP_OK ? open_memstream(text, &len) : NULL;
    if (stream)
        write_columns(&csv, stream);
    bool failed = stream && ferror(stream);
    failed = (stream && fclose(stream) != 0) || failed;
    if (st == DP_OK && (!stream || failed)) {
        free(*text);
        *text = NULL;
        st = dp_fail(err, DP_NOMEM, "no memory for the names of columns");
    }
    csv_clear(&csv);
    return st;
}

static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct csv csv = {.options = options, .naming = set};
    struct dp_unpack *unpack = NULL;
    set->max = DP_COLUMNS_NAMES_MAX;
    enum dp_status st = read_columns(&csv, err);
    if (st == DP_OK && digest_columns(&csv) != content->facts[DP_COLUMNS_KINDS])
        st = dp_fail(err, DP_DATA, "'%s' changed while it was read", options->path);
    for (uint32_t i = 0; st == DP_OK && i < csv.columns; i++) {
        const struct column *column = &csv.column[i];
        const struct dp_columns_name of = {column->name, column->place, i, column->salt};
        if (column->kind == KIND_NUMBER)
            st = dp_columns_name_number(options, &of, set, err);
    }
    if (st == DP_OK && count_kind(&csv, KIND_CATEGORY) > 0)
        st = dp_unpack_open(options->path, &unpack, err);
    if (unpack)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_record, &csv}, err);
    dp_unpack_close(&unpack);
    csv_clear(&csv);
    return st == DP_STOPPING ? DP_OK : st;
}

const struct dp_format dp_format_csv = {.name = "csv",
                                        .holds = "a header and lines of values parted by commas",
                                        .forms = 1u << DP_FORM_SPARSE | 1u << DP_FORM_DENSE |
                                                 1u << DP_FORM_FIELDS | 1u << DP_FORM_TABLES,
                                        .decodes_slowly = true,
                                        .load = load,
                                        .like_apart = true,
                                        .columns = columns,
                                        .names = names,
                                        .shape = dp_columns_shape,
                                        .fill = dp_columns_fill};
