#include "worker/read/survey.h"

#include "worker/read/labels.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"
#include "worker/read/tabular.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct survey {
    const struct dp_dataset_options *options;
    struct dp_schema *schema;
    struct dp_label_rule rule;
    struct dp_label_texts texts; /* of numbers up to one more than there may be, should a text follow them */
    bool text;                   /* some label is one */
    uint64_t *counts; /* [columns] of numbers; mean and deviation (the squares' sum) are kept in the schema */
};

static void add_number(struct survey *survey, uint32_t i, struct dp_cell cell)
{
    struct dp_schema_column *column = &survey->schema->column[i];
    double x;
    if (dp_schema_is_missing(survey->schema, cell) || dp_number_f64(cell.at, cell.end, &x) != cell.end ||
        !isfinite((float)x))
        return;
    double before = x - column->mean;
    column->mean += before / (double)++survey->counts[i];
    column->deviation += before * (x - column->mean);
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
    if (column->kind == DP_COLUMN_NUMBER && survey->options->standardize)
        add_number(survey, i, cell);
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
    return dp_label_name(&survey->texts, o->labels, survey->schema, err);
}

static void end_numbers(struct survey *survey)
{
    for (uint32_t i = 0; i < survey->schema->columns; i++) {
        struct dp_schema_column *column = &survey->schema->column[i];
        if (survey->counts[i] > 0)
            column->deviation = sqrt(column->deviation / (double)survey->counts[i]);
    }
    survey->schema->standardized = survey->options->standardize;
}

enum dp_status dp_survey(const struct dp_dataset_options *options, struct dp_schema *schema,
                         struct dp_error *err)
{
    struct survey survey = {.options = options, .schema = schema, .rule = dp_label_rule_of(options)};
    if (!options->standardize && options->labels == DP_LABELS_ANY)
        return DP_OK;
    survey.counts = calloc(schema->columns, sizeof *survey.counts);
    if (!survey.counts)
        return dp_fail(err, DP_NOMEM, "%s: no memory for the means of its columns", options->path);
    enum dp_status st = dp_tabular_read(options, options->path,
                                        (struct dp_tabular_sink){check_names, add_record, &survey}, err);
    if (st == DP_OK && options->labels != DP_LABELS_ANY) {
        st = end_labels(&survey, err);
        st = st == DP_OK ? st : dp_wrap(err, st, "%s", options->path);
    }
    if (st == DP_OK)
        end_numbers(&survey);
    dp_label_texts_clear(&survey.texts);
    free(survey.counts);
    return st;
}
