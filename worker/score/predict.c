#include "worker/score/predict.h"

#include "common/env/atomic_file.h"
#include "worker/score/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

static double probability(double logit)
{
    /* Each form is safe from overflow for its sign. */
    return logit >= 0 ? 1.0 / (1.0 + exp(-logit)) : exp(logit) / (1.0 + exp(logit));
}

void dp_predict_line(FILE *stream, enum dp_labels labels, const struct dp_label_scale *scale,
                     const float *output, uint32_t width)
{
    if (labels != DP_LABELS_CLASS) {
        double value = (double)output[0];
        (void)fprintf(stream, "%.9g\n",
                      labels == DP_LABELS_BINARY ? probability(value) : dp_label_scale_restore(scale, value));
        return;
    }
    float top = output[0];
    for (uint32_t i = 1; i < width; i++)
        top = output[i] > top ? output[i] : top;
    double sum = 0;
    for (uint32_t i = 0; i < width; i++)
        sum += exp((double)output[i] - (double)top);
    for (uint32_t i = 0; i < width; i++)
        (void)fprintf(stream, "%.9g%c", exp((double)output[i] - (double)top) / sum,
                      i + 1 < width ? ' ' : '\n');
}

enum dp_status dp_predict_not_finite(const struct dp_job *job, const char *what, float score,
                                     struct dp_error *err)
{
    double rate = job->cluster->training.rate;
    return dp_fail(err, DP_NOT_FINITE,
                   "the score of %s is %g: the training has diverged, or numbers of the data are far larger "
                   "than those that it saw. Train again with a lower rate (downpour run --dir DIR --fresh "
                   "--rate %.3g; it was %g), or correct the data",
                   what, (double)score, dp_cluster_lower_rate(&job->cluster->training), rate);
}

struct lines {
    FILE *stream;
    const char *path, *data;
    const struct dp_job *job;
    const struct dp_dataset *dataset;
    struct dp_label_scale scale;
};

/* Rows are counted from 1. */
static enum dp_status check_row(const struct lines *lines, uint64_t row, const float *output, uint32_t width,
                                struct dp_error *err)
{
    char what[DP_PATH_MAX + 64];
    uint32_t i = 0;
    while (i < width && isfinite(output[i]))
        i++;
    if (i == width)
        return DP_OK;
    (void)snprintf(what, sizeof what, "row %" PRIu64 " of '%.160s'", row, lines->data);
    return dp_predict_not_finite(lines->job, what, output[i], err);
}

static enum dp_status write_lines(void *context, const struct dp_batch *batch, const float *output,
                                  uint32_t width, struct dp_error *err)
{
    const struct lines *lines = context;
    uint64_t first = batch->number * dp_job_batch(lines->job);
    enum dp_status st = DP_OK;
    errno = 0;
    for (uint32_t i = 0; st == DP_OK && i < batch->examples && !ferror(lines->stream); i++) {
        const float *row = output + (size_t)i * width;
        st = check_row(lines, first + i + 1, row, width, err);
        const char *id = dp_dataset_id(lines->dataset, first + i);
        if (st == DP_OK && id) {
            dp_vocab_print(lines->stream, id, false);
            (void)fputc('\t', lines->stream);
        }
        if (st == DP_OK)
            dp_predict_line(lines->stream, lines->job->model.labels, &lines->scale, row, width);
    }
    return st == DP_OK && ferror(lines->stream)
               ? dp_fail(err, DP_IO, "cannot write the scores to '%s': %s", lines->path, strerror(errno))
               : st;
}

bool dp_predict_needs_training_data(const struct dp_job *job)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    bool csv = data->label[0], regression = dp_job_is_regression(job);
    /* Without its columns a CSV file is refused, and what was trained by those of another file. */
    return data->columns[0] ? regression && !csv && !data->by_columns && access(data->columns, F_OK) != 0
                            : csv || regression;
}

enum dp_status dp_predict(struct dp_job *job, const char *data, const char *labels,
                          const struct dp_schema *like, const char *out, struct dp_error *err)
{
    struct dp_dataset *dataset = NULL;
    struct dp_atomic_file file = {0};
    struct dp_dataset_options options = dp_job_data(job, data, labels, false);
    options.labels = DP_LABELS_ANY;
    options.scored = options.keeps_ids = true;
    options.cache = NULL; /* read once */
    const char *columns = job->cluster->data.columns;
    options.columns_path = columns[0] ? columns : NULL;
    options.like = like;
    enum dp_status st = dp_dataset_open(&options, &dataset, err);
    if (st == DP_OK)
        st = dp_job_program(job, dataset, NULL, NULL, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(out, &file, err);
    if (st != DP_OK)
        goto done;
    struct lines lines = {.stream = file.stream,
                          .path = out,
                          .data = data,
                          .job = job,
                          .dataset = dataset,
                          .scale = dp_dataset_schema(dataset)->label_scale};
    const struct dp_scan scan = {.job = job,
                                 .data = dataset,
                                 .offset = 0,
                                 .stride = 1,
                                 .no_labels = true,
                                 .visit = write_lines,
                                 .context = &lines};
    st = dp_scan(&scan, err);
    if (st == DP_OK)
        st = dp_atomic_file_commit(&file, err);
done:
    dp_atomic_file_drop(&file);
    dp_dataset_close(&dataset);
    return st;
}
