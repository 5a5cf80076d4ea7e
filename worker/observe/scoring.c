#include "worker/observe/scoring.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/env/json_file.h"
#include "worker/observe/sample_rows.h"
#include "worker/observe/scored.h"
#include "worker/schedule/early_stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SAMPLES_EPOCH 16u
#define SAMPLES_MAX   256u

static enum dp_status scored_new(const struct dp_cluster *cluster, const atomic_int *stop,
                                 struct dp_scored **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory to score");
    enum dp_status st = dp_scored_open(cluster, stop, *out, err);
    if (st == DP_OK)
        return DP_OK;
    free(*out);
    *out = NULL;
    return st;
}

static void scored_free(struct dp_scored **scored)
{
    if (*scored)
        dp_scored_close(*scored);
    free(*scored);
    *scored = NULL;
}

/* 16 samples by examples an epoch, but not more than 256 in all: each has to be scored. */
static uint64_t examples_each(const struct dp_scored *scored)
{
    uint64_t epoch = dp_dataset_examples(scored->sets.train), epochs = scored->cluster.training.epochs;
    uint64_t each =
        epochs <= SAMPLES_MAX / SAMPLES_EPOCH ? epoch / SAMPLES_EPOCH : epoch * epochs / SAMPLES_MAX;
    return each > 0 ? each : 1;
}

enum dp_status dp_scoring_keys(const struct dp_cluster *cluster, const atomic_int *stop, const char *to,
                               struct dp_error *err)
{
    struct dp_scored *scored = NULL;
    struct dp_sample_record record = {0};
    struct dp_sample_keys keys = {0};
    struct dp_figures figures;
    enum dp_status st = scored_new(cluster, stop, &scored, err);
    if (st == DP_OK) {
        const struct dp_row_source source = dp_sample_record_source(&record);
        record.graph = scored->job.model.graph;
        st = dp_scored_figures(scored, &source, &figures, err);
        dp_sample_record_take(&record, &keys);
    }
    if (st == DP_OK) {
        keys.each = examples_each(scored);
        st = dp_sample_keys_write(&keys, to, err);
    }
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "an evaluation reads %zu weights of %" PRIu32 " tables",
               dp_sample_keys_floats(&keys), keys.tables);
    dp_sample_keys_clear(&keys);
    scored_free(&scored);
    return st;
}

/* ---- the metrics of samples */

struct scoring {
    struct dp_scored *scored;
    struct dp_samples_reader *samples;
    struct dp_sample_rows rows;
    float *weights;    /* of the current sample */
    uint64_t examples; /* of the set; 0: no sample had finite weights */
};

/* By the names that --stop-at takes. Metrics among all items have their K; "ndcg@10" is that of lists, where both are there. */
static void set_metrics(json_t *out, const struct dp_figures *figures)
{
    for (enum dp_metric m = DP_METRIC_LOSS; m < DP_METRICS; m++) {
        bool of_all = m == DP_METRIC_RECALL || m == DP_METRIC_NDCG;
        char name[32];
        if (m == DP_METRIC_LOGLOSS && isnan(figures->accuracy)) /* the loss is another one */
            continue;
        (void)snprintf(name, sizeof name, "%s", dp_metric_name(m));
        if (of_all)
            (void)snprintf(name, sizeof name, "%s@%" PRIu32, dp_metric_name(m), figures->top[1]);
        if (!json_object_get(out, name))
            dp_json_set_real(out, name, dp_early_stop_figure(figures, m));
    }
}

static json_t *sample_json(const struct dp_sample *sample, const struct dp_figures *figures, bool diverged)
{
    bool began = sample->began_ns > 0 && sample->monotonic_ns > sample->began_ns;
    bool by_examples = sample->by == DP_SAMPLE_BY_EXAMPLES;
    json_t *out = json_object();
    if (!out)
        return NULL;
    dp_json_set_real(out, "seconds", began ? (double)(sample->monotonic_ns - sample->began_ns) / 1e9 : 0.0);
    dp_json_set_u64(out, "examples", sample->examples);
    dp_json_set_u64(out, "pushes", sample->pushes);
    dp_json_set_real(out, "at", (double)sample->wall_ns / 1e9);
    (void)json_object_set_new(out, "by", json_string(by_examples ? "examples" : "time"));
    if (diverged)
        (void)json_object_set_new(out, "diverged", json_true());
    else
        set_metrics(out, figures);
    if (!json_object_get(out, "loss")) /* it is infinite */
        (void)json_object_set_new(out, "loss", json_null());
    return out;
}

static enum dp_status score_one(struct scoring *s, uint64_t number, json_t *samples, struct dp_error *err)
{
    struct dp_sample sample;
    struct dp_figures figures = dp_figures_none(0);
    const struct dp_row_source source = dp_sample_rows_source(&s->rows);
    enum dp_status st = dp_samples_reader_read(s->samples, number, &sample, s->weights, err);
    if (st != DP_OK)
        return st;
    st = dp_scored_figures(s->scored, &source, &figures, err);
    bool diverged = st == DP_NOT_FINITE;
    if (diverged)
        *err = (struct dp_error){0};
    else if (st != DP_OK)
        return st;
    else
        s->examples = figures.examples;
    return json_array_append_new(samples, sample_json(&sample, &figures, diverged)) == 0
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no memory for the metrics of a sample");
}

static enum dp_status scoring_open(struct scoring *s, const struct dp_cluster *cluster,
                                   const atomic_int *stop, const struct dp_scoring_options *options,
                                   struct dp_error *err)
{
    struct dp_sample_keys keys = {0};
    enum dp_status st = dp_samples_reader_open(options->samples, &s->samples, err);
    if (st == DP_OK && options->keys)
        st = dp_sample_keys_read(options->keys, &keys, err);
    if (st == DP_OK && options->keys && !dp_sample_keys_same(&keys, dp_samples_reader_keys(s->samples)))
        st = dp_fail(err, DP_ARGUMENT, "the samples in '%s' were not taken with the keys in '%s'",
                     options->samples, options->keys);
    dp_sample_keys_clear(&keys);
    if (st != DP_OK)
        return st;
    s->rows.keys = dp_samples_reader_keys(s->samples);
    s->rows.rows = s->weights = malloc((dp_sample_keys_floats(s->rows.keys) + 1) * sizeof *s->weights);
    if (!s->weights)
        return dp_fail(err, DP_NOMEM, "no memory for a sample of %zu weights",
                       dp_sample_keys_floats(s->rows.keys));
    st = scored_new(cluster, stop, &s->scored, err);
    return st == DP_OK ? dp_sample_keys_fit(s->rows.keys, s->scored->job.model.graph, options->samples, err)
                       : st;
}

enum dp_status dp_scoring_samples(const struct dp_cluster *cluster, const atomic_int *stop,
                                  const struct dp_scoring_options *options, struct dp_error *err)
{
    struct scoring s = {0};
    json_t *root = json_object(), *samples = json_array();
    (void)json_object_set_new(root, "samples", samples);
    enum dp_status st = root && samples ? scoring_open(&s, cluster, stop, options, err)
                                        : dp_fail(err, DP_NOMEM, "no memory for the metrics of samples");
    uint64_t count = st == DP_OK ? dp_samples_reader_count(s.samples) : 0;
    for (uint64_t i = 0; st == DP_OK && i < count; i++)
        st = score_one(&s, i, samples, err);
    if (st == DP_OK)
        (void)json_object_set_new(root, "set", json_string(s.scored->sets.test ? "test" : "validation"));
    if (st == DP_OK && s.examples > 0)
        dp_json_set_u64(root, "examples", s.examples);
    if (st == DP_OK)
        st = dp_json_file_write(options->out, &root, 15, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "%" PRIu64 " samples scored", count);
    scored_free(&s.scored);
    dp_samples_reader_close(&s.samples);
    free(s.weights);
    json_decref(root);
    return st;
}
