#include "worker/report.h"

#include "common/env/whole.h"
#include "worker/advice.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sets what is finite: JSON has no NaN. */
static void real(json_t *object, const char *key, double value)
{
    if (isfinite(value))
        (void)json_object_set_new(object, key, json_real(value));
}

/* An f32 setting as a person wrote it: 0.9, not 0.89999997615814209. */
static void real_f32(json_t *object, const char *key, float value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.7g", (double)value);
    real(object, key, strtod(text, NULL));
}

/* Above 2^63-1, which jansson's integers do not hold, a text, as in a cluster file. */
static void integer(json_t *object, const char *key, uint64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    (void)json_object_set_new(object, key,
                              value > INT64_MAX ? json_string(text) : json_integer((json_int_t)value));
}

static void string(json_t *object, const char *key, const char *value)
{
    if (value && value[0])
        (void)json_object_set_new(object, key, json_string(value));
}

/* The new object under `key`. */
static json_t *object_in(json_t *object, const char *key)
{
    json_t *inner = json_object();
    (void)json_object_set_new(object, key, inner);
    return inner;
}

double dp_report_train_loss(const struct dp_report *report, uint32_t epoch)
{
    double sum = 0;
    uint64_t examples = 0;
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        sum += report->workers[w].epoch[epoch].loss_sum;
        examples += report->workers[w].epoch[epoch].examples;
    }
    return examples ? sum / (double)examples : (double)NAN;
}

double dp_report_seconds(const struct dp_report *report, uint32_t epoch)
{
    double slowest = 0;
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        slowest = fmax(slowest, report->workers[w].epoch[epoch].seconds);
    return slowest;
}

uint64_t dp_report_examples(const struct dp_report *report, uint32_t epoch)
{
    uint64_t examples = 0;
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        examples += report->workers[w].epoch[epoch].examples;
    return examples;
}

struct span {
    double from, to;
};

static int by_from(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* How much time lies in at least one of the spans; sorts them. */
static double covered(struct span *spans, size_t count)
{
    double sum = 0, end = -HUGE_VAL;
    qsort(spans, count, sizeof *spans, by_from);
    for (size_t i = 0; i < count; i++) {
        sum += fmax(0, spans[i].to - fmax(end, spans[i].from));
        end = fmax(end, spans[i].to);
    }
    return sum;
}

enum dp_status dp_report_speed(const struct dp_report *report, struct dp_speed *out, struct dp_error *err)
{
    const struct dp_cluster_training *t = &report->cluster->training;
    size_t count = 0;
    *out = (struct dp_speed){0};
    struct span *spans = calloc((size_t)t->workers * t->epochs, sizeof *spans);
    if (!spans)
        return dp_fail(err, DP_NOMEM, "no memory for the times of %" PRIu32 " workers", t->workers);
    for (uint32_t w = 0; w < t->workers; w++) {
        out->examples += dp_worker_figures_new_examples(&report->workers[w]);
        for (uint32_t e = 0; e < t->epochs; e++) {
            const struct dp_epoch_figures *epoch = &report->workers[w].epoch[e];
            if (epoch->examples)
                spans[count++] = (struct span){.from = epoch->begun, .to = epoch->begun + epoch->seconds};
        }
    }
    out->seconds = covered(spans, count);
    out->examples_per_s = out->seconds > 0 ? (double)out->examples / out->seconds : (double)NAN;
    free(spans);
    return DP_OK;
}

/* Of items ranked among all, which the figures at 10 above are not. */
static void all_items_json(const struct dp_figures *figures, json_t *root)
{
    json_t *out = object_in(root, "all_items");
    integer(out, "items", figures->ranked_items);
    integer(out, "users", figures->ranked_users);
    for (int t = 0; t < 2; t++) {
        char key[32];
        (void)snprintf(key, sizeof key, "recall@%" PRIu32, figures->top[t]);
        real(out, key, figures->recall[t]);
        (void)snprintf(key, sizeof key, "ndcg@%" PRIu32, figures->top[t]);
        real(out, key, figures->ndcg[t]);
    }
}

static json_t *figures_json(const struct dp_figures *figures)
{
    json_t *root = json_object();
    integer(root, "examples", figures->examples);
    real(root, "loss", figures->loss);
    real(root, "accuracy", figures->accuracy);
    real(root, "auc", figures->auc);
    real(root, "rmse", figures->rmse);
    real(root, "hr10", figures->hr10);
    real(root, "ndcg10", figures->ndcg10);
    if (figures->ranked_users)
        all_items_json(figures, root);
    return root;
}

static void data_json(const struct dp_report *report, json_t *root)
{
    const struct dp_cluster_data *data = &report->cluster->data;
    char digest[24];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, report->digest);
    json_t *out = object_in(root, "data");
    string(out, "train", data->train);
    string(out, "labels", report->labels);
    string(out, "train_labels", data->train_labels);
    string(out, "test", data->test);
    string(out, "test_labels", data->test_labels);
    string(out, "test_negatives", data->test_negatives);
    string(out, "validation", data->validation);
    string(out, "validation_negatives", data->validation_negatives);
    string(out, "holdout", data->holdout);
    if (data->holdout[0])
        integer(out, "holdout_negatives", data->holdout_negatives);
    if (data->validation_share > 0)
        real(out, "validation_share", data->validation_share);
    integer(out, "examples", report->examples);
    string(out, "digest", digest);
    real(out, "scale", data->scale);
    (void)json_object_set_new(out, "normalize", json_boolean(data->normalize));
}

static void optimizer_json(const struct dp_optimizer_spec *spec, json_t *settings)
{
    json_t *out = object_in(settings, "optimizer");
    string(out, "kind", dp_optimizer_name(spec->kind));
    const struct {
        const char *key;
        float value;
    } fields[] = {{"l2", spec->l2},       {"momentum", spec->momentum},   {"beta1", spec->beta1},
                  {"beta2", spec->beta2}, {"epsilon", spec->epsilon},     {"decay", spec->decay},
                  {"l1", spec->l1},       {"ftrl_beta", spec->ftrl_beta}, {"accumulator", spec->accumulator}};
    /* What a kind does not use is 0. */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value != 0)
            real_f32(out, fields[i].key, fields[i].value);
}

static void settings_json(const struct dp_report *report, json_t *root)
{
    const struct dp_cluster *cluster = report->cluster;
    const struct dp_cluster_training *t = &cluster->training;
    json_t *out = object_in(root, "settings");
    integer(out, "servers", cluster->server_count);
    integer(out, "shards", dp_cluster_shards(cluster));
    integer(out, "workers", t->workers);
    integer(out, "threads", t->threads);
    string(out, "device", t->device);
    string(out, "precision", dp_cluster_precision_name(t->precision));
    integer(out, "batch", t->batch);
    integer(out, "epochs", t->epochs);
    (void)json_object_set_new(out, "batch_by_size", json_boolean(report->batch_by_size));
    (void)json_object_set_new(out, "epochs_by_size", json_boolean(report->epochs_by_size));
    integer(out, "seed", t->seed);
    real(out, "rate", t->rate);
    integer(out, "warmup_steps", t->warmup_steps);
    string(out, "decay", dp_decay_name(t->decay));
    real(out, "rate_end", t->rate_end);
    optimizer_json(&t->optimizer, out);
    integer(out, "fetch_every", t->fetch_every);
    integer(out, "push_every", t->push_every);
    integer(out, "accumulate", t->accumulate);
    (void)json_object_set_new(out, "overlap", json_boolean(t->overlap));
    integer(out, "pushes_max", t->pushes_max);
    (void)json_object_set_new(out, "bf16_values", json_boolean(t->bf16_values));
    integer(out, "run", t->run);
    integer(out, "timeout_ms", t->timeout_ms);
}

static void epochs_json(const struct dp_report *report, json_t *root)
{
    json_t *epochs = json_array();
    (void)json_object_set_new(root, "epochs", epochs);
    uint32_t n = report->epochs;
    for (uint32_t e = 0; e < n; e++) {
        double seconds = dp_report_seconds(report, e);
        uint64_t examples = dp_report_examples(report, e);
        json_t *epoch = json_object();
        integer(epoch, "epoch", report->cluster->training.first_epoch + e + 1);
        real(epoch, "train_loss", dp_report_train_loss(report, e));
        integer(epoch, "examples", examples);
        real(epoch, "seconds", seconds);
        real(epoch, "examples_per_s", seconds > 0 ? (double)examples / seconds : (double)NAN);
        if (report->validated && report->validated[e].known)
            (void)json_object_set_new(epoch, "validation", figures_json(&report->validated[e].figures));
        if (report->tested[e].known)
            (void)json_object_set_new(epoch, "test", figures_json(&report->tested[e].figures));
        (void)json_array_append_new(epochs, epoch);
    }
    if (!report->finished || n == 0)
        return;
    uint32_t left = (report->left ? report->left : n) - 1; /* of the weights that stay */
    bool valid = report->validated && report->validated[left].known;
    if (!report->tested[left].known && !valid)
        return;
    json_t *final = object_in(root, "final");
    if (valid)
        (void)json_object_set_new(final, "validation", figures_json(&report->validated[left].figures));
    if (report->tested[left].known)
        (void)json_object_set_new(final, "test", figures_json(&report->tested[left].figures));
}

/* Which epoch's weights the store has, and which epoch was the best. */
static void kept_json(const struct dp_report *report, json_t *root)
{
    uint32_t before = report->cluster->training.first_epoch;
    const struct dp_stop *stop = report->stop;
    if (report->left == 0)
        return;
    string(root, "kept", report->left == report->epochs ? "last" : "best");
    integer(root, "kept_epoch", before + report->left);
    if (!report->rule || stop->best_epoch == 0 || !dp_cluster_has_best(report->cluster))
        return;
    bool by_goal = report->rule->has_goal && report->rule->patience == 0;
    json_t *best = object_in(root, "best");
    integer(best, "epoch", before + stop->best_epoch);
    string(best, "set", report->validated ? "validation" : "test");
    string(best, "metric", dp_metric_name(by_goal ? report->rule->goal.metric : report->rule->metric));
    real(best, "value", stop->best);
}

static void constant_json(const struct dp_report *report, json_t *root)
{
    if (!report->constant.known)
        return;
    json_t *constant = figures_json(&report->constant.figures);
    string(constant, "set", report->constant.set);
    (void)json_object_set_new(root, "constant", constant);
}

static void advice_json(const struct dp_report *report, json_t *root)
{
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    if (!report->finished)
        return;
    json_t *advice = json_array();
    uint32_t n = dp_advice_of(report, text);
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(advice, json_string(text[i]));
    (void)json_object_set_new(root, "advice", advice);
}

static void stop_json(const struct dp_report *report, json_t *root)
{
    static const char *const whys[] = {
        [DP_STOP_NO] = "epochs", [DP_STOP_REACHED] = "reached", [DP_STOP_PATIENCE] = "patience"};
    char text[DP_STOP_TEXT_BYTES];
    if (!report->finished || !report->rule || !dp_stop_looks(report->rule))
        return;
    const struct dp_stop_rule *rule = report->rule;
    const struct dp_stop *stop = report->stop;
    uint32_t before = report->cluster->training.first_epoch;
    json_t *out = object_in(root, "stop");
    dp_stop_text(rule, stop, before, text);
    string(out, "why", whys[stop->why]);
    string(out, "text", text);
    string(out, "set", report->validated ? "validation" : "test");
    integer(out, "epoch", before + stop->epoch);
    integer(out, "minibatch", report->minibatches);
    string(out, "metric", dp_metric_name(rule->has_goal ? rule->goal.metric : rule->metric));
    real(out, "value", stop->value);
    if (rule->has_goal)
        real(out, "goal", rule->goal.value);
    if (rule->patience) {
        integer(out, "patience", rule->patience);
        string(out, "patience_metric", dp_metric_name(rule->metric));
    }
    real(out, "best", stop->best);
    integer(out, "best_epoch", stop->best_epoch ? before + stop->best_epoch : 0);
}

static void staleness_json(const struct dp_staleness *staleness, json_t *root)
{
    json_t *out = object_in(root, "staleness"), *histogram = json_array();
    if (staleness->measured) {
        real(out, "mean", dp_staleness_mean(staleness));
        integer(out, "max", staleness->max);
    }
    integer(out, "pushes", staleness->pushes);
    integer(out, "repeated", staleness->repeated);
    for (uint32_t i = 0; i < dp_staleness_buckets(staleness); i++)
        (void)json_array_append_new(histogram, json_integer((json_int_t)staleness->histogram[i]));
    (void)json_object_set_new(out, "histogram", histogram);
}

/* Seconds by kind; "waiting" is the sum of the three that wait. */
static void spent_json(const struct dp_spent *spent, json_t *root)
{
    json_t *out = object_in(root, "spent_s");
    for (int i = 0; i < DP_SPENT_KINDS; i++)
        real(out, dp_spent_name((enum dp_spent_on)i), spent->seconds[i]);
    real(out, "waiting",
         spent->seconds[DP_SPENT_WAITING_PULL] + spent->seconds[DP_SPENT_WAITING_PUSH] +
             spent->seconds[DP_SPENT_WAITING_DEVICE]);
}

static void workers_json(const struct dp_report *report, json_t *root)
{
    json_t *workers = json_array();
    (void)json_object_set_new(root, "workers", workers);
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        const struct dp_worker_figures *figures = &report->workers[w];
        uint64_t new_examples = dp_worker_figures_new_examples(figures);
        double seconds = dp_worker_figures_seconds(figures);
        json_t *worker = json_object();
        integer(worker, "worker", w);
        integer(worker, "examples", dp_worker_figures_examples(figures));
        real(worker, "seconds", seconds);
        real(worker, "examples_per_s", seconds > 0 ? (double)new_examples / seconds : (double)NAN);
        integer(worker, "pushes", figures->pushes);
        string(worker, "device", figures->device);
        staleness_json(&figures->staleness, worker);
        spent_json(&figures->spent, worker);
        (void)json_array_append_new(workers, worker);
    }
}

enum dp_status dp_report_text(const struct dp_report *report, char **text, struct dp_error *err)
{
    struct dp_speed speed;
    enum dp_status st = dp_report_speed(report, &speed, err);
    if (st != DP_OK)
        return st;
    json_t *root = json_object();
    (void)json_object_set_new(root, "finished", json_boolean(report->finished));
    string(root, "ended", report->ended);
    string(root, "error", report->error);
    string(root, "model", report->cluster->model);
    string(root, "cluster", report->cluster->name);
    integer(root, "run", report->cluster->training.run);
    integer(root, "first_epoch", report->cluster->training.first_epoch);
    data_json(report, root);
    settings_json(report, root);
    epochs_json(report, root);
    constant_json(report, root);
    stop_json(report, root);
    kept_json(report, root);
    advice_json(report, root);
    json_t *throughput = object_in(root, "throughput");
    real(throughput, "examples_per_s", speed.examples_per_s);
    real(throughput, "seconds", speed.seconds);
    struct dp_staleness all = {0};
    struct dp_spent spent = {0};
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        dp_staleness_merge(&all, &report->workers[w].staleness);
        dp_spent_merge(&spent, &report->workers[w].spent);
    }
    staleness_json(&all, root);
    spent_json(&spent, root);
    workers_json(report, root);
    *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(10));
    json_decref(root);
    return *text ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the report");
}

enum dp_status dp_report_write(const struct dp_report *report, const char *path, struct dp_error *err)
{
    char *text = NULL;
    struct dp_whole file = {0};
    enum dp_status st = dp_report_text(report, &text, err);
    if (st == DP_OK)
        st = dp_whole_open(path, &file, err);
    if (st == DP_OK) {
        (void)fprintf(file.stream, "%s\n", text);
        st = dp_whole_commit(&file, err);
    }
    free(text);
    return st == DP_OK ? st : dp_wrap(err, st, "report");
}
