#include "worker/read/survey.h"

#include "worker/read/lines.h"
#include "worker/read/number.h"
#include "worker/read/record.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

struct survey {
    struct dp_schema *schema;
    struct dp_record record;
    uint64_t *counts; /* [columns] of numbers; mean and deviation (the squares' sum) are kept in the schema */
    bool header;
};

static void add_number(struct survey *survey, uint32_t i, struct dp_cell cell)
{
    struct dp_schema_column *column = &survey->schema->column[i];
    double x;
    if (dp_cell_is_missing(cell) || dp_number_f64(cell.at, cell.end, &x) != cell.end || !isfinite((float)x))
        return;
    double before = x - column->mean;
    column->mean += before / (double)++survey->counts[i];
    column->deviation += before * (x - column->mean);
}

static enum dp_status add_record(void *self, const char *at, const char *end, uint64_t line,
                                 struct dp_error *err)
{
    struct survey *survey = self;
    const struct dp_schema *schema = survey->schema;
    (void)line;
    if (at == end)
        return DP_OK;
    if (!survey->header) { /* its names are those of the schema */
        survey->header = true;
        return DP_OK;
    }
    enum dp_status st = dp_record_split(&survey->record, ',', at, end, err);
    if (st == DP_OK && survey->record.count != schema->columns)
        st = dp_fail(err, DP_DATA, "expected %" PRIu32 " columns, as the header has, found %zu",
                     schema->columns, survey->record.count);
    for (uint32_t i = 0; st == DP_OK && i < schema->columns; i++)
        if (schema->column[i].kind == DP_COLUMN_NUMBER)
            add_number(survey, i, dp_cell_trim(survey->record.cells[i]));
    return st;
}

enum dp_status dp_survey(const struct dp_dataset_options *options, struct dp_schema *schema,
                         struct dp_error *err)
{
    struct survey survey = {.schema = schema};
    struct dp_unpack *unpack = NULL;
    survey.counts = calloc(schema->columns, sizeof *survey.counts);
    if (!survey.counts)
        return dp_fail(err, DP_NOMEM, "%s: no memory for the means of its columns", options->path);
    enum dp_status st = dp_unpack_open(options->path, &unpack, err);
    if (st == DP_OK)
        st = dp_lines_of(unpack, true, (struct dp_lines_sink){add_record, &survey}, err);
    dp_unpack_close(&unpack);
    for (uint32_t i = 0; st == DP_OK && i < schema->columns; i++) {
        struct dp_schema_column *column = &schema->column[i];
        if (survey.counts[i] > 0)
            column->deviation = sqrt(column->deviation / (double)survey.counts[i]);
    }
    schema->standardized = st == DP_OK;
    dp_record_clear(&survey.record);
    free(survey.counts);
    return st;
}
