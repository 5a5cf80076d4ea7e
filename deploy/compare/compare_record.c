#include "deploy/compare/compare_record.h"

#include "common/base/deadline.h"
#include "common/base/json.h"
#include "common/base/parse.h"
#include "common/config/injection.h"
#include "common/env/json_file.h"
#include "deploy/compare/claims.h"
#include "deploy/compare/comparison.h"
#include "deploy/run/run_provenance.h"
#include "server/checkpoint/checksum.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAIN 0.95 /* of the target, above the baseline */

/* ---- opening */

static json_t *seeds_of(uint64_t first, uint32_t count)
{
    json_t *out = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(out, dp_json_u64(first + i));
    return out;
}

static json_t *rates_of(const struct dp_compare_plan *plan)
{
    json_t *out = json_array();
    double rate;
    for (size_t i = 0; i < plan->rates; i++)
        if (dp_parse_f64(plan->rate[i], FLT_MIN, FLT_MAX, "--lr-grid", &rate, NULL) == DP_OK)
            (void)json_array_append_new(out, json_real(rate));
    return out;
}

static json_t *target_of(const struct dp_compare_plan *plan)
{
    if (!plan->target_text)
        return json_null();
    return json_pack("{s:s#, s:f, s:s}", "metric", plan->target_text, (int)strcspn(plan->target_text, ":"),
                     "value", plan->target.value, "chosen", "given");
}

static json_t *settings_of(const struct dp_compare_plan *plan, const struct dp_cluster *cluster)
{
    const char *servers = dp_compare_plan_flag(plan, "--servers");
    const char *test = dp_compare_plan_flag(plan, "--test"),
               *workers = dp_compare_plan_flag(plan, "--workers");
    const char *pace = cluster->training.pace,
               *optimizer = dp_optimizer_name(cluster->training.optimizer.kind);
    json_t *score = test ? json_string(test)
                         : json_sprintf("the part of the training file that --holdout %s leaves out",
                                        cluster->data.holdout);
    json_t *out = json_pack(
        "{s:s, s:s, s:o, s:o, s:o, s:s?, s:s?, s:s?, s:s?, s:f, s:o, s:o, s:o}", "model", cluster->model,
        "train", cluster->data.train, "score", score, "workers",
        dp_json_u64(workers ? strtoull(workers, NULL, 10) : 1), "servers",
        dp_json_u64(servers ? strtoull(servers, NULL, 10) : 1), "optimizer", optimizer, "pace",
        pace[0] ? pace : NULL, "jitter", dp_compare_plan_flag(plan, "--inject jitter"), "straggler",
        dp_compare_plan_flag(plan, "--inject straggler"), "sample_every_s", plan->sample_ms / 1e3, "seeds",
        seeds_of(plan->first_seed, plan->seeds), "grid_seeds",
        seeds_of(plan->first_grid_seed, plan->rates > 0 ? plan->grid_seeds : 0), "rates", rates_of(plan));
    if (plan->rates > 0) /* of the training file, that the tries are scored on */
        dp_json_set_real(out, "grid_share", strtod(DP_COMPARE_TRY_SHARE, NULL));
    (void)json_object_set_new(out, "metric", json_null());
    (void)json_object_set_new(out, "target", target_of(plan));
    return out;
}

/* "batch": "4"; a switch: true. */
static json_t *own_of(const struct dp_compare_mode *mode)
{
    json_t *out = json_object();
    for (size_t i = 0; i < mode->owns; i++)
        (void)json_object_set_new(out, mode->own[i].option->name + 2,
                                  mode->own[i].option->argument ? json_string(mode->own[i].value)
                                                                : json_true());
    return out;
}

static json_t *mode_of(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode)
{
    char promise[DP_COMPARE_PROMISE_BYTES];
    bool seeks = dp_compare_plan_seeks_rate(plan, mode);
    const char *rate = seeks ? NULL : dp_compare_plan_mode_flag(plan, mode, "--rate");
    double value;
    json_t *out = json_pack("{s:s, s:s, s:s, s:i, s:b, s:o, s:s, s:[]}", "name", mode->name, "consistency",
                            mode->consistency, "work", mode->leased ? "leased" : "fixed", "workers",
                            (int)mode->workers, "prefetch", (int)mode->prefetch, "settings", own_of(mode),
                            "promise", dp_compare_mode_promise(mode, promise), "grid");
    bool has_rate = rate && dp_parse_f64(rate, FLT_MIN, FLT_MAX, "--rate", &value, NULL) == DP_OK;
    (void)json_object_set_new(out, "rate", has_rate ? json_real(value) : json_null());
    dp_json_set_u64(out, "threads", mode->kind == DP_COMPARE_HOGWILD ? mode->workers : 1);
    return out;
}

enum dp_status dp_compare_record_files(const struct dp_compare_plan *plan, json_t **out, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *out = json_array();
    for (size_t i = 0; st == DP_OK && i < DP_COMPARE_FILES; i++) {
        const char *flag = dp_compare_files[i], *path = dp_compare_plan_flag(plan, flag);
        char text[DP_CHECKSUM_TEXT];
        uint64_t bytes = 0;
        if (!path)
            continue;
        st = dp_checksum_file(path, NULL, &bytes, text, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "%s", flag);
        else if (json_array_append_new(*out, json_pack("{s:s, s:s, s:s, s:o}", "flag", flag, "path", path,
                                                       "blake2b", text, "bytes", dp_json_u64(bytes))) != 0)
            st = dp_fail(err, DP_NOMEM, "no memory for the report");
    }
    return st;
}

enum dp_status dp_compare_record_open(const struct dp_compare_plan *plan, int argc, char *const *argv,
                                      struct dp_compare_record *out, struct dp_error *err)
{
    char injected[DP_INJECTION_TEXT_BYTES];
    struct dp_cluster *cluster = NULL;
    *out = (struct dp_compare_record){.begun_ms = dp_now_ms()};
    enum dp_status st = dp_compare_plan_cluster(plan, &plan->mode[0], plan->first_seed, NULL, &cluster, err);
    if (st == DP_OK)
        out->root = json_pack("{s:s, s:i, s:b}", "kind", "comparison", "format", 1, "finished", 0);
    if (st == DP_OK && !out->root)
        st = dp_fail(err, DP_NOMEM, "no memory for the report");
    if (st == DP_OK) {
        json_t *origin = dp_origin_of_command("compare", argc, argv), *modes = json_array();
        (void)json_object_update(out->root, origin);
        json_decref(origin);
        for (size_t m = 0; m < plan->modes; m++)
            (void)json_array_append_new(modes, mode_of(plan, &plan->mode[m]));
        const char *straggler = dp_compare_plan_flag(plan, "--inject straggler");
        if (straggler) /* the first mode may be one that has none */
            (void)snprintf(cluster->training.straggler, sizeof cluster->training.straggler, "%s", straggler);
        dp_injection_text(&cluster->training, injected);
        (void)json_object_set_new(out->root, "settings", settings_of(plan, cluster));
        if (injected[0])
            (void)json_object_set_new(out->root, "injected", json_string(injected));
        (void)json_object_set_new(out->root, "modes", modes);
        (void)json_object_set_new(out->root, "runs", json_array());
    }
    json_t *files = NULL;
    if (st == DP_OK)
        st = dp_compare_record_files(plan, &files, err);
    if (st == DP_OK)
        (void)json_object_set(out->root, "files", files);
    json_decref(files);
    dp_cluster_free(&cluster);
    return st;
}

void dp_compare_record_close(struct dp_compare_record *record)
{
    json_decref(record->root);
    *record = (struct dp_compare_record){0};
}

/* ---- metric */

static json_t *settings(const struct dp_compare_record *record)
{
    return json_object_get(record->root, "settings");
}

static const json_t *last_sample(const json_t *run)
{
    const json_t *samples = json_object_get(run, "samples");
    return json_array_size(samples) > 0 ? json_array_get(samples, json_array_size(samples) - 1) : NULL;
}

static bool is_falling(const char *metric)
{
    return strcmp(metric, "loss") == 0 || strcmp(metric, "logloss") == 0 || strcmp(metric, "rmse") == 0;
}

/* NULL: --target names none. */
static const char *target_metric(const struct dp_compare_record *record)
{
    return json_string_value(json_object_get(json_object_get(settings(record), "target"), "metric"));
}

/* The first that this sample has; NULL: none. */
static const char *metric_of(const json_t *sample)
{
    static const char *const order[] = {"hr@10", "recall", "auc", "accuracy", "rmse", "loss"};
    const char *metric = NULL, *key;
    json_t *value;
    for (size_t i = 0; !metric && i < sizeof order / sizeof order[0]; i++)
        json_object_foreach((json_t *)sample, key,
                            value) if (!metric && strncmp(key, order[i], strlen(order[i])) == 0) metric = key;
    return metric;
}

const char *dp_compare_record_metric(const struct dp_compare_record *record)
{
    return json_string_value(json_object_get(settings(record), "metric"));
}

const char *dp_compare_record_grid_metric(const struct dp_compare_record *record)
{
    return json_string_value(json_object_get(settings(record), "grid_metric"));
}

/* key: "metric", or "grid_metric" of tries, whose set may have other metrics than that of the runs: held-out pairs are ranked among other
 * items. The first good run sets it. */
static double end_of(struct dp_compare_record *record, const json_t *run, const char *key)
{
    const json_t *last = dp_comparison_is_good(run) ? last_sample(run) : NULL;
    const char *wanted = target_metric(record);
    bool is_try = strcmp(key, "grid_metric") == 0;
    if (is_try && wanted && !json_object_get(last, wanted))
        wanted = NULL;
    const char *metric = last && !wanted ? metric_of(last) : wanted;
    if (last && metric && !json_is_string(json_object_get(settings(record), key))) {
        (void)json_object_set_new(settings(record), key, json_string(metric));
        if (!is_try)
            (void)json_object_set_new(settings(record), "higher_is_better",
                                      json_boolean(!is_falling(metric)));
    }
    metric = json_string_value(json_object_get(settings(record), key));
    return metric ? dp_json_get_real(last, metric) : (double)NAN;
}

double dp_compare_record_end(struct dp_compare_record *record, const json_t *run)
{
    return end_of(record, run, "metric");
}

enum dp_status dp_compare_record_check_target(const struct dp_compare_record *record, const json_t *run,
                                              struct dp_error *err)
{
    static const char *const of_time[] = {"seconds", "examples", "pushes", "at", "by"};
    const json_t *target = json_object_get(settings(record), "target"), *last = last_sample(run), *value;
    const char *wanted = json_string_value(json_object_get(target, "metric")), *key;
    char has[200] = "";
    if (!wanted || !last || json_object_get(last, wanted))
        return DP_OK;
    json_object_foreach((json_t *)last, key, value)
    {
        bool is_metric = true;
        for (size_t i = 0; i < sizeof of_time / sizeof of_time[0]; i++)
            is_metric &= strcmp(key, of_time[i]) != 0;
        size_t used = strlen(has);
        if (is_metric)
            (void)snprintf(has + used, sizeof has - used, "%s%s", used ? ", " : "", key);
    }
    return dp_fail(err, DP_ARGUMENT, "--target: this model has no '%s' on this test set, but %s", wanted,
                   has);
}

/* ---- runs */

static void set_seconds(struct dp_compare_record *record)
{
    double seconds = (double)(dp_now_ms() - record->begun_ms) / 1e3;
    dp_json_set_real(record->root, "seconds", record->earlier_s + seconds);
}

void dp_compare_record_add(struct dp_compare_record *record, json_t *run)
{
    (void)dp_compare_record_end(record, run);
    (void)json_array_append_new(json_object_get(record->root, "runs"), run);
    set_seconds(record);
}

static json_t *mode_at(struct dp_compare_record *record, size_t mode)
{
    return json_array_get(json_object_get(record->root, "modes"), mode);
}

void dp_compare_record_keep_try(struct dp_compare_record *record, size_t mode, json_t *one)
{
    (void)json_array_append_new(json_object_get(mode_at(record, mode), "grid"), one);
}

double dp_compare_record_add_try(struct dp_compare_record *record, size_t mode, const char *rate,
                                 const json_t *run)
{
    json_t *one = json_pack("{s:f, s:O, s:O}", "rate", strtod(rate, NULL), "seed",
                            json_object_get(run, "seed"), "error", json_object_get(run, "error"));
    double end = end_of(record, run, "grid_metric");
    (void)json_object_set_new(one, "metric", dp_json_real(end));
    if (json_is_true(json_object_get(run, "diverged")))
        (void)json_object_set_new(one, "diverged", json_true());
    dp_compare_record_keep_try(record, mode, one);
    return end;
}

bool dp_compare_record_all_diverged(struct dp_compare_record *record, size_t mode)
{
    const json_t *grid = json_object_get(mode_at(record, mode), "grid");
    bool all = json_array_size(grid) > 0;
    for (size_t i = 0; i < json_array_size(grid); i++)
        all &= json_is_true(json_object_get(json_array_get(grid, i), "diverged"));
    return all;
}

const char *dp_compare_record_choose(struct dp_compare_record *record, const struct dp_compare_plan *plan,
                                     size_t mode)
{
    const char *metric = dp_compare_record_grid_metric(record);
    bool higher = metric && !is_falling(metric);
    const char *best = NULL;
    double best_end = NAN;
    for (size_t i = 0; i < plan->rates; i++) {
        double end = dp_comparison_grid_mean(record->root, mode, strtod(plan->rate[i], NULL));
        if (isnan(end) || (best && (higher ? end <= best_end : end >= best_end)))
            continue;
        best = plan->rate[i];
        best_end = end;
    }
    if (best)
        (void)json_object_set_new(mode_at(record, mode), "rate", json_real(strtod(best, NULL)));
    return best;
}

/* ---- the target, where no --target is given
 *     of each mode: its median seed's metric over the last tenth of its samples (the worst there) -> of the best mode -> less a margin
 * Choice    95% of the way from the baseline (the best constant; else the first sample) to the value that the best mode keeps: near its end,
 *           and far enough below for its other seeds to be there, too. A mode that never gets there is said not to.
 * Why       A target that the worst mode sets says nothing about the others: it can lie below chance. */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double worse_of(double a, double b, bool higher)
{
    return higher ? fmin(a, b) : fmax(a, b);
}

/* The worst of the last tenth of a run's samples. */
static double kept(const json_t *root, const json_t *run)
{
    const json_t *samples = json_object_get(run, "samples");
    size_t count = json_array_size(samples), last = (count + 9) / 10;
    bool higher = dp_comparison_higher_is_better(root);
    double out = NAN;
    for (size_t i = count - last; i < count; i++)
        out = worse_of(dp_json_get_real(json_array_get(samples, i), dp_comparison_metric(root)), out, higher);
    return out;
}

/* What runs began with: the best constant, else the first sample. */
static double baseline(const json_t *root, const json_t *run)
{
    bool ignored;
    double value = dp_ending_baseline(root, run, &ignored);
    return isfinite(value) ? value
                           : dp_json_get_real(json_array_get(json_object_get(run, "samples"), 0),
                                              dp_comparison_metric(root));
}

/* Of the good runs; of two in the middle the worse. */
static double median_kept(const json_t *root, size_t mode, double *from)
{
    double values[DP_COMPARISON_SEEDS_MAX], out = NAN;
    size_t n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_good(root, mode, &s));) {
        values[n++] = kept(root, run);
        *from = baseline(root, run);
    }
    if (n > 0) {
        qsort(values, n, sizeof values[0], by_value);
        out = values[dp_comparison_higher_is_better(root) ? (n - 1) / 2 : n / 2];
    }
    return out;
}

static json_t *choose_target(const json_t *root)
{
    bool higher = dp_comparison_higher_is_better(root);
    double best = NAN, from = NAN, its_from = NAN;
    size_t of = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double own = dp_ending_is_whole(root, m) ? median_kept(root, m, &its_from) : (double)NAN;
        if (!isfinite(own) || (isfinite(best) && !(higher ? own > best : own < best)))
            continue;
        best = own;
        from = its_from;
        of = m;
    }
    if (!isfinite(best))
        return NULL;
    bool gained = isfinite(from) && (higher ? best > from : best < from);
    json_t *out = json_pack("{s:s, s:f, s:s, s:s, s:f}", "metric", dp_comparison_metric(root), "value",
                            gained ? from + GAIN * (best - from) : best, "chosen", "automatic", "of",
                            dp_comparison_mode(root, of), "keeps", best);
    if (gained)
        dp_json_set_real(out, "baseline", from);
    return out;
}

/* ---- the end */

static void set_target(struct dp_compare_record *record)
{
    bool has_one = json_is_object(json_object_get(settings(record), "target"));
    json_t *chosen = has_one ? NULL : choose_target(record->root);
    if (chosen)
        (void)json_object_set_new(settings(record), "target", chosen);
}

/* What runs found out by themselves, if it is the same for all. */
static void take_settings(struct dp_compare_record *record)
{
    static const char *const keys[] = {"batch", "epochs", "rate"};
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        const json_t *common = dp_comparison_common(record->root, "settings", keys[k]);
        if (common && !json_object_get(settings(record), keys[k]))
            (void)json_object_set(settings(record), keys[k], (json_t *)(uintptr_t)common);
    }
}

enum dp_status dp_compare_record_finish(struct dp_compare_record *record, struct dp_error *err)
{
    set_target(record);
    take_settings(record);
    (void)json_object_set_new(record->root, "finished", json_true());
    set_seconds(record);
    return dp_comparison_count(record->root, err);
}

enum dp_status dp_compare_record_write(const struct dp_compare_record *record, const char *dir,
                                       struct dp_error *err)
{
    char path[DP_PATH_MAX + 64];
    json_t *root = json_incref(record->root);
    (void)snprintf(path, sizeof path, "%s/report.json", dir);
    return dp_json_file_write(path, &root, 10, err);
}
