#include "deploy/run/dry_run.h"

#include "common/base/deadline.h"
#include "common/model/row.h"
#include "common/vocab/vocab.h"
#include "deploy/cli/amounts.h"
#include "deploy/cli/scratch.h"
#include "deploy/run/spool.h"
#include "worker/compute/models/model.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define ENOUGH_MS 4000u /* notes of workers come about once a second */

/* NULL: it was not given. */
static const char **value_of(const char **values, const char *name)
{
    for (size_t i = 0; i < dp_run_command.count; i++)
        if (dp_run_command.options[i].name && strcmp(dp_run_command.options[i].name, name) == 0)
            return &values[i];
    return NULL;
}

static bool is_stream(const char *name, const char *value)
{
    static const char *const files[] = {"--train", "--test", "--validation"};
    bool is_file = false;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        is_file = is_file || dp_options_is_of(name, files[i]);
    return is_file && value && dp_spool_is_stream(value);
}

enum dp_status dp_dry_run_begin(struct dp_dry_run *dry, const char **values, struct dp_error *err)
{
    static const char *const further[][2] = {
        {"--resume", "the run's data and settings are settled, and 'downpour status' shows how far it is"},
        {"--from", "no store is restored for a trial"},
        {"--replace-store", "it changes no store"},
        {"--discard", "it changes no store"}};
    static const char *const dropped[] = {"--report",       "--cache",           "--fresh",
                                          "--continue",     "--sample-every",    "--score",
                                          "--score labels", "--score negatives", "--port"};
    for (size_t i = 0; i < sizeof further / sizeof further[0]; i++)
        if (*value_of(values, further[i][0]))
            return dp_fail(err, DP_ARGUMENT,
                           "--dry-run tries a training that begins, or --continue: omit %s (%s)",
                           further[i][0], further[i][1]);
    for (size_t i = 0; i < dp_run_command.count; i++)
        if (dp_run_command.options[i].name && is_stream(dp_run_command.options[i].name, values[i]))
            return dp_fail(
                err, DP_ARGUMENT,
                "--dry-run reads %s to its end, and a pipe ('%s') can be read only once, so nothing "
                "would be left for the training: name a file",
                dp_run_command.options[i].name, values[i]);
    const char *dir = *value_of(values, "--dir");
    if (*value_of(values, "--continue") && *value_of(values, "--fresh"))
        return dp_fail(err, DP_ARGUMENT, "--continue and --fresh: give one of them");
    dry->earlier = !*value_of(values, "--continue") ? NULL : dir ? dir : DP_RUN_DIR;
    for (size_t i = 0; i < sizeof dropped / sizeof dropped[0]; i++)
        *value_of(values, dropped[i]) = NULL;
    enum dp_status st = dp_scratch_make(dry->dir, err);
    if (st == DP_OK)
        *value_of(values, "--dir") = dry->dir;
    dry->begun_ms = dp_now_ms();
    return st;
}

bool dp_dry_run_look(struct dp_dry_run *dry, const struct dp_cli_progress *seen)
{
    const uint64_t now_ms = dp_now_ms();
    if (seen->examples == 0 || seen->examples == dry->now)
        return false;
    if (dry->since_ms == 0) {
        dry->since_ms = now_ms;
        dry->since = seen->examples;
    }
    dry->now_ms = now_ms;
    dry->now = seen->examples;
    dry->total = seen->total;
    return now_ms - dry->since_ms >= ENOUGH_MS;
}

/* In seconds, without reading; NaN: it was over before it could be measured. */
static double estimate(const struct dp_dry_run *dry)
{
    if (dry->now == dry->since)
        return (double)NAN;
    return (double)dry->total / (double)(dry->now - dry->since) * (double)(dry->now_ms - dry->since_ms) /
           1000;
}

static const char *time_text(double seconds, char out[48])
{
    if (seconds < 90)
        (void)snprintf(out, 48, "%.0f s", ceil(seconds));
    else if (seconds < 5400)
        (void)snprintf(out, 48, "%.0f min", ceil(seconds / 60));
    else
        (void)snprintf(out, 48, "%.1f h", seconds / 3600);
    return out;
}

static uint64_t dense_weights(const struct dp_graph *graph)
{
    uint64_t sum = 0;
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        sum += parameter->sparse ? 0 : (uint64_t)parameter->rows * parameter->width;
    }
    return sum;
}

/* Keys that have a name are those of the data; 0: they have none, as features of libsvm. */
static uint64_t keys_of(const struct dp_vocab *vocab, uint32_t group)
{
    uint64_t keys = 0;
    for (size_t i = 0; vocab && i < dp_vocab_count(vocab); i++) {
        const struct dp_vocab_name name = dp_vocab_at(vocab, i);
        keys += name.group != DP_VOCAB_COLUMN && dp_vocab_key(vocab, group, name.key) == i;
    }
    return keys;
}

/* On the servers; 0: not known. */
static uint64_t bytes_of(const struct dp_graph *graph, const struct dp_vocab *vocab)
{
    uint64_t bytes = 0;
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        uint64_t rows = parameter->sparse ? keys_of(vocab, parameter->group)
                                          : dp_parameter_floats(parameter) / parameter->table.dim;
        if (rows == 0)
            return 0;
        bytes += rows * dp_row_bytes(&parameter->table);
    }
    return bytes;
}

static void tell_weights(const struct dp_graph *graph, const struct dp_vocab *vocab, FILE *file)
{
    char number[32];
    const uint64_t bytes = bytes_of(graph, vocab);
    fprintf(file, "Weights:   %s in dense layers",
            dp_cli_number((double)dense_weights(graph), number, sizeof number));
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        const uint64_t keys = parameter->sparse ? keys_of(vocab, parameter->group) : 0;
        if (!parameter->sparse)
            continue;
        fprintf(file, "; %s: %" PRIu32 " for each ", parameter->table.name, parameter->table.dim);
        if (keys > 0)
            fprintf(file, "of %s keys", dp_cli_number((double)keys, number, sizeof number));
        else
            fprintf(file, "key");
        fprintf(file, ", %zu bytes on a server", dp_row_bytes(&parameter->table));
    }
    if (bytes > 0)
        fprintf(file, "; %s in all", dp_amount_bytes(bytes, number));
    fputc('\n', file);
}

static void tell_time(const struct dp_dry_run *dry, FILE *file)
{
    char time[48], done[32], total[32];
    const double seconds = estimate(dry);
    if (isnan(seconds)) {
        fprintf(file, "Time:      a few seconds: the trial was over before it could be measured\n");
        return;
    }
    fprintf(file,
            "Time:      about %s, an estimate for this machine: a trial trained %s of %s examples in %.1f s, "
            "after %.1f s "
            "of starting and reading. Evaluations in later epochs may add to it\n",
            time_text(seconds + (double)(dry->since_ms - dry->begun_ms) / 1000, time),
            dp_cli_number((double)(dry->now - dry->since), done, sizeof done),
            dp_cli_number((double)dry->total, total, sizeof total),
            (double)(dry->now_ms - dry->since_ms) / 1000, (double)(dry->since_ms - dry->begun_ms) / 1000);
}

static void tell_data(const json_t *root, const struct dp_cluster *cluster, FILE *file)
{
    const json_t *data = json_object_get(root, "data"), *settings = json_object_get(root, "settings");
    const double examples = json_number_value(json_object_get(data, "examples")),
                 batch = json_number_value(json_object_get(settings, "batch"));
    const char *labels = json_string_value(json_object_get(data, "labels"));
    char number[32], bytes[32];
    struct stat is;
    fprintf(file, "Data:      %s, %s: %s examples to train on\n", cluster->data.train,
            dp_amount_bytes(stat(cluster->data.train, &is) == 0 ? (uint64_t)is.st_size : 0, bytes),
            dp_cli_number(examples, number, sizeof number));
    if (labels)
        fprintf(file, "Labels:    %s\n", labels);
    fprintf(file, "Epochs:    %.0f%s, each of %s minibatches of %.0f%s\n",
            json_number_value(json_object_get(settings, "epochs")),
            json_is_true(json_object_get(settings, "epochs_by_size")) ? " (chosen by size)" : "",
            dp_cli_number(batch > 0 ? ceil(examples / batch) : 0, number, sizeof number), batch,
            json_is_true(json_object_get(settings, "batch_by_size")) ? " (chosen by size)" : "");
}

static void tell_json(const struct dp_dry_run *dry, const json_t *root, const struct dp_graph *graph,
                      const struct dp_vocab *vocab, FILE *file)
{
    const json_t *data = json_object_get(root, "data"), *settings = json_object_get(root, "settings");
    const double seconds = estimate(dry);
    json_t *out = json_pack("{s:b, s:i, s:O, s:O, s:O, s:O, s:I}", "dry_run", 1, "exit", 0, "model",
                            json_object_get(root, "model"), "examples", json_object_get(data, "examples"),
                            "epochs", json_object_get(settings, "epochs"), "batch",
                            json_object_get(settings, "batch"), "dense_weights",
                            (json_int_t)dense_weights(graph), "bytes", (json_int_t)bytes_of(graph, vocab));
    if (!isnan(seconds))
        (void)json_object_set_new(out, "estimated_seconds", json_real(seconds));
    if (json_object_get(root, "advice"))
        (void)json_object_set(out, "advice", json_object_get(root, "advice"));
    (void)json_dumpf(out, file, JSON_REAL_PRECISION(6));
    (void)fputc('\n', file);
    json_decref(out);
}

enum dp_status dp_dry_run_tell(const struct dp_dry_run *dry, const char *report,
                               const struct dp_cluster *cluster, bool json, FILE *file, struct dp_error *err)
{
    struct dp_model model = {0};
    json_error_t why;
    json_t *root = json_load_file(report, 0, &why);
    const char *text = json_string_value(json_object_get(root, "model"));
    if (!root)
        return dp_fail(err, DP_DATA, "cannot read the trial's report '%s': %s", report, why.text);
    struct dp_vocab *vocab = NULL;
    enum dp_status st = dp_model_open(text ? text : cluster->model, &model, err);
    if (st == DP_OK) {
        dp_graph_set_optimizer(model.graph, &cluster->training.optimizer, cluster->training.seed);
        st = dp_vocab_open(cluster->data.names, cluster->training.run, &vocab, err);
    }
    if (st == DP_OK && json) {
        tell_json(dry, root, model.graph, vocab, file);
    } else if (st == DP_OK) {
        fprintf(file, "Model:     %s\n", text);
        tell_data(root, cluster, file);
        tell_weights(model.graph, vocab, file);
        tell_time(dry, file);
    }
    dp_vocab_close(&vocab);
    dp_model_close(&model);
    json_decref(root);
    return st;
}

void dp_dry_run_end(struct dp_dry_run *dry)
{
    dp_scratch_remove(dry->dir);
}
