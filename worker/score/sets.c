#include "worker/score/sets.h"

#include "common/base/log.h"
#include "common/config/holdout_spec.h"
#include "worker/context/defaults.h"
#include "worker/score/baseline.h"
#include "worker/score/ranking.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Whether the model is one of users and items. */
static bool recommends(const struct dp_job *job)
{
    return job->model.form == DP_FORM_PAIRS || job->model.form == DP_FORM_TRIPLES;
}

static void log_ranked(const struct dp_job *job, const struct dp_rank_set *set, const char *path)
{
    if (job->worker != 0)
        return;
    if (set->unseen + set->known > 0)
        dp_log(DP_LOG_WARN,
               "%s: %" PRIu64 " pairs are not ranked: %" PRIu64
               " have a user or an item that is not in the training set, %" PRIu64 " are in it themselves",
               path, set->unseen + set->known, set->unseen, set->known);
    if (!dp_ranking_is_of_all(job, set))
        dp_log(DP_LOG_WARN,
               "%s: %" PRIu32 " users times %" PRIu32
               " items are too many to rank all items with this model: only %" PRIu32
               " sampled items are scored with each pair; mf ranks all, --test negatives=FILE names items",
               path, set->user_count, set->item_count, set->sampled);
}

/* Whether its test sets are ranked. */
static bool ranks(const struct dp_job *job)
{
    return recommends(job) && !job->model.rated;
}

/* Makes `data` a rank set. one: one item of each user was held out. */
static enum dp_status rank(const struct dp_job *job, struct dp_dataset *data, const struct dp_dataset *train,
                           bool one, const char *path, struct dp_error *err)
{
    const struct dp_cluster_data *files = &job->cluster->data;
    bool listed = one && files->holdout_negatives > 0;
    enum dp_status st =
        dp_dataset_rank(data, train, listed ? files->holdout_negatives : files->negatives, listed, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", path);
    log_ranked(job, dp_dataset_ranked(data), path);
    return DP_OK;
}

static enum dp_status open_file(struct dp_job *job, const struct dp_dataset *train, const char *path,
                                const char *labels, const char *negatives, struct dp_dataset **out,
                                struct dp_error *err)
{
    struct dp_dataset_options options = dp_job_data(job, path, labels, false);
    options.negatives_path = negatives[0] ? negatives : NULL;
    options.like = dp_dataset_schema(train);
    options.scored = ranks(job) && !options.negatives_path;
    /* Detection cannot distinguish lists from pairs when each user has few items: 'user item item' or 'user
     * item
     *     * rating'. */
    if (options.scored && strcmp(options.format, "auto") == 0 &&
        strcmp(dp_dataset_format(train), "lists") == 0)
        options.format = "lists";
    enum dp_status st = dp_dataset_open(&options, out, err);
    return st == DP_OK && options.scored ? rank(job, *out, train, false, path, err) : st;
}

static void hold_out(const struct dp_job *job, struct dp_dataset_options *options)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    struct dp_holdout_spec spec = {0};
    struct dp_error err;
    options->held_out = data->validation_share;
    if (!data->holdout[0])
        return;
    DP_ASSERT(dp_holdout_spec_parse(data->holdout, "data.holdout", &spec, &err) ==
              DP_OK); /* it was checked */
    options->holdout = spec.share > 0 ? DP_HOLDOUT_SHARE : DP_HOLDOUT_ONE;
    options->holdout_share = spec.share;
}

/* A part of the training file. */
static enum dp_status open_held(struct dp_job *job, const struct dp_dataset *train, bool test,
                                struct dp_dataset **out, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, false);
    hold_out(job, &options);
    options.label_scale = &dp_dataset_schema(train)->label_scale;
    options.weighs = true;
    options.held = !test;
    options.held_test = test;
    options.scored = ranks(job);
    enum dp_status st = dp_dataset_open(&options, out, err);
    if (st != DP_OK || !options.scored)
        return st;
    return rank(job, *out, train, test && options.holdout == DP_HOLDOUT_ONE, data->train, err);
}

enum dp_status dp_sets_label_scale(const struct dp_job *job, struct dp_label_scale *scale, bool *known,
                                   struct dp_error *err)
{
    const char *path = job->cluster->data.columns;
    struct dp_schema schema;
    *known = dp_job_is_regression(job) && path[0] && access(path, F_OK) == 0;
    enum dp_status st = *known ? dp_schema_read_file(path, &schema, err) : DP_OK;
    if (st != DP_OK || !*known)
        return st;
    *scale = schema.label_scale;
    dp_schema_clear(&schema);
    return DP_OK;
}

/* Sampled examples are no rows of a file, and numbers are no classes. */
static enum dp_status check_weights(const struct dp_job *job, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    const enum dp_data_form form = job->model.form;
    const bool rows =
        form == DP_FORM_SPARSE || form == DP_FORM_DENSE || form == DP_FORM_FIELDS || form == DP_FORM_TABLES;
    if (!rows && (data->weight[0] || data->class_weight[0]))
        return dp_fail(err, DP_ARGUMENT, "'%s weighs rows with a label, but model %s takes %s: leave it out",
                       data->weight[0] ? "data.weight' (--weight)" : "data.class_weight' (--class-weight)",
                       job->cluster->model, dp_form_text(form));
    if (data->class_weight[0] && dp_job_is_regression(job))
        return dp_fail(
            err, DP_ARGUMENT,
            "'data.class_weight' (--class-weight) weighs classes, but model %s predicts numbers: leave "
            "it out, or weigh rows by a column (--weight)",
            job->cluster->model);
    return DP_OK;
}

/* A further file may have one class: the weights know the others. */
static enum dp_status check_classes(const struct dp_job *job, const struct dp_dataset *train,
                                    struct dp_error *err)
{
    char label[64];
    const struct dp_cluster_data *data = &job->cluster->data;
    if (data->by_columns || job->model.labels == DP_LABELS_ANY ||
        !dp_baseline_one_label(train, job->model.labels, label, sizeof label))
        return DP_OK;
    return dp_fail(err, DP_DATA,
                   "%s: every label of %" PRIu64
                   " examples is %s: expected two classes. Is the file cut, sorted by label, or is another "
                   "column the label?",
                   data->train, dp_dataset_examples(train), label);
}

/* A probability starts at the share of the labels 1. The bias would take thousands of steps to reach that of
 * rare ones, and other weights would take its place. Returns the share of the rarer label, or 1. */
static double start_at_odds(struct dp_job *job, const struct dp_dataset *train)
{
    double of[2] = {0, 0};
    float label;
    for (uint64_t i = 0; i < dp_dataset_examples(train); i++) {
        if (job->model.labels != DP_LABELS_BINARY || job->model.starts_at_half ||
            !dp_dataset_label(train, i, &label))
            return 1;
        of[label > 0] += dp_dataset_weight(train, i);
    }
    of[0] = fmax(of[0], 0.5);
    of[1] = fmax(of[1], 0.5);
    dp_graph_set_start(job->model.graph, (float)log(of[1] / of[0]));
    return fmin(of[0], of[1]) / (of[0] + of[1]);
}

/* A rare label is fitted too closely without a prior. An optimizer that regularizes needs none. With a fifth
 * and more no set was better with it, and fm was up to 0.0017 worse in AUC. */
static void set_prior(struct dp_job *job, const struct dp_cluster_training *training, double share,
                      struct dp_defaults_data *sizes)
{
    const struct dp_optimizer_spec *optimizer = &training->optimizer;
    if (share >= DP_RARE_SHARE || optimizer->l2 > 0 || optimizer->l1 > 0 || optimizer->decay > 0)
        return;
    dp_graph_set_examples(job->model.graph, sizes->all + training->earlier_examples);
    sizes->rare = dp_graph_has_prior(job->model.graph) ? share : 0;
}

/* A further day: what the day before had counts. */
static void count_earlier(const struct dp_job *job, const struct dp_dataset *train,
                          struct dp_cluster_training *settled)
{
    if (job->runs.examples == 0 || job->runs.digest == dp_dataset_digest(train))
        return;
    settled->earlier_examples += job->runs.examples;
    dp_log(DP_LOG_INFO,
           "trains on other data than the run before, whose weights it has: earlier files had %" PRIu64
           " examples",
           settled->earlier_examples);
}

enum dp_status dp_sets_train(struct dp_job *job, struct dp_cluster_training *settled, struct dp_sets *out,
                             struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, true);
    *out = (struct dp_sets){0};
    hold_out(job, &options);
    options.interactions_path = dp_job_earlier_interactions(job);
    if (data->holdout[0] && !recommends(job))
        return dp_fail(err, DP_ARGUMENT,
                       "'data.holdout' (--holdout) holds out items of users, but model %s has no users: give "
                       "a test file "
                       "or a validation share instead (--test, --validation share=X)",
                       job->cluster->model);
    if (data->label[0] && recommends(job))
        return dp_fail(
            err, DP_ARGUMENT,
            "'data.label' (--label) names the label of a CSV file, but model %s takes users and "
            "items: leave it out; --user, --item and --rating name columns (mf:16,loss=squared predicts "
            "ratings)",
            job->cluster->model);
    if (data->label[0] && (job->model.form == DP_FORM_WORDS || job->model.form == DP_FORM_WINDOWS))
        return dp_fail(err, DP_ARGUMENT,
                       "'data.label' (--label) names the label of a CSV file, but model %s takes text: leave "
                       "it out",
                       job->cluster->model);
    struct dp_label_scale scale;
    bool known = false;
    enum dp_status st = check_weights(job, err);
    if (st == DP_OK)
        st = dp_sets_label_scale(job, &scale, &known, err);
    options.label_scale = known ? &scale : NULL;
    if (st == DP_OK)
        st = dp_dataset_open(&options, &out->train, err);
    if (st == DP_OK && dp_dataset_examples(out->train) == 0)
        st = dp_fail(err, DP_DATA, "%s has no examples to train on", data->train);
    if (st == DP_OK)
        st = check_classes(job, out->train, err);
    if (st != DP_OK)
        return st;
    bool given = settled->batch > 0;
    struct dp_defaults_data sizes = {.examples = dp_dataset_examples(out->train)};
    count_earlier(job, out->train, settled);
    sizes.own = dp_dataset_own(out->train, &sizes.all);
    set_prior(job, settled, start_at_odds(job, out->train), &sizes);
    dp_defaults_settle(&job->model, &sizes, settled);
    return given ? DP_OK : dp_dataset_set_batch(out->train, settled->batch, data->train, err);
}

enum dp_status dp_sets_judged(struct dp_job *job, struct dp_sets *out, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    enum dp_status st = DP_OK;
    if (data->test[0])
        st = open_file(job, out->train, data->test, data->test_labels, data->test_negatives, &out->test, err);
    else if (data->holdout[0] && data->holdout_evaluated)
        st = open_held(job, out->train, true, &out->test, err);
    if (st == DP_OK && data->validation[0])
        st = open_file(job, out->train, data->validation, data->validation_labels, data->validation_negatives,
                       &out->valid, err);
    else if (st == DP_OK && data->validation_share > 0)
        st = open_held(job, out->train, false, &out->valid, err);
    return st;
}

void dp_sets_close(struct dp_sets *sets)
{
    dp_dataset_close(&sets->valid);
    dp_dataset_close(&sets->test);
    dp_dataset_close(&sets->train);
}
