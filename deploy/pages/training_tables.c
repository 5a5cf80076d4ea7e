#include "deploy/pages/training_tables.h"

#include "deploy/pages/page.h"
#include "deploy/run/epoch_choice.h"

#include <math.h>
#include <string.h>

#define EPOCHS_MAX  200u
#define COLUMNS_MAX (3 + 3 * DP_TRAINING_METRICS_MAX)

static const char *const sets[] = {"train", "validation", "test"};
static const char *const set_names[] = {"training", "validation", "test"};
#define SETS 3u

/* ---- metrics */

void dp_training_table_final(const struct dp_training *training, FILE *to)
{
    static const char *const headings[] = {"metric, at the end", "validation set", "test set",
                                           "best constant"};
    const json_t *final = json_object_get(training->report, "final"),
                 *constant = json_object_get(training->report, "constant");
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    size_t count = dp_training_metrics(training, metric);
    if (!final)
        return;
    fputs("<div>", to);
    dp_page_table_begin(to, headings, 4, 1);
    for (size_t i = 0; i < count; i++) {
        if (isnan(dp_training_metric(final, "validation", metric[i].key)) &&
            isnan(dp_training_metric(final, "test", metric[i].key)))
            continue;
        dp_page_row(to);
        dp_page_text_cell(to, metric[i].name);
        dp_page_number_cell(to, dp_training_metric(final, "validation", metric[i].key), metric[i].digits);
        dp_page_number_cell(to, dp_training_metric(final, "test", metric[i].key), metric[i].digits);
        dp_page_number_cell(to, dp_training_number(constant, metric[i].key, NULL), metric[i].digits);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
    const char *set = dp_training_text(constant, "set");
    char line[160];
    (void)snprintf(line, sizeof line,
                   "The best constant says the same of every example; here on the %.16s set.", set);
    if (set[0])
        dp_page_paragraph(to, "note", line);
    fputs("</div>\n", to);
}

struct epoch_columns {
    size_t count;
    char heading[COLUMNS_MAX][64];
    const char *set[COLUMNS_MAX];
    const struct dp_training_metric *metric[COLUMNS_MAX];
};

static bool has_column(const struct dp_training *training, const char *set, const char *key)
{
    for (size_t i = 0; i < training->count; i++)
        if (!isnan(dp_training_metric(json_array_get(training->epochs, i), set, key)))
            return true;
    return false;
}

static void choose_columns(const struct dp_training *training, const struct dp_training_metric *metric,
                           size_t count, struct epoch_columns *out)
{
    out->count = 0;
    for (size_t s = 0; s < SETS; s++)
        for (size_t m = 0; m < count; m++) {
            if (!has_column(training, sets[s], metric[m].key))
                continue;
            (void)snprintf(out->heading[out->count], sizeof out->heading[0], "%s %s", set_names[s],
                           metric[m].name);
            out->set[out->count] = sets[s];
            out->metric[out->count++] = &metric[m];
        }
}

static void put_epoch(const struct dp_training *training, size_t i, const struct epoch_columns *columns,
                      FILE *to)
{
    const json_t *epoch = json_array_get(training->epochs, i);
    dp_page_row(to);
    dp_page_number_cell(to, training->number[i], -1);
    for (size_t c = 0; c < columns->count; c++)
        dp_page_number_cell(to, dp_training_metric(epoch, columns->set[c], columns->metric[c]->key),
                            columns->metric[c]->digits);
    dp_page_number_cell(to, dp_training_number(epoch, "seconds", NULL), 2);
    dp_page_number_cell(to, dp_training_number(epoch, "examples_per_s", NULL), -1);
    dp_page_row_end(to);
}

void dp_training_table_epochs(const struct dp_training *training, bool open, FILE *to)
{
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    struct epoch_columns columns;
    const char *headings[COLUMNS_MAX] = {"epoch"};
    size_t best = dp_epoch_best(training->epochs), shown = 0;
    char line[120];
    if (training->count == 0)
        return;
    choose_columns(training, metric, dp_training_metrics(training, metric), &columns);
    for (size_t c = 0; c < columns.count; c++)
        headings[c + 1] = columns.heading[c];
    headings[columns.count + 1] = "seconds";
    headings[columns.count + 2] = "examples/s";
    dp_page_fold_begin(to, "All epochs as a table", open);
    dp_page_table_begin(to, headings, columns.count + 3, 0);
    for (size_t i = 0; i < training->count; i++) {
        if (i != best && !dp_epoch_chosen(i, training->count, EPOCHS_MAX))
            continue;
        put_epoch(training, i, &columns, to);
        shown++;
    }
    dp_page_table_end(to);
    (void)snprintf(line, sizeof line, "%zu of %zu epochs; report.json has all.", shown, training->count);
    if (shown < training->count)
        dp_page_paragraph(to, "note", line);
    dp_page_fold_end(to);
}

/* ---- distributions and time */

void dp_training_table_histogram(const struct dp_training_histogram *histogram, const char *what,
                                 const char *bucket, FILE *to)
{
    const char *const headings[] = {bucket, "pushes", "% of the pushes"};
    char title[80];
    (void)snprintf(title, sizeof title, "%s as a table", what);
    dp_page_fold_begin(to, title, false);
    dp_page_table_begin(to, headings, 3, 1);
    for (size_t b = 0; b < histogram->count; b++) {
        dp_page_row(to);
        dp_page_text_cell(to, histogram->label[b]);
        dp_page_number_cell(to, histogram->counts[b], -1);
        dp_page_number_cell(to, 100 * histogram->counts[b] / histogram->total, 1);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

static void put_shares(const char *name, const json_t *of, FILE *to)
{
    double seconds[DP_SHARES];
    if (!dp_training_shares(of, seconds))
        return;
    dp_page_row(to);
    dp_page_text_cell(to, name);
    for (int k = 0; k < DP_SHARES; k++)
        dp_page_number_cell(to, seconds[k], 2);
    dp_page_row_end(to);
}

void dp_training_table_shares(const struct dp_training *training, FILE *to)
{
    const json_t *workers = json_object_get(training->report, "workers");
    const char *headings[DP_SHARES + 1] = {"worker, seconds"};
    char name[24];
    for (int k = 0; k < DP_SHARES; k++)
        headings[k + 1] = dp_training_share_name((enum dp_training_share)k);
    dp_page_fold_begin(to, "Seconds of each kind as a table", false);
    dp_page_table_begin(to, headings, DP_SHARES + 1, 1);
    put_shares("all", training->report, to);
    for (size_t w = 0; w < json_array_size(workers); w++) {
        (void)snprintf(name, sizeof name, "%zu", w);
        put_shares(name, json_array_get(workers, w), to);
    }
    dp_page_table_end(to);
    dp_page_fold_end(to);
}

void dp_training_table_workers(const struct dp_training *training, FILE *to)
{
    static const char *const headings[] = {"worker",     "device", "examples",       "seconds",
                                           "examples/s", "pushes", "mean staleness", "max staleness"};
    const json_t *workers = json_object_get(training->report, "workers");
    char name[24];
    if (json_array_size(workers) == 0)
        return;
    dp_page_table_begin(to, headings, sizeof headings / sizeof headings[0], 2);
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *one = json_array_get(workers, w);
        dp_page_row(to);
        (void)snprintf(name, sizeof name, "%zu", w);
        dp_page_text_cell(to, name);
        dp_page_text_cell(to, dp_training_text(one, "device"));
        dp_page_number_cell(to, dp_training_number(one, "examples", NULL), -1);
        dp_page_number_cell(to, dp_training_number(one, "seconds", NULL), 2);
        dp_page_number_cell(to, dp_training_number(one, "examples_per_s", NULL), -1);
        dp_page_number_cell(to, dp_training_number(one, "pushes", NULL), -1);
        dp_page_number_cell(to, dp_training_number(one, "staleness", "mean", NULL), 2);
        dp_page_number_cell(to, dp_training_number(one, "staleness", "max", NULL), -1);
        dp_page_row_end(to);
    }
    dp_page_table_end(to);
}
