#include "deploy/compare/comparison.h"

#include "deploy/cli/path.h"
#include "deploy/pages/training.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FORMAT     1
#define REPORT_MAX (256 << 20) /* it holds the reports of all runs */

/* ---- reading */

static bool is_kind(const json_t *root)
{
    return strcmp(dp_training_text(root, "kind"), "comparison") == 0;
}

static enum dp_status find(const char *directory, char path[DP_PATH_MAX + 1], struct dp_error *err)
{
    struct stat info;
    if (snprintf(path, DP_PATH_MAX + 1, "%s/report.json", directory) > DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "paths in '%.300s' would be too long", directory);
    if (stat(path, &info) != 0)
        return dp_fail(err, errno == ENOENT || errno == ENOTDIR ? DP_NOT_FOUND : DP_IO,
                       "cannot read '%.300s': %s", path, strerror(errno));
    return S_ISREG(info.st_mode) && info.st_size <= REPORT_MAX
               ? DP_OK
               : dp_fail(err, DP_DATA, "'%.300s' is no report: it is %s", path,
                         S_ISREG(info.st_mode) ? "too large for one" : "no file");
}

bool dp_comparison_is(const char *directory)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    json_t *root = find(directory, path, &unheard) == DP_OK ? json_load_file(path, 0, NULL) : NULL;
    bool is = is_kind(root);
    json_decref(root);
    return is;
}

/* All that the functions below lean on. */
static enum dp_status check(const struct dp_comparison *c, struct dp_error *err)
{
    const json_t *modes = json_object_get(c->root, "modes"), *runs = json_object_get(c->root, "runs");
    size_t i;
    json_t *one;
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
    json_array_foreach((json_t *)modes, i, one) if (dp_training_text(one, "name")[0] == '\0') return dp_fail(
        err, DP_DATA, "'%.300s' is damaged: mode %zu has no name", c->path, i + 1);
    json_array_foreach(
        (json_t *)runs, i,
        one) if (dp_training_text(one, "mode")[0] == '\0' ||
                 !json_is_integer(json_object_get(
                     one, "seed"))) return dp_fail(err, DP_DATA,
                                                   "'%.300s' is damaged: run %zu has no mode or seed",
                                                   c->path, i + 1);
    return DP_OK;
}

static enum dp_status load(struct dp_comparison *out, struct dp_error *err)
{
    json_error_t why;
    if (access(out->path, R_OK) != 0)
        return dp_fail(
            err, errno == ENOENT || errno == ENOTDIR ? DP_NOT_FOUND : DP_IO,
            "cannot read '%.300s': %s: name the report.json of a comparison, or the directory that has "
            "it (--dir of compare)",
            out->path, strerror(errno));
    out->root = json_load_file(out->path, 0, &why);
    if (!out->root)
        return dp_fail(err, DP_DATA, "the report '%.300s' is damaged (line %d: %.100s)", out->path, why.line,
                       why.text);
    enum dp_status st = check(out, err);
    if (st != DP_OK)
        dp_comparison_clear(out);
    return st;
}

enum dp_status dp_comparison_read(const char *directory, struct dp_comparison *out, struct dp_error *err)
{
    *out = (struct dp_comparison){.root = NULL};
    enum dp_status st = dp_path_absolute(directory, out->directory, err);
    if (st == DP_OK)
        st = find(out->directory, out->path, err);
    return st == DP_OK ? load(out, err) : st;
}

enum dp_status dp_comparison_read_report(const char *name, struct dp_comparison *out, struct dp_error *err)
{
    struct stat info;
    *out = (struct dp_comparison){.root = NULL};
    if (stat(name, &info) == 0 && S_ISDIR(info.st_mode))
        return dp_comparison_read(name, out, err);
    enum dp_status st = dp_path_absolute(name, out->path, err);
    return st == DP_OK ? load(out, err) : st;
}

void dp_comparison_clear(struct dp_comparison *comparison)
{
    json_decref(comparison->root);
    *comparison = (struct dp_comparison){.root = NULL};
}

/* ---- what is in it */

size_t dp_comparison_modes(const json_t *root)
{
    return json_array_size(json_object_get(root, "modes"));
}

const char *dp_comparison_mode(const json_t *root, size_t mode)
{
    return dp_training_text(json_array_get(json_object_get(root, "modes"), mode), "name");
}

size_t dp_comparison_runs(const json_t *root)
{
    return json_array_size(json_object_get(root, "runs"));
}

const json_t *dp_comparison_run(const json_t *root, size_t run)
{
    return json_array_get(json_object_get(root, "runs"), run);
}

static const json_t *seeds_of(const json_t *root)
{
    return json_object_get(json_object_get(root, "settings"), "seeds");
}

size_t dp_comparison_seeds(const json_t *root)
{
    return json_array_size(seeds_of(root));
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

const char *dp_comparison_metric(const json_t *root)
{
    return dp_training_text(json_object_get(root, "settings"), "metric");
}

const char *dp_comparison_grid_metric(const json_t *root)
{
    const char *own = dp_training_text(json_object_get(root, "settings"), "grid_metric");
    return own[0] ? own : dp_comparison_metric(root);
}

bool dp_comparison_higher_is_better(const json_t *root)
{
    return json_is_true(json_object_get(json_object_get(root, "settings"), "higher_is_better"));
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
    const json_t *target = json_object_get(json_object_get(root, "settings"), "target");
    return span_to(run, dp_training_text(target, "metric"), dp_training_number(target, "value", NULL),
                   dp_comparison_higher_is_better(root), key);
}

struct dp_comparison_span dp_comparison_seconds_to_loss(const json_t *run, double loss)
{
    return span_to(run, "loss", loss, false, "seconds");
}

static double of_run(const json_t *root, const json_t *run, enum dp_comparison_quantity quantity)
{
    const json_t *report = json_object_get(run, "report");
    const char *metric = dp_comparison_metric(root);
    switch (quantity) {
    case DP_QUANTITY_METRIC:
        return metric[0] ? of_last(run, metric) : (double)NAN;
    case DP_QUANTITY_LOSS:
        return of_last(run, "loss");
    case DP_QUANTITY_EXAMPLES_S:
        return dp_training_number(report, "throughput", "examples_per_s", NULL);
    case DP_QUANTITY_BATCHES_S:
        return dp_training_number(report, "throughput", "examples_per_s", NULL) /
               dp_training_number(report, "settings", "batch", NULL);
    case DP_QUANTITY_SECONDS:
        return dp_training_number(report, "throughput", "seconds", NULL);
    case DP_QUANTITY_SECONDS_TO:
    case DP_QUANTITY_EXAMPLES_TO:
    case DP_QUANTITIES:
        break;
    }
    return (double)NAN;
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
