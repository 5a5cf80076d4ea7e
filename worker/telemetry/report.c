#include "worker/telemetry/report.h"

#include "common/base/json.h"
#include "common/config/consistency.h"
#include "common/config/injection.h"
#include "common/env/atomic_file.h"
#include "worker/telemetry/advice.h"
#include "worker/telemetry/divergence.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* An f32 setting as the user wrote it: 0.9, not 0.89999997615814209. */
static void real_f32(json_t *object, const char *key, float value)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.7g", (double)value);
    dp_json_set_real(object, key, strtod(text, NULL));
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

/* Metrics of ranking among all items; those at 10 above rank within lists. */
static void all_items_json(const struct dp_figures *figures, json_t *root)
{
    json_t *out = object_in(root, "all_items");
    dp_json_set_u64(out, "items", figures->ranked_items);
    dp_json_set_u64(out, "users", figures->ranked_users);
    for (int t = 0; t < 2; t++) {
        char key[32];
        (void)snprintf(key, sizeof key, "recall@%" PRIu32, figures->top[t]);
        dp_json_set_real(out, key, figures->recall[t]);
        (void)snprintf(key, sizeof key, "ndcg@%" PRIu32, figures->top[t]);
        dp_json_set_real(out, key, figures->ndcg[t]);
    }
}

static json_t *figures_json(const struct dp_figures *figures)
{
    json_t *root = json_object();
    dp_json_set_u64(root, "examples", figures->examples);
    for (int i = 0; i < DP_FIGURES_REALS; i++)
        dp_json_set_real(root, dp_figures_reals[i].name, *dp_figures_real(figures, i));
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
        dp_json_set_u64(out, "holdout_negatives", data->holdout_negatives);
    if (data->validation_share > 0)
        dp_json_set_real(out, "validation_share", data->validation_share);
    string(out, "weight", data->weight);
    string(out, "class_weight", data->class_weight);
    dp_json_set_u64(out, "examples", report->examples);
    string(out, "digest", digest);
    dp_json_set_real(out, "scale", data->scale);
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
    /* Settings that an optimizer does not use are 0. */
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value != 0)
            real_f32(out, fields[i].key, fields[i].value);
}

static void settings_json(const struct dp_report *report, json_t *root)
{
    const struct dp_cluster *cluster = report->cluster;
    const struct dp_cluster_training *t = &cluster->training;
    const struct dp_cluster_rule rule = dp_cluster_rule_of(t);
    char consistency[DP_MODE_TEXT_BYTES];
    json_t *out = object_in(root, "settings");
    dp_json_set_u64(out, "servers", cluster->server_count);
    dp_json_set_u64(out, "shards", dp_cluster_shards(cluster));
    dp_json_set_u64(out, "workers", t->workers);
    dp_json_set_u64(out, "threads", t->threads);
    dp_json_set_u64(out, "blas_threads", t->blas_threads);
    string(out, "device", t->device);
    string(out, "precision", dp_cluster_precision_name(t->precision));
    dp_json_set_u64(out, "batch", t->batch);
    dp_json_set_u64(out, "epochs", t->epochs);
    (void)json_object_set_new(out, "batch_by_size", json_boolean(report->batch_by_size));
    (void)json_object_set_new(out, "epochs_by_size", json_boolean(report->epochs_by_size));
    dp_json_set_u64(out, "seed", t->seed);
    dp_json_set_real(out, "rate", t->rate);
    dp_json_set_u64(out, "warmup_steps", t->warmup_steps);
    string(out, "decay", dp_decay_name(t->decay));
    dp_json_set_real(out, "rate_end", t->rate_end);
    optimizer_json(&t->optimizer, out);
    dp_json_set_u64(out, "fetch_every", t->threads > 1 ? dp_cluster_fetched_together(t) : t->fetch_every);
    dp_json_set_u64(out, "push_every", t->threads > 1 ? dp_cluster_pushed_together(t) : t->push_every);
    dp_json_set_u64(out, "accumulate", t->accumulate);
    string(out, "consistency", dp_mode_text(rule.mode, rule.slack, consistency));
    string(out, "work", dp_cluster_work_name(t->work));
    (void)json_object_set_new(out, "overlap", json_boolean(t->overlap));
    dp_json_set_u64(out, "pushes_max", t->pushes_max);
    (void)json_object_set_new(out, "bf16_values", json_boolean(t->bf16_values));
    (void)json_object_set_new(out, "rate_by_staleness", json_boolean(t->rate_by_staleness));
    dp_json_set_u64(out, "run", t->run);
    dp_json_set_u64(out, "timeout_ms", t->timeout_ms);
    dp_json_set_u64(out, "worker_timeout", t->worker_timeout);
    string(out, "pace", t->pace);
    string(out, "jitter", t->jitter == DP_JITTER_NONE ? NULL : dp_cluster_jitter_name(t->jitter));
    string(out, "straggler", t->straggler);
}

static enum dp_status epochs_json(const struct dp_report *report, json_t *root, struct dp_error *err)
{
    json_t *epochs = json_array();
    (void)json_object_set_new(root, "epochs", epochs);
    uint32_t n = report->epochs;
    for (uint32_t e = 0; e < n; e++) {
        double seconds;
        enum dp_status st = dp_report_seconds(report, e, &seconds, err);
        if (st != DP_OK)
            return st;
        uint64_t examples = dp_report_examples(report, e);
        json_t *epoch = json_object();
        dp_json_set_u64(epoch, "epoch", report->cluster->training.first_epoch + e + 1);
        dp_json_set_real(epoch, "train_loss", dp_report_train_loss(report, e));
        dp_json_set_u64(epoch, "examples", examples);
        if (report->cluster->training.work == DP_CLUSTER_LEASED)
            dp_json_set_u64(epoch, "examples_done_twice", dp_report_done_twice(report, e));
        dp_json_set_real(epoch, "seconds", seconds);
        dp_json_set_real(epoch, "examples_per_s", seconds > 0 ? (double)examples / seconds : (double)NAN);
        if (report->validated && report->validated[e].known)
            (void)json_object_set_new(epoch, "validation", figures_json(&report->validated[e].figures));
        if (report->tested && report->tested[e].known)
            (void)json_object_set_new(epoch, "test", figures_json(&report->tested[e].figures));
        (void)json_array_append_new(epochs, epoch);
    }
    if (!report->finished || n == 0)
        return DP_OK;
    uint32_t left = (report->left ? report->left : n) - 1; /* of the weights that stay */
    bool valid = report->validated && report->validated[left].known;
    bool test = report->tested && report->tested[left].known;
    if (!test && !valid)
        return DP_OK;
    json_t *final = object_in(root, "final");
    if (valid)
        (void)json_object_set_new(final, "validation", figures_json(&report->validated[left].figures));
    if (test)
        (void)json_object_set_new(final, "test", figures_json(&report->tested[left].figures));
    return DP_OK;
}

/* Which epoch's weights the store has, and which epoch was the best. */
static void kept_json(const struct dp_report *report, json_t *root)
{
    uint32_t before = report->cluster->training.first_epoch;
    const struct dp_early_stop *stop = report->stop;
    if (report->left == 0)
        return;
    string(root, "kept", report->left == report->epochs ? "last" : "best");
    dp_json_set_u64(root, "kept_epoch", before + report->left);
    if (!report->rule || stop->best_epoch == 0 || !dp_cluster_has_best(report->cluster))
        return;
    bool by_goal = report->rule->has_goal && report->rule->patience == 0;
    json_t *best = object_in(root, "best");
    dp_json_set_u64(best, "epoch", before + stop->best_epoch);
    string(best, "set", report->validated ? "validation" : "test");
    string(best, "metric", dp_metric_name(by_goal ? report->rule->goal.metric : report->rule->metric));
    dp_json_set_real(best, "value", stop->best);
}

static void constant_json(const struct dp_report *report, json_t *root)
{
    if (!report->constant.known)
        return;
    json_t *constant = figures_json(&report->constant.figures);
    string(constant, "set", report->constant.set);
    (void)json_object_set_new(root, "constant", constant);
}

static void divergence_json(const struct dp_report *report, json_t *root)
{
    const struct dp_divergence divergence = dp_divergence_of(report);
    if (divergence.why == DP_DIVERGED_NO)
        return;
    json_t *out = object_in(root, "diverged");
    dp_json_set_u64(out, "epoch", report->cluster->training.first_epoch + divergence.epoch);
    string(out, "why", dp_divergence_name(divergence.why));
    string(out, "set", divergence.set);
    dp_json_set_real(out, "loss", divergence.loss);
    dp_json_set_real(out, "reference", divergence.reference);
}

static void understood_json(const struct dp_report *report, json_t *root)
{
    if (!report->understood)
        return;
    json_t *lines = json_array();
    for (unsigned i = 0; i < report->understood->lines; i++)
        (void)json_array_append_new(lines, json_string(report->understood->line[i]));
    (void)json_object_set_new(root, "understood", lines);
}

static void advice_json(const struct dp_report *report, json_t *root)
{
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    unsigned notes = report->understood ? report->understood->notes : 0;
    if (!report->finished && notes == 0)
        return;
    json_t *advice = json_array();
    for (unsigned i = 0; i < notes; i++) /* from the first report on */
        (void)json_array_append_new(advice, json_string(report->understood->note[i]));
    uint32_t n = report->finished ? dp_advice_of(report, text) : 0;
    for (uint32_t i = 0; i < n; i++)
        (void)json_array_append_new(advice, json_string(text[i]));
    (void)json_object_set_new(root, "advice", advice);
    if (n > 0 && dp_advice_warns(report))
        string(root, "warning", text[0]);
    double rate = report->finished ? dp_advice_rate(report) : 0;
    if (rate > 0)
        dp_json_set_real(root, "advised_rate", rate);
}

static void stop_json(const struct dp_report *report, json_t *root)
{
    static const char *const whys[] = {[DP_EARLY_STOP_NO] = "epochs",
                                       [DP_EARLY_STOP_REACHED] = "reached",
                                       [DP_EARLY_STOP_PATIENCE] = "patience"};
    char text[DP_EARLY_STOP_TEXT_BYTES];
    if (!report->finished || !report->rule || !dp_early_stop_looks(report->rule))
        return;
    const struct dp_early_stop_rule *rule = report->rule;
    const struct dp_early_stop *stop = report->stop;
    uint32_t before = report->cluster->training.first_epoch;
    json_t *out = object_in(root, "stop");
    dp_early_stop_text(rule, stop, before, text);
    string(out, "why", whys[stop->why]);
    string(out, "text", text);
    string(out, "set", report->validated ? "validation" : "test");
    dp_json_set_u64(out, "epoch", before + stop->epoch);
    dp_json_set_u64(out, "minibatch", report->minibatches);
    string(out, "metric", dp_metric_name(rule->has_goal ? rule->goal.metric : rule->metric));
    dp_json_set_real(out, "value", stop->value);
    if (rule->has_goal)
        dp_json_set_real(out, "goal", rule->goal.value);
    if (rule->patience) {
        dp_json_set_u64(out, "patience", rule->patience);
        string(out, "patience_metric", dp_metric_name(rule->metric));
    }
    dp_json_set_real(out, "best", stop->best);
    dp_json_set_u64(out, "best_epoch", stop->best_epoch ? before + stop->best_epoch : 0);
}

/* Mean and quantiles, in pushes of so many examples; 1: in pushes. */
static void spread_json(const struct dp_staleness *staleness, uint64_t examples, json_t *out)
{
    static const struct {
        const char *key;
        double share;
    } quantiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};
    dp_json_set_real(out, "mean", dp_staleness_mean(staleness) * (double)examples);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        dp_json_set_u64(out, quantiles[i].key,
                        dp_staleness_quantile(staleness, quantiles[i].share) * examples);
}

/* A push has a group of minibatches, but for the last of an epoch. */
static void staleness_json(const struct dp_report *report, const struct dp_staleness *staleness, json_t *root)
{
    const struct dp_cluster_training *t = &report->cluster->training;
    json_t *out = object_in(root, "staleness"), *histogram = json_array();
    if (staleness->measured) {
        spread_json(staleness, 1, out);
        dp_json_set_u64(out, "max", staleness->max);
        spread_json(staleness, (uint64_t)t->batch * dp_cluster_pushed_together(t),
                    object_in(out, "examples"));
        json_t *own = object_in(out, "own");
        dp_json_set_real(own, "mean", dp_staleness_own(staleness));
        dp_json_set_u64(own, "max", staleness->own_max);
    }
    dp_json_set_u64(out, "pushes", staleness->pushes);
    dp_json_set_u64(out, "repeated", staleness->repeated);
    uint64_t counts[DP_STALENESS_BUCKETS];
    for (uint32_t i = 0, used = dp_staleness_histogram(staleness, counts); i < used; i++)
        (void)json_array_append_new(histogram, json_integer((json_int_t)counts[i]));
    (void)json_object_set_new(out, "histogram", histogram);
    if (staleness->gaps) {
        json_t *gap = object_in(out, "clock_gap");
        dp_json_set_real(gap, "mean", dp_staleness_gap(staleness));
        dp_json_set_u64(gap, "max", staleness->gap_max);
        (void)json_object_set_new(gap, "histogram", dp_json_histogram(&staleness->gap));
    }
    if (staleness->rows) {
        dp_json_set_real(out, "changed", dp_staleness_changed(staleness));
        (void)json_object_set_new(out, "changed_histogram", dp_json_histogram(&staleness->changed));
    }
    if (staleness->divided)
        dp_json_set_real(out, "rate_divided_by", dp_staleness_divisor(staleness));
}

/* What the servers applied of all epochs that were to be trained. */
static void applied_json(const struct dp_report *report, json_t *root)
{
    json_t *out = object_in(root, "applied");
    dp_json_set_u64(out, "examples", dp_report_applied(report));
    dp_json_set_u64(out, "planned", report->examples * report->cluster->training.epochs);
}

/* With backups only. What is used is the rest of pushes and examples. */
static void dropped_json(const struct dp_report *report, const struct dp_dropped *dropped, json_t *root)
{
    const struct dp_cluster_rule rule = dp_cluster_rule_of(&report->cluster->training);
    if (dp_cluster_rule_backups(rule) == 0)
        return;
    json_t *out = object_in(root, "dropped");
    dp_json_set_u64(out, "pushes", dropped->pushes);
    dp_json_set_u64(out, "partly", dropped->partly);
    dp_json_set_u64(out, "examples", dropped->examples);
    dp_json_set_u64(out, "late", dropped->examples - dropped->passed);
    dp_json_set_u64(out, "not_computed", dropped->passed);
}

/* Seconds by kind; "waiting" is the sum of those that wait. */
static void times_json(const struct dp_step_times *times, json_t *root)
{
    json_t *out = object_in(root, "spent_s");
    for (int i = 0; i < DP_PHASE_KINDS; i++)
        dp_json_set_real(out, dp_step_phase_name((enum dp_step_phase)i), times->seconds[i]);
    dp_json_set_real(out, "waiting",
                     times->seconds[DP_PHASE_WAITING_PULL] + times->seconds[DP_PHASE_WAITING_RULE] +
                         times->seconds[DP_PHASE_WAITING_PUSH] + times->seconds[DP_PHASE_WAITING_DEVICE]);
}

/* Of one that was away and came back; and of one that left. */
static void left_json(const struct dp_report *report, const struct dp_worker_stats *stats, json_t *worker)
{
    const struct dp_worker_left *left = &stats->left;
    if (stats->missed > 0) {
        dp_json_set_u64(worker, "missed_steps", stats->missed);
        dp_json_set_u64(worker, "missed_examples", stats->missed_examples);
    }
    if (!left->is)
        return;
    json_t *out = object_in(worker, "left");
    dp_json_set_u64(out, "step", left->step);
    dp_json_set_u64(out, "epoch", report->cluster->training.first_epoch + left->epoch);
    dp_json_set_u64(out, "minibatches", left->undone);
}

static void workers_json(const struct dp_report *report, json_t *root)
{
    json_t *workers = json_array();
    (void)json_object_set_new(root, "workers", workers);
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        const struct dp_worker_stats *stats = &report->workers[w];
        uint64_t new_examples = dp_worker_stats_new_examples(stats);
        double seconds = dp_worker_stats_seconds(stats);
        json_t *worker = json_object();
        dp_json_set_u64(worker, "worker", w);
        dp_json_set_u64(worker, "examples", dp_worker_stats_examples(stats));
        dp_json_set_real(worker, "seconds", seconds);
        dp_json_set_real(worker, "examples_per_s",
                         seconds > 0 ? (double)new_examples / seconds : (double)NAN);
        dp_json_set_u64(worker, "pushes", stats->pushes);
        dropped_json(report, &stats->dropped, worker);
        string(worker, "device", stats->device);
        staleness_json(report, &stats->staleness, worker);
        times_json(&stats->times, worker);
        left_json(report, stats, worker);
        if (report->cluster->training.work ==
            DP_CLUSTER_LEASED) /* by another worker, too, which was first on every shard */
            dp_json_set_u64(worker, "examples_done_twice", stats->repeated_examples);
        if (stats->absent)
            (void)json_object_set_new(worker, "absent", json_true());
        (void)json_array_append_new(workers, worker);
    }
}

enum dp_status dp_report_text(const struct dp_report *report, char **text, struct dp_error *err)
{
    struct dp_speed speed;
    char injected[DP_INJECTION_TEXT_BYTES];
    enum dp_status st = dp_report_speed(report, &speed, err);
    if (st != DP_OK)
        return st;
    json_t *root = json_object();
    (void)json_object_set_new(root, "finished", json_boolean(report->finished));
    string(root, "ended", report->ended);
    string(root, "error", report->error);
    divergence_json(report, root);
    string(root, "injected", dp_injection_text(&report->cluster->training, injected));
    string(root, "reduced_by", report->reduced_by);
    string(root, "model", report->cluster->model);
    string(root, "cluster", report->cluster->name);
    dp_json_set_u64(root, "run", report->cluster->training.run);
    dp_json_set_u64(root, "first_epoch", report->cluster->training.first_epoch);
    data_json(report, root);
    understood_json(report, root);
    settings_json(report, root);
    st = epochs_json(report, root, err);
    constant_json(report, root);
    stop_json(report, root);
    kept_json(report, root);
    advice_json(report, root);
    json_t *throughput = object_in(root, "throughput");
    dp_json_set_real(throughput, "examples_per_s", speed.examples_per_s);
    dp_json_set_real(throughput, "seconds", speed.seconds);
    struct dp_staleness all = {0};
    struct dp_step_times times = {0};
    struct dp_dropped dropped = {0};
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        dp_staleness_merge(&all, &report->workers[w].staleness);
        dp_step_times_merge(&times, &report->workers[w].times);
        dropped.pushes += report->workers[w].dropped.pushes;
        dropped.partly += report->workers[w].dropped.partly;
        dropped.examples += report->workers[w].dropped.examples;
        dropped.passed += report->workers[w].dropped.passed;
    }
    applied_json(report, root);
    dropped_json(report, &dropped, root);
    staleness_json(report, &all, root);
    times_json(&times, root);
    workers_json(report, root);
    *text = st == DP_OK ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(10)) : NULL;
    json_decref(root);
    if (st != DP_OK)
        return st;
    return *text ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the report");
}

enum dp_status dp_report_write(const struct dp_report *report, const char *path, struct dp_error *err)
{
    char *text = NULL;
    struct dp_atomic_file file = {0};
    enum dp_status st = dp_report_text(report, &text, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path, &file, err);
    if (st == DP_OK) {
        (void)fprintf(file.stream, "%s\n", text);
        st = dp_atomic_file_commit(&file, err);
    }
    free(text);
    return st == DP_OK ? st : dp_wrap(err, st, "report");
}
