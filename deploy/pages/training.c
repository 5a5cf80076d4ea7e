#include "deploy/pages/training.h"

#include "deploy/run/folder.h"
#include "deploy/run/run_provenance.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REPORT_MAX  (64 << 20)
#define SECONDS_MAX 1e12 /* what is more is no time of a training */

double dp_training_number(const json_t *root, ...)
{
    va_list keys;
    va_start(keys, root);
    for (const char *key = va_arg(keys, const char *); key; key = va_arg(keys, const char *))
        root = json_object_get(root, key);
    va_end(keys);
    double value = json_is_number(root) ? json_number_value(root) : (double)NAN;
    return isfinite(value) ? value : (double)NAN;
}

const char *dp_training_text(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text ? text : "";
}

/* ---- reading */

static enum dp_status find_report(struct dp_training *training, struct dp_folder *folder,
                                  struct dp_error *err)
{
    struct dp_error unheard = {0};
    struct dp_cluster *cluster = NULL;
    struct stat info;
    enum dp_status st = dp_folder_find(training->directory, folder, err);
    if (st == DP_OK)
        st = dp_folder_path(folder, training->path, err, "report.json");
    if (st != DP_OK)
        return st;
    /* A run with --report has it elsewhere. */
    if (dp_cluster_read(folder->conf, &cluster, &unheard) == DP_OK) {
        training->begun = cluster->training.run;
        if (cluster->training.report[0] && stat(cluster->training.report, &info) == 0)
            (void)snprintf(training->path, sizeof training->path, "%s", cluster->training.report);
    }
    dp_cluster_free(&cluster);
    if (stat(training->path, &info) != 0 && (errno == ENOENT || errno == ENOTDIR))
        return dp_fail(
            err, DP_NOT_FOUND,
            "there is no report in '%s': it is the --dir of no run, or of one that has not trained "
            "its first epoch yet",
            training->directory);
    training->written = info.st_mtime;
    return DP_OK;
}

enum dp_status dp_training_load(const char *path, off_t max, json_t **out, struct dp_error *err)
{
    struct stat info;
    json_error_t why;
    if (stat(path, &info) != 0)
        return dp_fail(err, DP_IO, "cannot read '%.300s': %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode) || info.st_size > max)
        return dp_fail(err, DP_DATA, "'%.300s' is no report: %s", path,
                       S_ISREG(info.st_mode) ? "it is too large for one" : "it is no file");
    *out = json_load_file(path, 0, &why);
    return *out ? DP_OK
                : dp_fail(err, DP_DATA, "the report '%.300s' is damaged (line %d: %.100s)", path, why.line,
                          why.text);
}

static enum dp_status load(struct dp_training *training, struct dp_error *err)
{
    enum dp_status st = dp_training_load(training->path, REPORT_MAX, &training->report, err);
    if (st != DP_OK)
        return st;
    training->epochs = json_object_get(training->report, "epochs");
    if (!json_is_array(training->epochs))
        return dp_fail(err, DP_DATA, "'%s' is no report of a training: it has no list of epochs",
                       training->path);
    training->count = json_array_size(training->epochs);
    training->number = calloc(training->count + 1, sizeof *training->number);
    training->time = calloc(training->count + 1, sizeof *training->time);
    return training->number && training->time
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no memory for %zu epochs", training->count);
}

static void settle_axes(struct dp_training *training)
{
    double passed = 0;
    for (size_t i = 0; i < training->count; i++) {
        const json_t *epoch = json_array_get(training->epochs, i);
        double number = dp_training_number(epoch, "epoch", NULL),
               seconds = dp_training_number(epoch, "seconds", NULL);
        training->number[i] = number >= 1 ? number : (double)(i + 1);
        /* An epoch of 0 s was trained before a store was restored: how long it took is lost. */
        passed = seconds > 0 ? passed + seconds : (double)NAN;
        training->time[i] = passed;
    }
}

enum dp_status dp_training_read(const char *directory, struct dp_training *out, struct dp_error *err)
{
    struct stat info;
    struct dp_folder folder;
    *out = (struct dp_training){0};
    if (!directory[0] || stat(directory, &info) != 0 || !S_ISDIR(info.st_mode))
        return dp_fail(err, DP_NOT_FOUND, "there is no directory '%s': name the --dir of a run", directory);
    enum dp_status st = dp_path_absolute(directory, out->directory, err);
    if (st == DP_OK)
        st = find_report(out, &folder, err);
    if (st == DP_OK)
        st = load(out, err);
    if (st != DP_OK) {
        dp_training_clear(out);
        return st;
    }
    settle_axes(out);
    double run = dp_training_number(out->report, "settings", "run", NULL);
    if (run >= 1 && run <= INT32_MAX)
        out->origin = dp_run_provenance_read(&folder, (uint32_t)run);
    return DP_OK;
}

void dp_training_clear(struct dp_training *training)
{
    json_decref(training->report);
    json_decref(training->origin);
    free(training->number);
    free(training->time);
    *training = (struct dp_training){0};
}

/* ---- metrics */

static bool has_metric(const struct dp_training *training, const char *key)
{
    static const char *const sets[] = {"train", "validation", "test"};
    const json_t *final = json_object_get(training->report, "final");
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        if (s > 0 && !isnan(dp_training_metric(final, sets[s], key)))
            return true;
        for (size_t i = 0; i < training->count; i++)
            if (!isnan(dp_training_metric(json_array_get(training->epochs, i), sets[s], key)))
                return true;
    }
    return false;
}

/* "recall@20": K is the run's own. */
static size_t add_ranked(const json_t *epoch, struct dp_training_metric *out, size_t count)
{
    static const char *const sets[] = {"validation", "test"};
    for (size_t s = 0; s < 2; s++) {
        json_t *all = json_object_get(json_object_get(epoch, sets[s]), "all_items"), *value;
        const char *key;
        json_object_foreach(all, key, value)
        {
            bool known = !strchr(key, '@') || strlen(key) >= sizeof out->key || !json_is_number(value);
            for (size_t i = 0; i < count; i++)
                known = known || strcmp(out[i].key, key) == 0;
            if (known || count == DP_TRAINING_METRICS_MAX)
                continue;
            out[count] = (struct dp_training_metric){.digits = 4};
            (void)snprintf(out[count].key, sizeof out->key, "%s", key);
            (void)snprintf(out[count].name, sizeof out->name, "%s%s",
                           strncmp(key, "ndcg", 4) == 0 ? "NDCG" : "",
                           strncmp(key, "ndcg", 4) == 0 ? key + 4 : key);
            count++;
        }
    }
    return count;
}

size_t dp_training_metrics(const struct dp_training *training,
                           struct dp_training_metric out[DP_TRAINING_METRICS_MAX])
{
    static const struct dp_training_metric known[] = {{"loss", "loss", 5},  {"accuracy", "accuracy", 4},
                                                      {"auc", "AUC", 5},    {"rmse", "RMSE", 5},
                                                      {"hr10", "HR@10", 4}, {"ndcg10", "NDCG@10", 4}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (has_metric(training, known[i].key))
            out[count++] = known[i];
    if (training->count > 0)
        count = add_ranked(json_array_get(training->epochs, training->count - 1), out, count);
    return add_ranked(json_object_get(training->report, "final"), out, count);
}

double dp_training_metric(const json_t *epoch, const char *set, const char *key)
{
    if (strcmp(set, "train") == 0)
        return strcmp(key, "loss") == 0 ? dp_training_number(epoch, "train_loss", NULL) : (double)NAN;
    return strchr(key, '@') ? dp_training_number(epoch, set, "all_items", key, NULL)
                            : dp_training_number(epoch, set, key, NULL);
}

/* ---- time */

const char *dp_training_share_name(enum dp_training_share share)
{
    static const char *const names[DP_SHARES] = {"computing",
                                                 "waiting for the device",
                                                 "reading data",
                                                 "preparing requests",
                                                 "waiting for rows",
                                                 "waiting for answers to pushes",
                                                 "waiting for other workers",
                                                 "injected delays",
                                                 "other"};
    return names[share];
}

bool dp_training_shares(const json_t *worker_or_report, double seconds[DP_SHARES])
{
    static const struct {
        const char *key;
        enum dp_training_share share;
    } kinds[] = {{"compute", DP_SHARE_COMPUTE},   {"waiting_device", DP_SHARE_DEVICE},
                 {"read", DP_SHARE_READ},         {"pull", DP_SHARE_REQUESTS},
                 {"push", DP_SHARE_REQUESTS},     {"waiting_pull", DP_SHARE_PULL},
                 {"waiting_push", DP_SHARE_PUSH}, {"waiting_rule", DP_SHARE_RULE},
                 {"injected", DP_SHARE_INJECTED}};
    json_t *spent = json_object_get(worker_or_report, "spent_s"), *value;
    const char *key;
    double sum = 0;
    memset(seconds, 0, DP_SHARES * sizeof *seconds);
    json_object_foreach(spent, key, value)
    {
        enum dp_training_share share = DP_SHARE_OTHER;
        double s = json_number_value(value);
        /* "waiting" is the sum of others; the device's times run beside the host's. */
        if (strcmp(key, "waiting") == 0 || strncmp(key, "device_", 7) == 0 || !isfinite(s) || s < 0 ||
            s > SECONDS_MAX)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            if (strcmp(kinds[i].key, key) == 0)
                share = kinds[i].share;
        seconds[share] += s;
        sum += s;
    }
    return sum > 0;
}

/* ---- distributions */

static void add_bucket(struct dp_training_histogram *out, const json_t *count)
{
    double value = json_number_value(count);
    out->counts[out->count] = isfinite(value) && value > 0 ? value : 0;
    out->total += out->counts[out->count++];
}

/* Buckets above the last that has something say nothing. */
static bool trim(struct dp_training_histogram *out)
{
    while (out->count > 0 && out->counts[out->count - 1] <= 0)
        out->count--;
    return out->total > 0;
}

bool dp_training_staleness(const json_t *staleness, struct dp_training_histogram *out)
{
    const json_t *counts = json_object_get(staleness, "histogram");
    *out = (struct dp_training_histogram){0};
    for (size_t b = 0; b < json_array_size(counts) && b < 64; b++) {
        double least = ldexp(1, (int)b - 1);
        if (b < 2)
            (void)snprintf(out->label[b], sizeof out->label[b], "%zu", b);
        else
            (void)snprintf(out->label[b], sizeof out->label[b], "%.0f–%.0f", least, 2 * least - 1);
        add_bucket(out, json_array_get(counts, b));
    }
    return trim(out);
}

bool dp_training_histogram(const json_t *histogram, bool percent, struct dp_training_histogram *out)
{
    const json_t *upper = json_object_get(histogram, "upper"), *counts = json_object_get(histogram, "counts");
    size_t n = json_array_size(counts);
    double before = -1;
    *out = (struct dp_training_histogram){0};
    if (json_array_size(upper) != n)
        return false;
    for (size_t b = 0; b < n && b < DP_TRAINING_BUCKETS_MAX; b++) {
        const json_t *bound = json_array_get(upper, b);
        double to = json_number_value(bound) * (percent ? 100 : 1), from = percent ? before : before + 1;
        if (!json_is_number(bound))
            (void)snprintf(out->label[b], sizeof out->label[b], "%.9g or more", from);
        else if (b == 0 || (!percent && to <= from))
            (void)snprintf(out->label[b], sizeof out->label[b], "%.9g", to);
        else
            (void)snprintf(out->label[b], sizeof out->label[b], "%.9g–%.9g", from, to);
        add_bucket(out, json_array_get(counts, b));
        before = to;
    }
    return trim(out);
}

const char *dp_training_quantile(const struct dp_training_histogram *histogram, double share)
{
    double seen = 0;
    for (size_t b = 0; b < histogram->count; b++) {
        seen += histogram->counts[b];
        if (seen >= share * histogram->total)
            return histogram->label[b];
    }
    return histogram->count > 0 ? histogram->label[histogram->count - 1] : "";
}
