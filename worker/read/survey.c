#include "worker/read/survey.h"

#include "common/base/hash.h"
#include "common/model/mix.h"
#include "worker/read/labels.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"
#include "worker/read/tabular.h"
#include "worker/read/value_set.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct survey {
    const struct dp_dataset_options *options;
    struct dp_schema *schema;
    struct dp_label_rule rule;
    struct dp_label_texts texts; /* of numbers up to one more than there may be, should a text follow them */
    bool text;                   /* some label is one */
    /* [columns]; mean and deviation (the squares' sum) are kept in the schema. */
    struct survey_column {
        uint64_t numbers;
        bool part; /* some number is not whole */
        struct dp_value_set values;
    } * column;
};

#define VALUES_MAX       65536u /* of a category */
#define VALUES_ALL_MAX   (1u << 21)
#define WHOLE_VALUES_MAX 256u /* of a number: more are no codes */

/* Short texts are their bytes: the hash need not be that of their key. */
static uint64_t hash_of(const char *at, size_t len)
{
    uint64_t word = 0;
    if (len > sizeof word)
        return dp_mix(dp_hash_bytes(DP_HASH_BEGIN, at, len));
    memcpy(&word, at, len);
    return dp_mix(word + len * DP_HASH_GOLDEN);
}

static enum dp_status add_number(struct survey *survey, uint32_t i, struct dp_cell cell, struct dp_error *err)
{
    struct dp_schema_column *column = &survey->schema->column[i];
    struct survey_column *of = &survey->column[i];
    double x;
    if (dp_schema_is_missing(survey->schema, cell) || dp_number_f64(cell.at, cell.end, &x) != cell.end ||
        !isfinite((float)x))
        return DP_OK;
    double before = x - column->mean;
    column->mean += before / (double)++of->numbers;
    column->deviation += before * (x - column->mean);
    of->part |= x != floor(x);
    if (of->part || of->values.full)
        return DP_OK;
    if (fabs(x) >= DP_NUMBER_WHOLE_MAX) /* as it is written */
        return dp_value_set_see(&of->values, hash_of(cell.at, (size_t)(cell.end - cell.at)), err);
    uint64_t bits;
    x = x == 0 ? 0 : x; /* -0 is 0 */
    memcpy(&bits, &x, sizeof bits);
    return dp_value_set_see(&of->values, dp_mix(bits), err);
}

static enum dp_status add_category(struct survey *survey, uint32_t i, struct dp_cell cell,
                                   struct dp_error *err)
{
    struct dp_value_set *values = &survey->column[i].values;
    if (values->full || cell.at == cell.end || dp_schema_says_missing(survey->schema, cell))
        return DP_OK;
    return dp_value_set_see(values, hash_of(cell.at, (size_t)(cell.end - cell.at)), err);
}

static enum dp_status add_list(struct survey *survey, uint32_t i, struct dp_cell cell, struct dp_error *err)
{
    struct dp_cell entry;
    enum dp_status st = DP_OK;
    while (st == DP_OK && dp_schema_next_entry(survey->schema, &cell, &entry))
        st = add_category(survey, i, entry, err);
    return st;
}

static enum dp_status add_label(struct survey *survey, struct dp_cell cell, uint64_t line,
                                struct dp_error *err)
{
    const struct dp_dataset_options *o = survey->options;
    uint32_t max = o->labels == DP_LABELS_BINARY ? 2 : o->classes;
    float label = 0, mapped;
    if (dp_schema_is_missing(survey->schema, cell))
        return dp_lines_unexpected("a label", cell.at, cell.end, err);
    bool number = dp_number_f32(cell.at, cell.end, &label) == cell.end;
    survey->text = survey->text || !number;
    if (survey->text)
        return dp_label_see(&survey->texts, o->labels, cell, line, max, err);
    if (survey->texts.count <= max) {
        enum dp_status st = dp_label_see(&survey->texts, o->labels, cell, line, max + 1, err);
        if (st != DP_OK)
            return st;
    }
    return dp_label_map(&survey->rule, label, &mapped, err);
}

/* The wrong column may have been named. */
static enum dp_status no_label(const char *column, enum dp_status st, struct dp_error *err)
{
    const struct dp_error cause = *err;
    return dp_fail(err, st,
                   "column '%s': %s; if the label is in another column, name that with --label "
                   "(data.label)",
                   dp_cell_show(dp_cell_of(column)).text, cause.text);
}

static enum dp_status add_cell(struct survey *survey, uint32_t i, struct dp_cell cell, uint64_t line,
                               struct dp_error *err)
{
    const struct dp_schema_column *column = &survey->schema->column[i];
    if (column->kind == DP_COLUMN_NUMBER)
        return add_number(survey, i, cell, err);
    if (column->kind == DP_COLUMN_CATEGORY)
        return add_category(survey, i, cell, err);
    if (column->kind == DP_COLUMN_LIST)
        return add_list(survey, i, cell, err);
    if (column->kind != DP_COLUMN_LABEL || survey->options->labels == DP_LABELS_ANY)
        return DP_OK;
    enum dp_status st = add_label(survey, cell, line, err);
    return st == DP_OK ? st : no_label(column->name, st, err);
}

/* The file may have changed since the schema was made of its names. */
static enum dp_status check_names(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    const struct survey *survey = self;
    if (record->count == survey->schema->columns)
        return DP_OK;
    return dp_fail(err, DP_DATA,
                   "expected %" PRIu32 " columns, found %zu: the file changed while it was read",
                   survey->schema->columns, record->count);
}

static enum dp_status add_record(void *self, const struct dp_tabular_record *record, struct dp_error *err)
{
    struct survey *survey = self;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < survey->schema->columns; i++)
        st = add_cell(survey, i, dp_cell_trim(record->cells[i]), record->line, err);
    return st;
}

static enum dp_status end_labels(struct survey *survey, struct dp_error *err)
{
    const struct dp_dataset_options *o = survey->options;
    if (!survey->text)
        return dp_label_settle(&survey->rule, NULL, 0, &survey->schema->label_base, err);
    if (o->label_base != 0 && o->label_base != DP_LABEL_BASE_AUTO)
        return dp_fail(err, DP_ARGUMENT,
                       "labels are texts such as '%s', which have no base: leave --label-base "
                       "(data.label_base) out",
                       dp_cell_show(dp_cell_of(survey->texts.text[0])).text);
    dp_label_name(&survey->texts, survey->schema);
    return DP_OK;
}

static void end_columns(struct survey *survey)
{
    for (uint32_t i = 0; i < survey->schema->columns; i++) {
        struct dp_schema_column *column = &survey->schema->column[i];
        const struct survey_column *of = &survey->column[i];
        bool category = column->kind == DP_COLUMN_CATEGORY || column->kind == DP_COLUMN_LIST;
        if (of->numbers > 0)
            column->deviation = sqrt(column->deviation / (double)of->numbers);
        if (!survey->options->standardize)
            column->mean = column->deviation = 0;
        if (category || (!of->part && !of->values.full)) {
            column->values = of->values.count;
            column->cells = of->values.cells;
        }
    }
    survey->schema->standardized = survey->options->standardize;
}

static enum dp_status begin_columns(struct survey *survey, struct dp_error *err)
{
    uint32_t columns = survey->schema->columns, each = VALUES_ALL_MAX / columns;
    each = each < VALUES_MAX ? each : VALUES_MAX;
    survey->column = calloc(columns, sizeof *survey->column);
    if (!survey->column)
        return dp_fail(err, DP_NOMEM, "%s: no memory for the means of its columns", survey->options->path);
    for (uint32_t i = 0; i < columns; i++) {
        enum dp_column_kind kind = survey->schema->column[i].kind;
        bool category = kind == DP_COLUMN_CATEGORY || kind == DP_COLUMN_LIST;
        survey->column[i].values.max = category || each < WHOLE_VALUES_MAX ? each : WHOLE_VALUES_MAX;
    }
    return DP_OK;
}

static void survey_clear(struct survey *survey)
{
    for (uint32_t i = 0; survey->column && i < survey->schema->columns; i++)
        dp_value_set_clear(&survey->column[i].values);
    dp_label_texts_clear(&survey->texts);
    free(survey->column);
}

enum dp_status dp_survey(const struct dp_dataset_options *options, struct dp_schema *schema,
                         struct dp_error *err)
{
    struct survey survey = {.options = options, .schema = schema, .rule = dp_label_rule_of(options)};
    enum dp_status st = begin_columns(&survey, err);
    if (st == DP_OK)
        st = dp_tabular_read(options, options->path,
                             (struct dp_tabular_sink){check_names, add_record, &survey}, err);
    if (st == DP_OK && options->labels != DP_LABELS_ANY) {
        st = end_labels(&survey, err);
        st = st == DP_OK ? st : dp_wrap(err, st, "%s", options->path);
    }
    if (st == DP_OK)
        end_columns(&survey);
    survey_clear(&survey);
    return st;
}
