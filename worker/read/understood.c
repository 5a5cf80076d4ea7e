#include "worker/read/understood.h"

#include "common/base/text.h"
#include "worker/read/columns.h"
#include "worker/read/content.h"
#include "worker/read/tabular_header.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DIFFERENT_CELLS_MIN  20 /* of fewer rows a hint would be a guess */
#define CODES_MIN            3  /* values of a number that may be a code: of two, both ways are the same */
#define CODES_FEW            64 /* more are amounts, such as years, unless their digits are those of codes */
#define CODES_EACH           10 /* cells of each value, on average */
#define CODES_COLUMNS_MAX    12 /* more such columns are measurements, as pixels are */
#define CATEGORIES_NOTED_MAX 3  /* one by one */
#define NAMES_LEN_MAX        600

/* ---- texts */

struct text {
    char *at;
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text->at + text->len, text->size - text->len, format, args);
    va_end(args);
    size_t room = text->size - 1 - text->len;
    text->len += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
    if (n > 0 && (size_t)n > room)
        dp_text_mend_end(text->at);
    text->len = strlen(text->at);
}

static struct text new_line(struct dp_understood *out)
{
    DP_ASSERT(out->lines < DP_UNDERSTOOD_LINES);
    char *at = out->line[out->lines++];
    at[0] = '\0';
    return (struct text){at, sizeof out->line[0], 0};
}

/* False: there are as many notes as there may be. */
static bool new_note(struct dp_understood *out, struct text *text)
{
    if (out->notes == DP_UNDERSTOOD_NOTES)
        return false;
    char *at = out->note[out->notes++];
    at[0] = '\0';
    *text = (struct text){at, sizeof out->note[0], 0};
    return true;
}

static struct dp_shown name_of(const struct dp_schema_column *column)
{
    return dp_cell_show(dp_cell_of(column->name));
}

/* ---- lines */

static uint32_t place_of(const struct dp_schema *schema, uint32_t i)
{
    uint32_t place = 0;
    for (uint32_t before = 0; before < i; before++)
        place += schema->column[before].kind == schema->column[i].kind;
    return place;
}

/* "month (12 values)", "carrier (16)", "word (65,536+)", "genres (18 values, up to 6 in a cell)". Of a
 * further file the values were not counted: "month", "genres (up to 6 in a cell)". */
static void put_column(struct text *text, const struct dp_schema *schema, uint32_t i,
                       const struct dp_content *content, bool further)
{
    const struct dp_schema_column *column = &schema->column[i];
    const bool list = column->kind == DP_COLUMN_LIST, number = column->kind == DP_COLUMN_NUMBER;
    const struct dp_columns_entries entries = list ? dp_columns_entries(content, place_of(schema, i))
                                                   : (struct dp_columns_entries){content->examples, 1};
    char of[32];
    put(text, "%s", name_of(column).text);
    if (further && list)
        put(text, " (up to %s in a cell)", dp_text_grouped(entries.most, of));
    if (column->values == 0 || further)
        return;
    put(text, " (%s%s%s", dp_text_grouped(column->values, of),
        !number && column->values > 1024 && column->cells < entries.all / 2 ? "+" : "",
        !number && !list      ? ""
        : column->values == 1 ? " value"
                              : " values");
    if (list)
        put(text, ", up to %s in a cell", dp_text_grouped(entries.most, of));
    put(text, ")");
}

/* As many columns of the kind as fit into the line. */
static void put_kind(struct text *text, const char *heading, const struct dp_schema *schema,
                     enum dp_column_kind kind, const struct dp_content *content, bool further)
{
    uint32_t count = 0, shown = 0;
    for (uint32_t i = 0; i < schema->columns; i++)
        count += schema->column[i].kind == kind;
    if (count == 0)
        return;
    put(text, "%s%s: ", text->len ? "; " : "", heading);
    for (uint32_t i = 0; i < schema->columns && text->len < DP_UNDERSTOOD_WIDTH - 20; i++) {
        if (schema->column[i].kind != kind)
            continue;
        put(text, "%s", shown ? ", " : "");
        put_column(text, schema, i, content, further);
        shown++;
    }
    if (shown < count)
        put(text, ", ... (%" PRIu32 " in all)", count);
}

/* "22%", and no 0% or 100% of what is there. */
static void put_share(struct text *text, uint64_t part, uint64_t of)
{
    double percent = 100 * (double)part / (double)of;
    int digits = part > 0 && part < of && (percent < 1 || percent > 99) ? 2 : 0;
    if (digits && (percent < 0.01 || percent > 99.99))
        put(text, percent < 50 ? "<0.01%%" : ">99.99%%");
    else
        put(text, "%.*f%%", digits, percent);
}

static void put_class(struct text *text, const struct dp_schema *schema, uint32_t class)
{
    if (class < schema->classes)
        put(text, "%s ", dp_cell_show(dp_cell_of(schema->class_text[class])).text);
    else
        put(text, "%" PRIu32 " ", class + schema->label_base);
}

#define CLASSES_SHOWN 3u

static void put_classes(struct text *text, const struct dp_schema *schema, const struct dp_content *content,
                        const struct dp_dataset_options *options)
{
    bool binary = options->labels == DP_LABELS_BINARY;
    uint64_t count[CLASSES_SHOWN] = {0};
    uint32_t classes = binary ? 2 : options->classes,
             shown = classes < CLASSES_SHOWN ? classes : CLASSES_SHOWN;
    for (uint64_t i = 0; i < content->examples; i++)
        for (uint32_t c = 0; c < shown; c++)
            count[c] += content->labels[i] == (float)c;
    if (classes > CLASSES_SHOWN)
        put(text, "%" PRIu32 " classes: ", classes);
    for (uint32_t c = binary; c < shown; c++) {
        put(text, "%s", c > (uint32_t)binary ? ", " : "");
        put_class(text, schema, c);
        put_share(text, count[c], content->examples);
    }
    if (classes > CLASSES_SHOWN)
        put(text, ", ...");
}

static void put_values(struct text *text, const struct dp_content *content)
{
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < content->examples; i++) {
        double label = (double)content->labels[i];
        low = label < low ? label : low;
        high = label > high ? label : high;
        sum += label;
    }
    put(text, "%.6g to %.6g, mean %.6g", low, high, sum / (double)content->examples);
}

static void put_label(struct text *text, const struct dp_schema *schema, const struct dp_content *content,
                      const struct dp_dataset_options *options)
{
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == DP_COLUMN_LABEL)
            put(text, "label: %s (", name_of(&schema->column[i]).text);
    if (options->labels == DP_LABELS_ANY)
        put_values(text, content);
    else
        put_classes(text, schema, content, options);
    put(text, ")");
}

/* ---- notes */

static bool is_different(const struct dp_schema_column *column)
{
    return column->kind == DP_COLUMN_CATEGORY && column->cells >= DIFFERENT_CELLS_MIN &&
           (double)column->values >= 0.8 * (double)column->cells;
}

/* Which columns a note is of. */
typedef bool (*dp_understood_is)(const struct dp_tabular_header *header, const struct dp_schema *schema,
                                 uint32_t i);

static bool is_constant(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    const struct dp_schema_column *column = &schema->column[i];
    const bool number = column->kind == DP_COLUMN_NUMBER; /* in others an empty cell is a value too */
    return (column->values == 1 && (number || column->cells == header->rows)) ||
           (number && schema->standardized && column->deviation == 0 && !dp_tabular_header_rounds(header, i));
}

static bool is_code(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    const struct dp_schema_column *column = &schema->column[i];
    return column->kind == DP_COLUMN_NUMBER && column->values >= CODES_MIN &&
           (column->values <= CODES_FEW || dp_tabular_header_codes(header, i)) &&
           column->cells >= CODES_EACH * column->values;
}

static bool is_list(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    (void)schema;
    return dp_tabular_header_lists(header, i);
}

static bool is_listed(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    return schema->column[i].kind == DP_COLUMN_LIST || is_list(header, schema, i);
}

/* The signs or units of numbers. Several of them in few values are more likely sizes or ranks. */
static const struct dp_tabular_unit *units_of(const struct dp_tabular_header *header,
                                              const struct dp_schema *schema, uint32_t i, uint32_t *kinds)
{
    const struct dp_tabular_unit *units = dp_tabular_header_units(header, i, kinds);
    return *kinds == 1 || is_different(&schema->column[i]) ? units : NULL;
}

static bool is_text(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    uint32_t kinds;
    return (is_different(&schema->column[i]) || units_of(header, schema, i, &kinds)) &&
           !is_list(header, schema, i);
}

static bool is_rising(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    (void)schema;
    return dp_tabular_header_rises(header, i);
}

static bool is_rounded(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i)
{
    return dp_tabular_header_rounds(header, i) && !is_rising(header, schema, i);
}

/* "'$' before" and "'%' after" the number, ", thousands". */
static void put_unit(struct text *text, const struct dp_tabular_unit *unit)
{
    const char *before = unit->before, *after = unit->after;
    if (before[0])
        put(text, "'%s' before it", before);
    if (after[0])
        put(text, "%s'%s' after it", before[0] ? " and " : "", after);
    if (!before[0] && !after[0])
        put(text, "commas between thousands");
}

/* A sign of one character, and a word, can be named to sed. */
static void put_remedy(struct text *text, const struct dp_tabular_unit *unit)
{
    const char *sign = unit->before[0] ? unit->before : unit->after;
    bool plain = sign[0] && !(unit->before[0] && unit->after[0]) && !unit->thousands;
    for (const char *at = sign; *at; at++)
        plain &= !strchr("]^\\/'[,;", *at);
    put(text, "write plain numbers");
    if (plain && strlen(sign) == 1)
        put(text, " (sed 's/[%s]//g')", sign);
    else if (plain && !strpbrk(sign, ".*$"))
        put(text, " (sed 's/%s//g')", sign);
}

/* Numbers with a sign or unit, ids, timestamps: as categories they teach nothing. */
static void note_category(const struct dp_tabular_header *header, const struct dp_schema *schema, uint32_t i,
                          struct dp_understood *out)
{
    const struct dp_schema_column *column = &schema->column[i];
    uint32_t kinds;
    const struct dp_tabular_unit *unit = units_of(header, schema, i, &kinds);
    const struct dp_shown name = name_of(column);
    bool different = is_different(column);
    struct text text;
    char values[32], cells[32];
    if (!new_note(out, &text))
        return;
    if (different)
        put(&text, "%s of %s values of '%s' are different: ", dp_text_grouped(column->values, values),
            dp_text_grouped(column->cells, cells), name.text);
    if (!unit) {
        put(&text, "ids, times and texts teach nothing as categories; leave it out (--ignore %s)", name.text);
        return;
    }
    put(&text, different ? "each is" : "each value of '%s' is", name.text);
    put(&text, " a number with ");
    for (uint32_t k = 0; k < kinds; k++) {
        put(&text, "%s", k ? ", or " : "");
        put_unit(&text, &unit[k]);
    }
    put(&text, " ('%s'), read as a category; ", header->by[i].cell.text);
    if (kinds > 1)
        put(&text, "convert all to one unit and write plain numbers");
    else
        put_remedy(&text, unit);
    put(&text, ", or leave it out (--ignore %s)", name.text);
}

/* ---- */

static uint32_t count_of(const struct dp_tabular_header *header, const struct dp_schema *schema,
                         dp_understood_is is)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->columns; i++)
        count += is(header, schema, i);
    return count;
}

static void put_names(struct text *text, const char *separator, const struct dp_tabular_header *header,
                      const struct dp_schema *schema, dp_understood_is is)
{
    for (uint32_t i = 0, shown = 0; i < schema->columns && text->len < NAMES_LEN_MAX; i++)
        if (is(header, schema, i))
            put(text, "%s%s", shown++ ? separator : "", name_of(&schema->column[i]).text);
}

static void note_categories(const struct dp_tabular_header *header, const struct dp_schema *schema,
                            struct dp_understood *out)
{
    struct text text;
    uint32_t count = 0;
    for (uint32_t i = 0; i < schema->columns; i++)
        if (is_text(header, schema, i) && count++ < CATEGORIES_NOTED_MAX)
            note_category(header, schema, i, out);
    if (count <= CATEGORIES_NOTED_MAX || !new_note(out, &text))
        return;
    put(&text,
        "%" PRIu32 " columns are numbers with a sign, ids, times or texts, but were read as categories: ",
        count);
    put_names(&text, ", ", header, schema, is_text);
}

static void note_codes(const struct dp_tabular_header *header, const struct dp_schema *schema,
                       struct dp_understood *out)
{
    struct text text;
    char of[32];
    uint32_t codes = count_of(header, schema, is_code);
    if (codes == 0 || codes > CODES_COLUMNS_MAX || !new_note(out, &text))
        return;
    for (uint32_t i = 0, shown = 0; i < schema->columns; i++)
        if (is_code(header, schema, i))
            put(&text, "%s%s has %s", shown++ ? ", " : "", name_of(&schema->column[i]).text,
                dp_text_grouped(schema->column[i].values, of));
    put(&text, " whole values: if they are codes, not amounts, --categories ");
    put_names(&text, ",", header, schema, is_code);
    put(&text, " makes them categories");
}

/* --lists too replaces what it said before. */
static void note_lists(const struct dp_tabular_header *header, const struct dp_schema *schema,
                       struct dp_understood *out)
{
    struct text text;
    if (count_of(header, schema, is_list) == 0 || !new_note(out, &text))
        return;
    put_names(&text, ", ", header, schema, is_list);
    put(&text, ": most values have a '|'; --lists ");
    put_names(&text, ",", header, schema, is_listed);
    put(&text, " makes each a list of categories");
}

/* Another separator, most likely. */
static void note_single(const struct dp_schema *schema, const struct dp_content *content,
                        struct dp_understood *out)
{
    struct text text;
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == DP_COLUMN_LIST &&
            dp_columns_entries(content, place_of(schema, i)).most <= 1 && new_note(out, &text))
            put(&text,
                "no cell of '%s' has two entries: only '|' parts them, as in Action|Drama. Write them so, or "
                "leave --lists out",
                name_of(&schema->column[i]).text);
}

static void note_left_out(const struct dp_tabular_header *header, const struct dp_schema *schema,
                          dp_understood_is is, const char *what, struct dp_understood *out)
{
    struct text text;
    if (count_of(header, schema, is) == 0 || !new_note(out, &text))
        return;
    put_names(&text, ", ", header, schema, is);
    put(&text, ": %s; to leave it out: --ignore ", what);
    put_names(&text, ",", header, schema, is);
}

void dp_understood_lines(const struct dp_schema *schema, const struct dp_content *content,
                         const struct dp_dataset_options *options, struct dp_understood *out)
{
    static const struct {
        enum dp_column_kind kind;
        const char *heading;
    } kinds[] = {{DP_COLUMN_NUMBER, "numbers"},
                 {DP_COLUMN_CATEGORY, "categories"},
                 {DP_COLUMN_LIST, "lists"},
                 {DP_COLUMN_IGNORED, "ignored"},
                 {DP_COLUMN_ID, "id"}};
    struct text text = {NULL, 0, 0};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (kinds[k].kind != DP_COLUMN_ID) /* it is on the line of those that are ignored */
            text = new_line(out);
        put_kind(&text, kinds[k].heading, schema, kinds[k].kind, content, options->columns_path != NULL);
        if (text.len == 0 && kinds[k].kind != DP_COLUMN_IGNORED)
            out->lines--;
    }
    text = new_line(out);
    put_label(&text, schema, content, options);
}

void dp_understood_columns(const struct dp_tabular_header *header, const struct dp_schema *schema,
                           const struct dp_content *content, const struct dp_dataset_options *options,
                           struct dp_understood *out)
{
    struct text text;
    dp_understood_lines(schema, content, options, out);
    if (new_note(out, &text)) {
        dp_tabular_header_doubt(header, options->path, text.at, text.size);
        out->notes -= text.at[0] == '\0';
    }
    note_lists(header, schema, out);
    note_single(schema, content, out);
    note_categories(header, schema, out);
    if (!options->categories)
        note_codes(header, schema, out);
    note_left_out(header, schema, is_rising, "each value is above the one before, as ids and times are", out);
    note_left_out(header, schema, is_rounded, "whole numbers that lose digits, as ids do", out);
    note_left_out(header, schema, is_constant, "one value, or none, in all rows, which teaches nothing", out);
}
