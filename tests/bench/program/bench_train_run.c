#include "tests/bench/program/bench_train_run.h"

#include "deploy/run/ports.h"
#include "deploy/run/servers.h"
#include "tests/bench/program/bench_train_hidden.h"

#include "common/env/installed.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define LOOK_MS 500u

const char *const dp_bench_train_part_names[DP_BENCH_TRAIN_PARTS] = {"read",     "pull", "copy_in", "compute",
                                                                     "copy_out", "push", "waiting", "other"};

static enum dp_status set_data(struct dp_cluster *cluster, const struct dp_bench_train_options *options,
                               struct dp_error *err)
{
    char number[16];
    struct {
        const char *key, *value;
    } all[] = {{"model", options->model},        {"data.train", options->train},
               {"data.format", options->format}, {"data.train_labels", options->labels},
               {"training.batch", number},       {"training.optimizer.kind", "adam"}};
    (void)snprintf(number, sizeof number, "%" PRIu32, options->batch);
    cluster->training.epochs = options->epochs;
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof all / sizeof all[0]; i++)
        if (all[i].value)
            st = dp_cluster_set(cluster, all[i].key, all[i].value, all[i].key, err);
    for (uint32_t i = 0; st == DP_OK && i < options->settings; i++)
        st = dp_cluster_set(cluster, options->setting[i].key, options->setting[i].value,
                            options->setting[i].key, err);
    return st;
}

static enum dp_status make_cluster(const struct dp_folder *folder,
                                   const struct dp_bench_train_options *options, struct dp_cluster **out,
                                   struct dp_error *err)
{
    struct timespec now;
    struct dp_cluster *c = *out = calloc(1, sizeof *c);
    if (!c)
        return dp_fail(err, DP_NOMEM, "no memory for a cluster");
    dp_cluster_defaults(c);
    c->server = calloc(1, sizeof c->server[0]);
    if (!c->server)
        return dp_fail(err, DP_NOMEM, "no memory for a cluster");
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    c->id = ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) | 1;
    c->server_count = 1;
    c->server[0].shards = options->shards;
    c->training.workers = 1;
    (void)snprintf(c->name, sizeof c->name, "bench");
    (void)snprintf(c->server[0].host, sizeof c->server[0].host, "127.0.0.1");
    enum dp_status st = dp_folder_path(folder, c->server[0].store, err, "store/server-0");
    if (st == DP_OK)
        st = dp_folder_path(folder, c->training.report, err, "report.json");
    if (st == DP_OK)
        st = set_data(c, options, err);
    if (st == DP_OK)
        st = dp_ports_choose(c, 0, err);
    return st == DP_OK ? dp_cluster_write(c, folder->conf, err) : st;
}

/* Of children that have ended. */
static double children_cpu_s(void)
{
    struct rusage used;
    (void)getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static enum dp_status work(struct dp_local *local, const struct dp_folder *folder, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 1];
    const char *const argv[] = {program, "--cluster", folder->conf, "--worker", "0", NULL};
    enum dp_status st = dp_installed_program("downpour-worker", program, sizeof program, err);
    if (st == DP_OK)
        st = dp_folder_path(folder, log, err, "log/worker-0.log");
    if (st == DP_OK)
        st = dp_local_start(local, DP_LOCAL_WORKER, "worker 0", argv, log, -1, err);
    while (st == DP_OK && dp_local_running(local, DP_LOCAL_WORKER) > 0) {
        dp_local_wait(local, LOOK_MS);
        if (dp_local_signal(local) || dp_local_failed(local))
            return dp_fail(err, DP_STOPPING, "stopped before the end of the training");
    }
    return st;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double number_in(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static enum dp_status take_epochs(const json_t *epochs, struct dp_bench_train_figures *out,
                                  struct dp_error *err)
{
    size_t n = json_array_size(epochs);
    double *seconds = calloc(n + 1, sizeof *seconds);
    if (!seconds)
        return dp_fail(err, DP_NOMEM, "no memory for %zu epochs", n);
    for (size_t i = 0; i < n; i++)
        out->whole_s += seconds[i] = number_in(json_array_get(epochs, i), "seconds");
    qsort(seconds, n, sizeof *seconds, by_value);
    out->epochs = (uint32_t)n;
    out->median_s = n ? (seconds[(n - 1) / 2] + seconds[n / 2]) / 2 : 0;
    out->best_s = seconds[0];
    free(seconds);
    return DP_OK;
}

/* Copies there are none without a device, and what computes then is the host. */
static void take_parts(const json_t *spent, double *part_s)
{
    static const char *const keys[DP_BENCH_TRAIN_PARTS] = {
        "read", "pull", "device_copy_in", "compute", "device_copy_out", "push", "waiting", "other"};
    for (int i = 0; i < DP_BENCH_TRAIN_PARTS; i++)
        part_s[i] = number_in(spent, keys[i]);
    if (number_in(spent, "device_compute") > 0) {
        part_s[DP_BENCH_TRAIN_OTHER] +=
            part_s[DP_BENCH_TRAIN_COMPUTE]; /* the host's share: packing batches, orders to the device */
        part_s[DP_BENCH_TRAIN_COMPUTE] = number_in(spent, "device_compute");
    }
}

static double hidden_of(const json_t *spent)
{
    static const char *const host[] = {"read",         "pull",           "compute",
                                       "push",         "waiting_pull",   "waiting_rule",
                                       "waiting_push", "waiting_device", "other"};
    struct dp_bench_train_lanes lanes = {.pulls = number_in(spent, "pull") + number_in(spent, "waiting_pull"),
                                         .copy_in = number_in(spent, "device_copy_in"),
                                         .compute = number_in(spent, "device_compute"),
                                         .copy_out = number_in(spent, "device_copy_out"),
                                         .waiting_device = number_in(spent, "waiting_device")};
    for (size_t i = 0; i < sizeof host / sizeof host[0]; i++)
        lanes.whole += number_in(spent, host[i]);
    return dp_bench_train_hidden(&lanes);
}

static enum dp_status read_report(const struct dp_folder *folder, struct dp_bench_train_figures *out,
                                  struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    json_error_t why;
    enum dp_status st = dp_folder_path(folder, path, err, "report.json");
    if (st != DP_OK)
        return st;
    json_t *root = json_load_file(path, 0, &why);
    if (!root)
        return dp_fail(err, DP_DATA, "the worker's report '%s' cannot be read: %s", path, why.text);
    const json_t *worker = json_array_get(json_object_get(root, "workers"), 0);
    const char *device = json_string_value(json_object_get(worker, "device"));
    (void)snprintf(out->device, sizeof out->device, "%s", device ? device : "");
    out->examples = (uint64_t)json_integer_value(json_object_get(json_object_get(root, "data"), "examples"));
    out->shards = (uint32_t)json_integer_value(json_object_get(json_object_get(root, "settings"), "shards"));
    take_parts(json_object_get(root, "spent_s"), out->part_s);
    out->hidden = hidden_of(json_object_get(root, "spent_s"));
    st = take_epochs(json_object_get(root, "epochs"), out, err);
    json_decref(root);
    return st;
}

enum dp_status dp_bench_train_run(struct dp_local *local, const struct dp_folder *folder,
                                  const struct dp_bench_train_options *options,
                                  struct dp_bench_train_figures *out, struct dp_error *err)
{
    struct dp_cluster *cluster = NULL;
    struct dp_client *client = NULL;
    *out = (struct dp_bench_train_figures){0};
    enum dp_status st = dp_folder_clear_store(folder, err);
    if (st == DP_OK)
        st = dp_folder_make_parts(folder, err);
    if (st == DP_OK)
        st = make_cluster(folder, options, &cluster, err);
    if (st == DP_OK)
        st = dp_servers_start(local, folder, cluster, folder->conf, "server", NULL, err);
    if (st == DP_OK)
        st = dp_servers_await(local, cluster, cluster->training.timeout_ms, &client, err);
    dp_client_close(&client);
    double before = children_cpu_s();
    if (st == DP_OK)
        st = work(local, folder, err);
    double between = children_cpu_s();
    if (st == DP_OK || !dp_local_failed(local)) /* else its end is told by its log */
        (void)dp_local_stop(local, DP_LOCAL_SERVER, 0);
    out->worker_cpu_s = between - before;
    out->server_cpu_s = children_cpu_s() - between;
    if (st == DP_OK)
        st = read_report(folder, out, err);
    dp_cluster_free(&cluster);
    return st;
}
