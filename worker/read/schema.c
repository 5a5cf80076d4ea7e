#include "worker/read/schema.h"

#include "common/base/hash.h"
#include "common/base/text.h"
#include "worker/read/csv_record.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION     3
#define VERSION_MIN 2 /* without inputs and checksum */
#define COLUMNS_MAX 65536u

static const char *const kind_names[DP_COLUMN_KINDS] = {
    "number", "category", "list", "label", "id", "user", "item", "rating", "time", "weight", "ignored"};

/* What a line can say, in the order of lines. */
enum key {
    KEY_VERSION,
    KEY_NAMES = 2,
    KEY_KINDS,
    KEY_TRIMMED,
    KEY_MEANS,
    KEY_DEVIATIONS,
    KEY_MISSING = 9,
    KEY_VALUES,
    KEY_CELLS,
    KEY_LABEL_SCALE,
    KEY_INPUTS,
    KEY_END
};

#define SUM_BYTES 17 /* 16 hexadecimal digits */

struct parser {
    struct dp_schema *schema;
    struct dp_csv_record record;
    uint64_t lines;
    uint32_t seen;          /* lines with a key: a bit each, by its place in `keys` */
    uint64_t sum;           /* of the lines before `end` */
    char stated[SUM_BYTES]; /* by `end`; "": none */
};

/* ---- the parts of a line; cells: those after the key */

static enum dp_status take_text(struct dp_cell cell, char **out, struct dp_error *err)
{
    *out = strndup(cell.at, (size_t)(cell.end - cell.at));
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the names of columns");
}

static enum dp_status take_names(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                 size_t count, struct dp_error *err)
{
    (void)key;
    enum dp_status st = DP_OK;
    if (count == 0 || count > COLUMNS_MAX)
        return dp_fail(err, DP_DATA, "expected the names of 1 to %u columns, found %zu", COLUMNS_MAX, count);
    schema->column = calloc(count, sizeof *schema->column);
    if (!schema->column)
        return dp_fail(err, DP_NOMEM, "no memory for %zu columns", count);
    for (size_t i = 0; st == DP_OK && i < count; i++) {
        st = take_text(cells[i], &schema->column[i].name, err);
        schema->columns += st == DP_OK;
    }
    return st;
}

static enum dp_status take_kinds(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                 size_t count, struct dp_error *err)
{
    (void)key;
    if (count != schema->columns)
        return dp_fail(err, DP_DATA, "expected one line with the kinds of %" PRIu32 " columns",
                       schema->columns);
    for (uint32_t i = 0; i < schema->columns; i++) {
        size_t kind = 0;
        while (kind < DP_COLUMN_KINDS && !dp_cell_is(cells[i], kind_names[kind]))
            kind++;
        if (kind == DP_COLUMN_KINDS)
            return dp_lines_unexpected("number, category, label or another kind of column", cells[i].at,
                                       cells[i].end, err);
        schema->column[i].kind = (enum dp_column_kind)kind;
    }
    return DP_OK;
}

static enum dp_status take_real(struct dp_cell cell, double min, double *out, struct dp_error *err)
{
    if (dp_number_f64(cell.at, cell.end, out) != cell.end || cell.at == cell.end || *out < min)
        return dp_lines_unexpected(min < 0 ? "a mean" : "a deviation", cell.at, cell.end, err);
    return DP_OK;
}

static enum dp_status take_moments(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                   size_t count, struct dp_error *err)
{
    bool deviations = key == KEY_DEVIATIONS;
    if (count != schema->columns)
        return dp_fail(err, DP_DATA, "expected the %s of %" PRIu32 " columns, found %zu",
                       deviations ? "deviations" : "means", schema->columns, count);
    for (uint32_t i = 0; i < schema->columns; i++) {
        struct dp_schema_column *column = &schema->column[i];
        bool number = column->kind == DP_COLUMN_NUMBER;
        enum dp_status st = DP_OK;
        if (number)
            st = take_real(cells[i], deviations ? 0 : -INFINITY,
                           deviations ? &column->deviation : &column->mean, err);
        else if (cells[i].at != cells[i].end)
            st = dp_lines_unexpected("nothing in a column of no numbers", cells[i].at, cells[i].end, err);
        if (st != DP_OK)
            return st;
    }
    schema->standardized = true;
    return DP_OK;
}

static enum dp_status take_texts(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                 size_t count, struct dp_error *err)
{
    bool missing = key == KEY_MISSING;
    char ***text = missing ? &schema->missing_text : &schema->class_text;
    uint32_t *taken = missing ? &schema->missing : &schema->classes;
    enum dp_status st = DP_OK;
    *text = calloc(count + 1, sizeof **text);
    if (!*text)
        return dp_fail(err, DP_NOMEM, "no memory for %zu texts", count);
    for (size_t i = 0; st == DP_OK && i < count; i++) {
        st = take_text(cells[i], &(*text)[i], err);
        *taken += st == DP_OK;
    }
    return st == DP_OK && count == 0
               ? dp_fail(err, DP_DATA, "expected texts of %s", missing ? "missing cells" : "labels")
               : st;
}

static enum dp_status take_number(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                  size_t count, struct dp_error *err)
{
    uint64_t value = 0, max = key == KEY_VERSION ? UINT32_MAX : DP_LABEL_BASE_MAX;
    if (count != 1 || dp_number_index(cells[0].at, cells[0].end, &value) != cells[0].end || value > max)
        return dp_fail(err, DP_DATA, "expected one integer up to %" PRIu64, max);
    if (key == KEY_VERSION && (value < VERSION_MIN || value > VERSION))
        return dp_fail(
            err, DP_VERSION,
            "version %" PRIu64
            " of the file is another build's: this one reads %d and %d; use that build, or train with "
            "--fresh",
            value, VERSION_MIN, VERSION);
    schema->label_base = key == KEY_VERSION ? 0 : (uint32_t)value;
    return DP_OK;
}

static enum dp_status take_inputs(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                  size_t count, struct dp_error *err)
{
    uint64_t number[4] = {0};
    double scale = 0;
    (void)key;
    bool good =
        (count == 4 || count == 5) && dp_number_f64(cells[2].at, cells[2].end, &scale) == cells[2].end;
    for (size_t i = 0; good && i + 1 < count; i++) {
        const struct dp_cell cell = cells[i + (i >= 2)];
        good = dp_number_index(cell.at, cell.end, &number[i]) == cell.end && number[i] <= 63;
    }
    if (!good)
        return dp_fail(err, DP_DATA, "expected hash bits, index base, scale, and whether it is normalized");
    schema->inputs = (struct dp_schema_inputs){.known = true,
                                               .hash_bits = (uint32_t)number[0],
                                               .index_base = (uint32_t)number[1],
                                               .scale = scale,
                                               .normalize = number[2] != 0,
                                               .words = (uint32_t)number[3]};
    return DP_OK;
}

/* take_line keeps the checksum. */
static enum dp_status take_end(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                               size_t count, struct dp_error *err)
{
    (void)schema, (void)key;
    if (count == 0 || (count == 1 && cells[0].end - cells[0].at == SUM_BYTES - 1))
        return DP_OK;
    return dp_fail(err, DP_DATA, "expected a checksum of %d digits after it", SUM_BYTES - 1);
}

static enum dp_status take_counts(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                  size_t count, struct dp_error *err)
{
    if (count != schema->columns)
        return dp_fail(err, DP_DATA, "expected a count for each of %" PRIu32 " columns, found %zu",
                       schema->columns, count);
    for (uint32_t i = 0; i < schema->columns; i++) {
        struct dp_schema_column *column = &schema->column[i];
        uint64_t *to = key == KEY_VALUES ? &column->values : &column->cells;
        if (dp_number_index(cells[i].at, cells[i].end, to) != cells[i].end)
            return dp_lines_unexpected("a count", cells[i].at, cells[i].end, err);
    }
    return DP_OK;
}

static enum dp_status take_scale(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                 size_t count, struct dp_error *err)
{
    (void)key;
    struct dp_label_scale *scale = &schema->label_scale;
    if (count != 2)
        return dp_fail(err, DP_DATA, "expected the mean and the deviation of labels, found %zu cells", count);
    enum dp_status st = take_real(cells[0], -INFINITY, &scale->mean, err);
    if (st == DP_OK)
        st = take_real(cells[1], 0, &scale->deviation, err);
    return st == DP_OK && !(scale->deviation > 0) ? dp_fail(err, DP_DATA, "expected a deviation above 0")
                                                  : st;
}

static enum dp_status take_nothing(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                   size_t count, struct dp_error *err)
{
    (void)schema, (void)key, (void)cells;
    return count == 0 ? DP_OK : dp_fail(err, DP_DATA, "expected nothing after it");
}

static enum dp_status take_format(struct dp_schema *schema, enum key key, const struct dp_cell *cells,
                                  size_t count, struct dp_error *err)
{
    (void)key;
    size_t len = count == 1 ? (size_t)(cells[0].end - cells[0].at) : 0;
    if (len == 0 || len >= sizeof schema->format)
        return dp_fail(err, DP_DATA, "expected the name of one format");
    memcpy(schema->format, cells[0].at, len);
    return DP_OK;
}

/* A line by its first cell. */
static const struct {
    const char *name;
    enum dp_status (*take)(struct dp_schema *schema, enum key key, const struct dp_cell *cells, size_t count,
                           struct dp_error *err);
} keys[] = {{"version", take_number},     {"format", take_format},   {"names", take_names},
            {"kinds", take_kinds},        {"trimmed", take_nothing}, {"means", take_moments},
            {"deviations", take_moments}, {"classes", take_texts},   {"label_base", take_number},
            {"missing", take_texts},      {"values", take_counts},   {"cells", take_counts},
            {"label_scale", take_scale},  {"inputs", take_inputs},   {"end", take_end}};
#define KEYS (sizeof keys / sizeof keys[0])

static bool has(const struct parser *p, enum key key)
{
    return p->seen & 1u << key;
}

static uint64_t add_line(uint64_t sum, const char *at, const char *end)
{
    return dp_hash_bytes(dp_hash_bytes(sum, at, (size_t)(end - at)), "\n", 1);
}

/* ---- the file */

static enum dp_status older(const char *what, struct dp_error *err)
{
    return dp_fail(
        err, DP_VERSION,
        "%s: an older build wrote it; score with that build, or train again (downpour run --fresh)", what);
}

/* Lines come in the order of the keys, each once: what a line needs is there before it. */
static enum dp_status take_line(void *self, const char *at, const char *end, uint64_t line,
                                struct dp_error *err)
{
    struct parser *p = self;
    const struct dp_csv_record *record = &p->record;
    size_t key = 0;
    (void)line;
    if (p->lines == 0 && at < end && *at == '"')
        return older("version 1 of the file, without keys", err);
    enum dp_status st = dp_csv_record_split(&p->record, ',', at, end, err);
    if (st != DP_OK)
        return st;
    p->lines++;
    while (key < KEYS && !dp_cell_is(record->cells[0], keys[key].name))
        key++;
    if (key == KEYS)
        return dp_lines_unexpected("version, format, names, kinds, trimmed, means, deviations, classes, "
                                   "label_base, missing, values, cells, label_scale, inputs or end",
                                   record->cells[0].at, record->cells[0].end, err);
    if (p->lines == 1 && key != KEY_VERSION)
        return dp_fail(err, DP_DATA, "expected the file's version first");
    if (p->seen >> key)
        return dp_fail(err, DP_DATA, "'%s' after '%s': expected each line once, and before it",
                       keys[key].name, keys[31 - __builtin_clz(p->seen)].name);
    p->seen |= 1u << key;
    if (key != KEY_END)
        p->sum = add_line(p->sum, at, end);
    else if (record->count == 2)
        (void)snprintf(p->stated, sizeof p->stated, "%.*s", (int)(record->cells[1].end - record->cells[1].at),
                       record->cells[1].at);
    return keys[key].take(p->schema, (enum key)key, record->cells + 1, record->count - 1, err);
}

static enum dp_status check(const struct parser *p, const char *name, struct dp_error *err)
{
    const struct dp_schema *schema = p->schema;
    uint32_t count[DP_COLUMN_KINDS] = {0};
    for (uint32_t i = 0; i < schema->columns; i++)
        count[schema->column[i].kind]++;
    if (p->lines == 0)
        return dp_fail(err, DP_DATA, "%s: has no header: restore the complete file", name);
    if (!has(p, KEY_END))
        return dp_fail(err, DP_DATA, "%s: ends before its last line: restore the complete file", name);
    char sum[SUM_BYTES] = "";
    if (has(p, KEY_INPUTS))
        (void)snprintf(sum, sizeof sum, "%016" PRIx64, p->sum);
    if (strcmp(sum, p->stated) != 0)
        return dp_fail(
            err, DP_DATA,
            "%s: its checksum is not that of its lines, so it is damaged: restore the complete file", name);
    if (schema->format[0] == '\0')
        return dp_fail(err, DP_DATA, "%s: lacks the line of the format: restore the complete file", name);
    if (strcmp(schema->format, "csv") != 0)
        return DP_OK;
    if (!has(p, KEY_NAMES) || !has(p, KEY_KINDS))
        return dp_fail(err, DP_DATA, "%s: lacks the line of the columns' %s: restore the complete file", name,
                       has(p, KEY_NAMES) ? "kinds" : "names");
    if (has(p, KEY_MEANS) != has(p, KEY_DEVIATIONS))
        return dp_fail(err, DP_DATA, "%s: lacks the line of the %s: restore the complete file", name,
                       has(p, KEY_MEANS) ? "deviations" : "means");
    if (count[DP_COLUMN_LABEL] != 1)
        return dp_fail(err, DP_DATA, "%s: has %" PRIu32 " labels among its columns: expected one", name,
                       count[DP_COLUMN_LABEL]);
    for (int weight = 0; weight < 2; weight++) {
        uint32_t has = count[weight ? DP_COLUMN_WEIGHT : DP_COLUMN_ID];
        if (has > 1)
            return dp_fail(err, DP_DATA, "%s: has %" PRIu32 " %s among its columns: expected one", name, has,
                           weight ? "weights" : "ids");
    }
    if (count[DP_COLUMN_CATEGORY] + count[DP_COLUMN_LIST] > 0 && !has(p, KEY_TRIMMED)) {
        enum dp_status st = older("categories with the blanks around them", err);
        return dp_wrap(err, st, "%s", name);
    }
    return DP_OK;
}

static void end_parse(struct parser *p, enum dp_status st)
{
    dp_csv_record_clear(&p->record);
    if (st != DP_OK)
        dp_schema_clear(p->schema);
}

enum dp_status dp_schema_parse(const char *name, const void *text, size_t len, struct dp_schema *out,
                               struct dp_error *err)
{
    struct parser p = {.schema = out, .sum = DP_HASH_BEGIN};
    struct dp_lines *lines = NULL;
    *out = (struct dp_schema){0};
    enum dp_status st = dp_lines_new(name, true, (struct dp_lines_sink){take_line, &p}, &lines, err);
    if (st == DP_OK)
        st = dp_lines_feed(lines, text, len, err);
    if (st == DP_OK)
        st = dp_lines_finish(lines, err);
    dp_lines_free(&lines);
    if (st == DP_OK)
        st = check(&p, name, err);
    end_parse(&p, st);
    return st;
}

enum dp_status dp_schema_read_file(const char *path, struct dp_schema *out, struct dp_error *err)
{
    struct parser p = {.schema = out, .sum = DP_HASH_BEGIN};
    struct dp_unpack *unpack = NULL;
    *out = (struct dp_schema){0};
    enum dp_status st = dp_unpack_open(path, &unpack, err);
    if (st == DP_OK)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){take_line, &p}, err);
    dp_unpack_close(&unpack);
    if (st == DP_OK)
        st = check(&p, path, err);
    end_parse(&p, st);
    return st;
}

/* In quotes: what a name has of commas, line ends and the first bytes of gzip is then no more than that. */
static void put_quoted(const char *text, FILE *stream)
{
    (void)fputs(",\"", stream);
    for (const char *at = text; *at; at++)
        (void)fputs(*at == '"' ? "\"\"" : (const char[]){*at, '\0'}, stream);
    (void)fputc('"', stream);
}

static void put_texts(const char *key, char *const *text, uint32_t count, FILE *stream)
{
    if (count == 0)
        return;
    (void)fputs(key, stream);
    for (uint32_t i = 0; i < count; i++)
        put_quoted(text[i], stream);
    (void)fputc('\n', stream);
}

static void put_moments(const struct dp_schema *schema, bool deviations, FILE *stream)
{
    for (uint32_t i = 0; i < schema->columns; i++) {
        const struct dp_schema_column *column = &schema->column[i];
        (void)fputc(',', stream);
        if (column->kind == DP_COLUMN_NUMBER)
            (void)fprintf(stream, "%.17g", deviations ? column->deviation : column->mean);
    }
}

static void put(const struct dp_schema *schema, FILE *stream)
{
    bool categories = false, counted = false;
    (void)fprintf(stream, "version,%d\nformat,%s\n", schema->inputs.known ? VERSION : VERSION_MIN,
                  schema->format);
    for (uint32_t i = 0; i < schema->columns; i++) {
        categories |=
            schema->column[i].kind == DP_COLUMN_CATEGORY || schema->column[i].kind == DP_COLUMN_LIST;
        counted |= schema->column[i].values > 0;
    }
    if (schema->columns > 0) {
        (void)fputs("names", stream);
        for (uint32_t i = 0; i < schema->columns; i++)
            put_quoted(schema->column[i].name, stream);
        (void)fputs("\nkinds", stream);
        for (uint32_t i = 0; i < schema->columns; i++)
            (void)fprintf(stream, ",%s", kind_names[schema->column[i].kind]);
        (void)fputs(categories ? "\ntrimmed\n" : "\n", stream);
    }
    for (int deviations = 0; schema->standardized && deviations < 2; deviations++) {
        (void)fputs(keys[deviations ? KEY_DEVIATIONS : KEY_MEANS].name, stream);
        put_moments(schema, deviations, stream);
        (void)fputc('\n', stream);
    }
    put_texts("classes", schema->class_text, schema->classes, stream);
    if (schema->label_base > 0)
        (void)fprintf(stream, "label_base,%" PRIu32 "\n", schema->label_base);
    put_texts("missing", schema->missing_text, schema->missing, stream);
    for (int cells = 0; counted && cells < 2; cells++) {
        (void)fputs(keys[cells ? KEY_CELLS : KEY_VALUES].name, stream);
        for (uint32_t i = 0; i < schema->columns; i++)
            (void)fprintf(stream, ",%" PRIu64, cells ? schema->column[i].cells : schema->column[i].values);
        (void)fputc('\n', stream);
    }
    if (schema->label_scale.deviation > 0)
        (void)fprintf(stream, "label_scale,%.17g,%.17g\n", schema->label_scale.mean,
                      schema->label_scale.deviation);
    if (schema->inputs.known)
        (void)fprintf(stream, "inputs,%" PRIu32 ",%" PRIu32 ",%.17g,%d", schema->inputs.hash_bits,
                      schema->inputs.index_base, schema->inputs.scale, schema->inputs.normalize);
    if (schema->inputs.words > 0)
        (void)fprintf(stream, ",%" PRIu32, schema->inputs.words);
    if (schema->inputs.known)
        (void)fputc('\n', stream);
}

enum dp_status dp_schema_write(const struct dp_schema *schema, char **text, struct dp_error *err)
{
    size_t len = 0;
    *text = NULL;
    FILE *stream = open_memstream(text, &len);
    bool failed = !stream;
    if (stream) {
        put(schema, stream);
        failed = fflush(stream) != 0;
        if (!failed && schema->inputs.known)
            (void)fprintf(stream, "end,%016" PRIx64 "\n", dp_hash_bytes(DP_HASH_BEGIN, *text, len));
        else
            (void)fputs("end\n", stream);
        failed = ferror(stream) || failed;
        failed = fclose(stream) != 0 || failed;
    }
    if (!failed)
        return DP_OK;
    free(*text);
    *text = NULL;
    return dp_fail(err, DP_NOMEM, "no memory for the names of columns");
}

struct dp_label_scale dp_label_scale_constant(double value)
{
    return (struct dp_label_scale){value, ldexp(value != 0 ? fabs(value) : 1, -20)};
}

bool dp_label_scale_is_constant(const struct dp_label_scale *scale)
{
    return scale->deviation > 0 && scale->deviation == dp_label_scale_constant(scale->mean).deviation;
}

void dp_schema_labels_text(const struct dp_schema *schema, bool binary, uint32_t classes, char *out,
                           size_t size)
{
    const uint32_t base = schema->label_base, shown = 8;
    size_t len = 0;
    out[0] = '\0';
    const struct dp_label_scale *scale = &schema->label_scale;
    if (dp_label_scale_is_constant(scale))
        (void)snprintf(out, size, "%.9g in every example: the model predicts this value", scale->mean);
    else if (scale->deviation > 0)
        (void)snprintf(out, size,
                       "standardized by their mean %.6g and deviation %.6g; metrics are in their unit",
                       scale->mean, scale->deviation);
    if (schema->classes == 0 && base == 0)
        return;
    if (schema->classes == 0 && !binary) {
        (void)snprintf(out, size, "%" PRIu32 " .. %" PRIu32 " are classes 0 .. %" PRIu32, base,
                       base + classes - 1, classes - 1);
        return;
    }
    for (uint32_t i = 0; i < (binary ? 2 : schema->classes) && len < size; i++) {
        struct dp_shown name;
        if (schema->classes)
            name = dp_cell_show(dp_cell_of(schema->class_text[i]));
        else
            (void)snprintf(name.text, sizeof name.text, "%" PRIu32, base + i);
        if (i == shown) {
            (void)snprintf(out + len, size - len, ", ... (%" PRIu32 " in all)", schema->classes);
            return;
        }
        len += (size_t)snprintf(out + len, size - len, "%s'%s' is %" PRIu32 "%s", i ? ", " : "", name.text, i,
                                binary && i ? " (positive)" : "");
    }
    dp_text_mend_end(out);
}

enum dp_status dp_schema_add_missing(struct dp_schema *schema, struct dp_cell text, struct dp_error *err)
{
    char **grown = realloc(schema->missing_text, (schema->missing + 1) * sizeof *grown);
    if (!grown)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " texts", schema->missing + 1);
    schema->missing_text = grown;
    enum dp_status st = take_text(text, &grown[schema->missing], err);
    schema->missing += st == DP_OK;
    return st;
}

bool dp_schema_says_missing(const struct dp_schema *schema, struct dp_cell cell)
{
    bool missing = false;
    for (uint32_t i = 0; !missing && i < schema->missing; i++)
        missing = dp_cell_is(cell, schema->missing_text[i]);
    return missing;
}

bool dp_schema_is_missing(const struct dp_schema *schema, struct dp_cell cell)
{
    return dp_cell_is_missing(cell) || dp_schema_says_missing(schema, cell);
}

bool dp_schema_next_entry(const struct dp_schema *schema, struct dp_cell *rest, struct dp_cell *entry)
{
    while (rest->at < rest->end) {
        const char *at = rest->at, *end = memchr(at, '|', (size_t)(rest->end - at));
        end = end ? end : rest->end;
        rest->at = end + (end < rest->end);
        *entry = dp_cell_trim((struct dp_cell){at, end});
        if (entry->at < entry->end && !dp_schema_says_missing(schema, *entry))
            return true;
    }
    return false;
}

void dp_schema_clear(struct dp_schema *schema)
{
    for (uint32_t i = 0; schema->column && i < schema->columns; i++)
        free(schema->column[i].name);
    for (uint32_t i = 0; schema->class_text && i < schema->classes; i++)
        free(schema->class_text[i]);
    for (uint32_t i = 0; schema->missing_text && i < schema->missing; i++)
        free(schema->missing_text[i]);
    free(schema->column);
    free(schema->class_text);
    free(schema->missing_text);
    *schema = (struct dp_schema){0};
}

static bool holds_pairs(const char *format)
{
    return strcmp(format, "pairs") == 0 || strcmp(format, "lists") == 0;
}

bool dp_schema_same_kind(const char *format, const char *other)
{
    return strcmp(format, other) == 0 || (holds_pairs(format) && holds_pairs(other));
}
