#include "deploy/compare/comparison.h"

#include "common/base/json.h"
#include "deploy/cli/path.h"
#include "deploy/pages/training.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT     1
#define MARGIN     0.05        /* of an ending */
#define REPORT_MAX (256 << 20) /* it holds the reports of all runs */

/* ---- reading */

static bool is_kind(const json_t *root)
{
    return strcmp(dp_training_text(root, "kind"), "comparison") == 0;
}

bool dp_comparison_is(const char *directory)
{
    char path[DP_PATH_MAX + 64];
    (void)snprintf(path, sizeof path, "%.*s/report.json", DP_PATH_MAX, directory);
    json_t *root = json_load_file(path, 0, NULL);
    bool is = is_kind(root);
    json_decref(root);
    return is;
}

static const json_t *seeds_of(const json_t *root)
{
    return json_object_get(dp_comparison_settings(root), "seeds");
}

/* All that the functions below lean on. */
static enum dp_status check(const struct dp_comparison *c, struct dp_error *err)
{
    const json_t *modes = json_object_get(c->root, "modes"), *runs = json_object_get(c->root, "runs");
    if (!is_kind(c->root))
        return dp_fail(err, DP_DATA, "'%.300s' is not the report of a comparison", c->path);
    if (dp_training_number(c->root, "format", NULL) != FORMAT)
        return dp_fail(err, DP_DATA,
                       "'%.300s' is of format %.0f, and this version reads %d: make its page with the "
                       "version that made it",
                       c->path, dp_training_number(c->root, "format", NULL), FORMAT);
    if (!json_is_object(json_object_get(c->root, "settings")) || json_array_size(modes) == 0 ||
        !json_is_array(runs))
        return dp_fail(err, DP_DATA, "'%.300s' is damaged: settings, modes or runs are missing", c->path);
    if (json_array_size(modes) > DP_COMPARISON_MODES_MAX ||
        json_array_size(seeds_of(c->root)) > DP_COMPARISON_SEEDS_MAX)
        return dp_fail(err, DP_DATA, "'%.300s' has more than %u modes, or %u seeds", c->path,
                       DP_COMPARISON_MODES_MAX, DP_COMPARISON_SEEDS_MAX);
    for (size_t m = 0; m < dp_comparison_modes(c->root); m++)
        if (dp_comparison_mode(c->root, m)[0] == '\0')
            return dp_fail(err, DP_DATA, "'%.300s' is damaged: mode %zu has no name", c->path, m + 1);
    for (size_t i = 0; i < dp_comparison_runs(c->root); i++)
        if (dp_training_text(dp_comparison_run(c->root, i), "mode")[0] == '\0' ||
            !json_is_integer(json_object_get(dp_comparison_run(c->root, i), "seed")))
            return dp_fail(err, DP_DATA, "'%.300s' is damaged: run %zu has no mode or seed", c->path, i + 1);
    return DP_OK;
}

static enum dp_status load(struct dp_comparison *out, struct dp_error *err)
{
    if (access(out->path, R_OK) != 0)
        return dp_fail(
            err, errno == ENOENT || errno == ENOTDIR ? DP_NOT_FOUND : DP_IO,
            "cannot read '%.300s': %s: name the report.json of a comparison, or the directory that has "
            "it (--dir of compare)",
            out->path, strerror(errno));
    enum dp_status st = dp_training_load(out->path, REPORT_MAX, &out->root, err);
    if (st == DP_OK)
        st = check(out, err);
    if (st != DP_OK)
        dp_comparison_clear(out);
    return st;
}

enum dp_status dp_comparison_read(const char *directory, struct dp_comparison *out, struct dp_error *err)
{
    *out = (struct dp_comparison){.root = NULL};
    enum dp_status st = dp_path_absolute(directory, out->directory, err);
    if (st == DP_OK && snprintf(out->path, sizeof out->path, "%s/report.json", out->directory) > DP_PATH_MAX)
        st = dp_fail(err, DP_ARGUMENT, "paths in '%.300s' would be too long", directory);
    return st == DP_OK ? load(out, err) : st;
}

enum dp_status dp_comparison_read_report(const char *name, struct dp_comparison *out, struct dp_error *err)
{
    struct stat info;
    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode))
        return dp_comparison_read(name, out, err);
    *out = (struct dp_comparison){.root = NULL};
    enum dp_status st = dp_path_absolute(name, out->path, err);
    return st == DP_OK ? load(out, err) : st;
}

void dp_comparison_clear(struct dp_comparison *comparison)
{
    json_decref(comparison->root);
    *comparison = (struct dp_comparison){.root = NULL};
}

/* ---- what is in it */

const json_t *dp_comparison_settings(const json_t *root)
{
    return json_object_get(root, "settings");
}

size_t dp_comparison_modes(const json_t *root)
{
    size_t modes = json_array_size(json_object_get(root, "modes"));
    DP_ASSERT(modes <= DP_COMPARISON_MODES_MAX);
    return modes;
}

const json_t *dp_comparison_mode_object(const json_t *root, size_t mode)
{
    return json_array_get(json_object_get(root, "modes"), mode);
}

const char *dp_comparison_mode(const json_t *root, size_t mode)
{
    return dp_training_text(dp_comparison_mode_object(root, mode), "name");
}

size_t dp_comparison_runs(const json_t *root)
{
    return json_array_size(json_object_get(root, "runs"));
}

const json_t *dp_comparison_run(const json_t *root, size_t run)
{
    return json_array_get(json_object_get(root, "runs"), run);
}

size_t dp_comparison_seeds(const json_t *root)
{
    size_t seeds = json_array_size(seeds_of(root));
    DP_ASSERT(seeds <= DP_COMPARISON_SEEDS_MAX);
    return seeds;
}

const json_t *dp_comparison_run_of(const json_t *root, size_t mode, size_t seed)
{
    const char *name = dp_comparison_mode(root, mode);
    const json_t *wanted = json_array_get(seeds_of(root), seed);
    for (size_t i = 0; wanted && i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        if (strcmp(dp_training_text(run, "mode"), name) == 0 &&
            json_equal(json_object_get(run, "seed"), wanted))
            return run;
    }
    return NULL;
}

bool dp_comparison_is_good(const json_t *run)
{
    return strcmp(dp_training_text(run, "status"), "ok") == 0;
}

size_t dp_comparison_tried(const json_t *root, size_t mode)
{
    size_t tried = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++)
        tried += dp_comparison_run_of(root, mode, s) != NULL;
    return tried;
}

const json_t *dp_comparison_next_trained(const json_t *root, size_t mode, size_t *seed)
{
    const json_t *run = NULL;
    while (!dp_comparison_is_good(run) && *seed < dp_comparison_seeds(root))
        run = dp_comparison_run_of(root, mode, (*seed)++);
    return dp_comparison_is_good(run) ? run : NULL;
}

const json_t *dp_comparison_next_good(const json_t *root, size_t mode, size_t *seed)
{
    const json_t *run = dp_comparison_next_trained(root, mode, seed);
    while (run && dp_comparison_outcome(root, run) != DP_COMPARISON_GOOD)
        run = dp_comparison_next_trained(root, mode, seed);
    return run;
}

const json_t *dp_comparison_common(const json_t *root, const char *part, const char *key)
{
    const json_t *common = NULL;
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        const json_t *value = json_object_get(json_object_get(json_object_get(run, "report"), part), key);
        if (!dp_comparison_is_good(run))
            continue;
        if (!value || (common && !json_equal(common, value)))
            return NULL;
        common = value;
    }
    return common;
}

const char *dp_comparison_metric(const json_t *root)
{
    return dp_training_text(dp_comparison_settings(root), "metric");
}

const char *dp_comparison_grid_metric(const json_t *root)
{
    const char *own = dp_training_text(dp_comparison_settings(root), "grid_metric");
    return own[0] ? own : dp_comparison_metric(root);
}

double dp_comparison_grid_mean(const json_t *root, size_t mode, double rate)
{
    const json_t *grid = json_object_get(dp_comparison_mode_object(root, mode), "grid");
    double sum = 0, n = 0;
    for (size_t i = 0; i < json_array_size(grid); i++) {
        const json_t *one = json_array_get(grid, i);
        if (dp_json_get_real(one, "rate") != rate)
            continue;
        sum += dp_json_get_real(one, "metric");
        n++;
    }
    return n > 0 ? sum / n : (double)NAN;
}

bool dp_comparison_higher_is_better(const json_t *root)
{
    return json_is_true(json_object_get(dp_comparison_settings(root), "higher_is_better"));
}

/* ---- quantities */

const char *dp_comparison_quantity_key(enum dp_comparison_quantity quantity)
{
    static const char *const keys[DP_QUANTITIES] = {
        "metric", "loss", "seconds_to_target", "examples_to_target", "examples_per_s", "minibatches_per_s",
        "seconds"};
    return keys[quantity];
}

static double of_last(const json_t *run, const char *key)
{
    const json_t *samples = json_object_get(run, "samples");
    size_t n = json_array_size(samples);
    return n > 0 ? dp_training_number(json_array_get(samples, n - 1), key, NULL) : (double)NAN;
}

static bool is_by(const json_t *sample, const char *what)
{
    return strcmp(dp_training_text(sample, "by"), what) == 0;
}

bool dp_comparison_is_left_out(const json_t *samples, size_t i)
{
    bool ends = i == 0 || i + 1 == json_array_size(samples);
    if (ends || !is_by(json_array_get(samples, i), "time"))
        return false;
    for (size_t k = 0; k < json_array_size(samples); k++)
        if (is_by(json_array_get(samples, k), "examples"))
            return true;
    return false;
}

/* The first sample at the target, and the last one before it that is known; the weights in between are taken to lie on a line. */
static struct dp_comparison_span span_to(const json_t *run, const char *metric, double value, bool higher,
                                         const char *key)
{
    const json_t *samples = json_object_get(run, "samples");
    double before = NAN;
    struct dp_comparison_span out = {.low = 0, .at = NAN, .high = NAN};
    for (size_t i = 0; i < json_array_size(samples); i++) {
        const json_t *sample = json_array_get(samples, i);
        double now = metric[0] ? dp_training_number(sample, metric, NULL) : (double)NAN;
        double where = dp_training_number(sample, key, NULL);
        if (dp_comparison_is_left_out(samples, i))
            continue;
        if (higher ? now >= value : now <= value) {
            double share = isfinite(before) ? (value - before) / (now - before) : 1;
            out.at = out.low + share * (where - out.low);
            out.high = where;
            return out;
        }
        if (isfinite(now)) {
            before = now;
            out.low = where;
        }
    }
    out.low = NAN;
    return out;
}

static struct dp_comparison_span of_target(const json_t *root, const json_t *run, const char *key)
{
    const json_t *target = json_object_get(dp_comparison_settings(root), "target");
    return span_to(run, dp_training_text(target, "metric"), dp_training_number(target, "value", NULL),
                   dp_comparison_higher_is_better(root), key);
}

struct dp_comparison_span dp_comparison_seconds_to_loss(const json_t *run, double loss)
{
    return span_to(run, "loss", loss, false, "seconds");
}

static double of_run(const json_t *root, const json_t *run, enum dp_comparison_quantity quantity)
{
    const json_t *report = json_object_get(run, "report"),
                 *throughput = json_object_get(report, "throughput");
    if (quantity == DP_QUANTITY_METRIC || quantity == DP_QUANTITY_LOSS)
        return of_last(run, quantity == DP_QUANTITY_LOSS ? "loss" : dp_comparison_metric(root));
    if (quantity == DP_QUANTITY_SECONDS)
        return dp_training_number(throughput, "seconds", NULL);
    double batch =
        quantity == DP_QUANTITY_BATCHES_S ? dp_training_number(report, "settings", "batch", NULL) : 1;
    return dp_training_number(throughput, "examples_per_s", NULL) / batch;
}

struct dp_comparison_span dp_comparison_span(const json_t *root, const json_t *run,
                                             enum dp_comparison_quantity quantity)
{
    double value = NAN;
    if (dp_comparison_is_good(run) && quantity == DP_QUANTITY_SECONDS_TO)
        return of_target(root, run, "seconds");
    if (dp_comparison_is_good(run) && quantity == DP_QUANTITY_EXAMPLES_TO)
        return of_target(root, run, "examples");
    if (dp_comparison_is_good(run))
        value = of_run(root, run, quantity);
    return (struct dp_comparison_span){.low = value, .at = value, .high = value};
}

double dp_comparison_value(const json_t *root, const json_t *run, enum dp_comparison_quantity quantity)
{
    return dp_comparison_span(root, run, quantity).at;
}

/* ---- endings */

double dp_ending_baseline(const json_t *root, const json_t *run, bool *is_scored)
{
    /* A report's own names of metrics that samples call otherwise. */
    static const char *const names[][2] = {{"hr@10", "hr10"}, {"ndcg@10", "ndcg10"}, {"logloss", "loss"}};
    const json_t *constant = json_object_get(json_object_get(run, "report"), "constant");
    const char *metric = dp_comparison_metric(root), *key = metric;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(metric, names[i][0]) == 0)
            key = names[i][1];
    const char *set = json_string_value(json_object_get(constant, "set"));
    *is_scored = set && strcmp(set, "test") == 0;
    double value = metric[0] ? dp_json_get_real(constant, key) : (double)NAN;
    return isfinite(value) ? value : dp_json_get_real(json_object_get(constant, "all_items"), metric);
}

/* By more than the margin, a share of the reference. */
static bool is_worse(double value, double reference, bool higher, double margin)
{
    double by = margin * fabs(reference);
    return higher ? value < reference - by : value > reference + by;
}

/* Of a run with samples that was trained to its end. */
static struct dp_ending judge(const json_t *root, const json_t *run)
{
    struct dp_ending out = {.outcome = DP_COMPARISON_DIVERGED, .reference = NAN};
    const json_t *samples = json_object_get(run, "samples"), *first = json_array_get(samples, 0);
    const json_t *last = json_array_get(samples, json_array_size(samples) - 1);
    const char *metric = dp_comparison_metric(root);
    bool higher = dp_comparison_higher_is_better(root), is_scored;
    size_t count = json_array_size(samples);
    double baseline = dp_ending_baseline(root, run, &is_scored);
    double begin = count > 1 && metric[0] ? dp_json_get_real(first, metric) : (double)NAN;
    bool untrained = dp_json_get_real(first, "examples") == 0;
    out.end = dp_comparison_value(root, run, DP_QUANTITY_METRIC);
    if (!isfinite(out.end) || json_is_null(json_object_get(last, "loss")))
        out.sign = DP_ENDING_NOT_FINITE;
    else if (isfinite(baseline) && is_worse(out.end, baseline, higher, is_scored ? 0 : MARGIN))
        out.sign = DP_ENDING_BASELINE;
    else if (isfinite(begin) && is_worse(out.end, begin, higher, untrained ? 0 : MARGIN))
        out.sign = DP_ENDING_BEGIN;
    else if (isfinite(begin) && untrained && out.end == begin && !is_worse(baseline, begin, higher, 0))
        out.sign = DP_ENDING_BEGIN; /* nothing was learned */
    else
        out.outcome = DP_COMPARISON_GOOD;
    if (out.sign == DP_ENDING_BASELINE || out.sign == DP_ENDING_BEGIN)
        out.reference = out.sign == DP_ENDING_BASELINE ? baseline : begin;
    return out;
}

struct dp_ending dp_ending_of(const json_t *root, const json_t *run)
{
    struct dp_ending out = {.outcome = DP_COMPARISON_FAILED, .end = NAN, .reference = NAN};
    if (dp_comparison_is_good(run) && json_array_size(json_object_get(run, "samples")) > 0)
        out = judge(root, run);
    if (out.outcome == DP_COMPARISON_DIVERGED || !json_is_true(json_object_get(run, "diverged")))
        return out;
    out.outcome = DP_COMPARISON_DIVERGED;
    out.sign = DP_ENDING_STOPPED;
    return out;
}

enum dp_comparison_outcome dp_comparison_outcome(const json_t *root, const json_t *run)
{
    return dp_ending_of(root, run).outcome;
}

const char *dp_ending_status(const json_t *root, const json_t *run)
{
    static const char *const names[] = {"ok", "diverged", "failed"};
    return names[dp_comparison_outcome(root, run)];
}

size_t dp_ending_count(const json_t *root, size_t mode, enum dp_comparison_outcome outcome)
{
    size_t count = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        count += run && dp_comparison_outcome(root, run) == outcome;
    }
    return count;
}

bool dp_ending_is_whole(const json_t *root, size_t mode)
{
    return dp_ending_count(root, mode, DP_COMPARISON_GOOD) > 0 &&
           dp_ending_count(root, mode, DP_COMPARISON_DIVERGED) == 0 &&
           dp_ending_count(root, mode, DP_COMPARISON_FAILED) == 0;
}
