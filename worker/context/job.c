#include "worker/context/job.h"

#include "common/base/log.h"
#include "common/config/cluster_client.h"
#include "common/env/awake.h"
#include "common/model/stream.h"
#include "common/wire/reply.h"
#include "worker/compute/device.h"
#include "worker/context/retry.h"
#include "worker/read/interactions.h"
#include "worker/read/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of one wait between two checks for a signal. */
#define SLICE_MS 200u
#define MS_NS    UINT64_C(1000000)

/* Never, but the other client's replies are taken in, and its beats sent. */
static bool tend(void *client)
{
    dp_client_progress(client);
    return false;
}

static enum dp_status client_open(struct dp_job *job, const char *name, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    struct dp_client_options options = {
        .name = name,
        /* Enough for two fetches and every unanswered push, so that issuing one never waits. */
        .window = training->pushes_max + 4,
        .bf16_values = training->bf16_values,
        .gives_up = job->beside ? tend : NULL,
        .gives_up_context = job->beside,
    };
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do {
        options.open_timeout_ms = dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS);
        st = dp_cluster_client(job->cluster, &options, &job->client, err);
    } while (dp_retry_more(&retry, &st, err));
    job->shared = dp_shared_of_client();
    return st;
}

static enum dp_status device_open(struct dp_job *job, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_device_options options = {.device = training->device,
                                              .worker = job->worker,
                                              .precision = dp_cluster_precision_name(training->precision),
                                              .threads = training->blas_threads};
    enum dp_status st = dp_device_open(&options, &job->backend, job->device, err);
    if (st != DP_OK)
        return st;
    dp_log(DP_LOG_INFO, "computes on %s", job->device);
    return DP_OK;
}

enum dp_status dp_job_open_alone(const struct dp_cluster *cluster, uint32_t worker, const atomic_int *stop,
                                 struct dp_job *out, struct dp_error *err)
{
    *out = (struct dp_job){.cluster = cluster,
                           .worker = worker,
                           .stop = stop,
                           .clock = dp_clock_real(),
                           .shards = dp_cluster_shards(cluster)};
    enum dp_status st = device_open(out, err);
    if (st == DP_OK)
        st = dp_model_open(cluster->model, &out->model, err);
    if (st == DP_OK) {
        dp_graph_set_optimizer(out->model.graph, &cluster->training.optimizer, cluster->training.seed);
        st = dp_graph_check(out->model.graph, err);
    }
    if (st != DP_OK)
        dp_job_close(out);
    return st;
}

enum dp_status dp_job_open(const struct dp_cluster *cluster, uint32_t worker, const char *name,
                           const atomic_int *stop, struct dp_job *out, struct dp_error *err)
{
    enum dp_status st = dp_job_open_alone(cluster, worker, stop, out, err);
    if (st != DP_OK)
        return st;
    st = client_open(out, name, err);
    if (st != DP_OK)
        dp_job_close(out);
    return st;
}

void dp_job_disconnect(struct dp_job *job)
{
    job->shared = NULL;
    dp_client_close(&job->client);
}

void dp_job_close(struct dp_job *job)
{
    dp_job_disconnect(job);
    dp_program_close(&job->program);
    dp_backend_close(&job->backend);
    dp_model_close(&job->model);
}

enum dp_status dp_job_act_for(const struct dp_job *job, uint32_t worker, struct dp_job *out,
                              struct dp_error *err)
{
    char name[DP_CLIENT_NAME_MAX + 1];
    (void)snprintf(name, sizeof name, "worker %" PRIu32 " for worker %" PRIu32, job->worker, worker);
    *out = *job;
    out->worker = worker;
    out->client = NULL;
    out->beside = job->client;
    out->absence = NULL;
    enum dp_status st = client_open(out, name, err);
    out->shared = NULL;
    if (st == DP_OK)
        st = dp_job_tables(out, false, err);
    if (st != DP_OK)
        dp_job_disconnect(out);
    return st;
}

struct dp_training_settings_files dp_job_files(const struct dp_job *job)
{
    return (struct dp_training_settings_files){.begun = job->runs.train, .mine = job->cluster->data.train};
}

/* Whether the first shard, and so each, has the table. */
static enum dp_status table_is_there(struct dp_job *job, const char *name, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_status(job->client, 0, dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), &report, err);
    while (dp_retry_more(&retry, &st, err));
    if (st != DP_OK)
        return st;
    bool there = false;
    for (uint32_t i = 0; i < report->tables; i++)
        there |= strcmp(report->table[i].spec.name, name) == 0;
    dp_client_status_free(&report);
    return there
               ? DP_OK
               : dp_fail(err, DP_NOT_FOUND, "the servers have no table %s: model %s was not trained on them",
                         name, job->cluster->model);
}

static void tell_other_settings(const struct dp_job *job, struct dp_error *err)
{
    const struct dp_error cause = *err;
    (void)dp_fail(err, DP_EXISTS,
                  "%.220s; tables keep the settings of their creation. Instead of model '%.40s' with these, "
                  "give the --model, --optimizer and --seed of that time, or start with new tables (--fresh, "
                  "or another --dir; without downpour run, another 'servers.store')",
                  cause.text, job->cluster->model);
}

static enum dp_status open_table(struct dp_job *job, const struct dp_table_spec *spec,
                                 struct dp_client_table **out, struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_table_kept(job->client, spec, dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), out, err);
    while (dp_retry_more(&retry, &st, err));
    if (st == DP_EXISTS && err)
        tell_other_settings(job, err);
    return st;
}

enum dp_status dp_job_tables(struct dp_job *job, bool must_exist, struct dp_error *err)
{
    for (int p = 0; p < dp_graph_parameters(job->model.graph); p++) {
        const struct dp_table_spec *spec = &dp_graph_parameter(job->model.graph, p)->table;
        enum dp_status st = must_exist ? table_is_there(job, spec->name, err) : DP_OK;
        if (st == DP_OK)
            st = open_table(job, spec, &job->table[p], err);
        if (st != DP_OK)
            return st;
    }
    return DP_OK;
}

uint32_t dp_job_batch(const struct dp_job *job)
{
    uint32_t batch = job->cluster->training.batch;
    return batch ? batch : DP_JOB_BATCH;
}

/* The cluster file was checked. */
static uint32_t label_base(const char *text)
{
    return strcmp(text, "auto") == 0 ? DP_LABEL_BASE_AUTO : (uint32_t)strtoul(text, NULL, 10);
}

struct dp_dataset_options dp_job_data(const struct dp_job *job, const char *path, const char *labels,
                                      bool shuffle)
{
    const struct dp_cluster *cluster = job->cluster;
    labels = labels && labels[0] ? labels : NULL;
    return (struct dp_dataset_options){
        .path = path,
        .format = cluster->data.format,
        .labels_path = labels,
        .labels = job->model.labels,
        .classes = job->model.classes,
        .form = job->model.form,
        .columns_path = cluster->data.by_columns && cluster->data.columns[0] ? cluster->data.columns : NULL,
        .new_ignored = cluster->data.new_columns == DP_UNMATCHED_ACCEPT,
        .missing_empty = cluster->data.missing_columns == DP_UNMATCHED_ACCEPT,
        .rated = job->model.rated,
        .width = job->model.width,
        .fields = job->model.fields,
        .pooled = job->model.pooled,
        .negatives = cluster->data.negatives,
        .window = cluster->data.window,
        .subsample = shuffle ? cluster->data.subsample : 0,
        .word_rule = cluster->data.words,
        .min_count = shuffle ? cluster->data.min_count : 1, /* of the training file */
        .label = cluster->data.label[0] ? cluster->data.label : NULL,
        .roles = {cluster->data.user, cluster->data.item, cluster->data.rating, cluster->data.time},
        .categories = cluster->data.categories[0] ? cluster->data.categories : NULL,
        .lists = cluster->data.lists[0] ? cluster->data.lists : NULL,
        .ignore = cluster->data.ignore[0] ? cluster->data.ignore : NULL,
        .id = cluster->data.id[0] ? cluster->data.id : NULL,
        .missing = cluster->data.missing[0] ? cluster->data.missing : NULL,
        .weight = cluster->data.weight[0] ? cluster->data.weight : NULL,
        .class_weight = cluster->data.class_weight[0] ? cluster->data.class_weight : NULL,
        .weighs = shuffle, /* the training file */
        .encoding = cluster->data.encoding[0] ? cluster->data.encoding : NULL,
        .hash_bits = cluster->data.hash_bits,
        .cache = cluster->data.cache[0] ? cluster->data.cache : NULL,
        .index_base = cluster->data.index_base,
        .label_base = label_base(cluster->data.label_base),
        .scale = cluster->data.scale,
        .normalize = cluster->data.normalize,
        .standardize = cluster->data.standardize,
        .scale_labels = dp_job_is_regression(job),
        .shuffle = shuffle,
        .seed = cluster->training.seed,
        .batch = dp_job_batch(job),
    };
}

const char *dp_job_earlier_interactions(const struct dp_job *job)
{
    struct dp_interactions head;
    const char *path = job->cluster->data.interactions;
    if (!path[0] || access(path, F_OK) != 0)
        return NULL;
    bool own = dp_interactions_head(path, &head) && head.run == job->cluster->training.run && !head.earlier;
    return own ? NULL : path;
}

enum dp_status dp_job_program(struct dp_job *job, const struct dp_dataset *a, const struct dp_dataset *b,
                              const struct dp_dataset *c, struct dp_error *err)
{
    job->worst = *dp_dataset_shape(a);
    if (b)
        job->worst = dp_batch_shape_max(&job->worst, dp_dataset_shape(b));
    if (c)
        job->worst = dp_batch_shape_max(&job->worst, dp_dataset_shape(c));
    job->worst.examples = dp_job_batch(job);
    return dp_program_open(job->model.graph, &job->backend, &job->worst, &job->program, err);
}

enum dp_status dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, bool looks,
                           struct dp_outcome *outcome, struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st, looked = DP_OK;
    if (ticket->id == 0)
        return DP_OK;
    struct dp_retry retry = dp_retry_begin(job);
    do {
        st = dp_client_wait(job->client, ticket, dp_retry_slice_ms(&retry, SLICE_MS), outcome, err);
        if (looks && st == DP_TIMEOUT)
            looked = dp_job_waits(job, &why);
        if (looked != DP_OK)
            return dp_fail(err, looked, "%s", why.text);
    } while (dp_retry_more(&retry, &st, err));
    return st;
}

bool dp_job_run_forgotten(const struct dp_job *job, uint32_t run)
{
    return dp_client_too_old(job->client) >= dp_stream_of_run(run, UINT32_MAX);
}

enum dp_status dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                             struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = dp_client_pushed(job->client, stream, from, count, bits,
                              dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), err);
    while (dp_retry_more(&retry, &st, err));
    if (st == DP_TOO_OLD && dp_job_run_forgotten(job, dp_stream_run(stream)))
        return dp_fail(err, DP_ARGUMENT,
                       "run %" PRIu32
                       " may be one that the servers have forgotten: to train, set training.run to %" PRIu32
                       " or higher",
                       dp_stream_run(stream), dp_stream_run(dp_client_too_old(job->client)) + 1);
    return st;
}

enum dp_status dp_job_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                                 struct dp_error *err)
{
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    struct dp_awake clock = {0};
    uint64_t until = 0;
    enum dp_status st = dp_reader_next(reader, 0, out); /* as a rule it is there: no look at the clock */
    if (st == DP_TIMEOUT) {
        /* No slice counts for more than its length: while this process is suspended, its reader is, too. */
        clock = dp_awake_over(&job->clock, SLICE_MS * MS_NS);
        until = clock.now_ns + timeout_ms * MS_NS;
    }
    while (st == DP_TIMEOUT) {
        uint64_t now = dp_awake_ns(&clock), left_ms = now < until ? (until - now) / MS_NS + 1 : 0;
        if (dp_job_stopped(job))
            return dp_fail(err, DP_STOPPING, "stopped by a signal while a minibatch was read");
        if (left_ms == 0)
            return dp_fail(
                err, DP_IO, /* not DP_TIMEOUT: the servers answer, so the others can be told */
                "the reader gave no minibatch within %" PRIu32
                " ms: the disk is too slow for it, or memory too small for the decoded file, which is "
                "then read again and again; give this machine memory, put data.cache on a faster disk, "
                "or raise --timeout (training.timeout_ms)",
                timeout_ms);
        dp_job_alive(job);
        st = dp_reader_next(reader, left_ms < SLICE_MS ? (uint32_t)left_ms : SLICE_MS, out);
    }
    return *out ? DP_OK : dp_fail(err, DP_INTERNAL, "the reader has no more minibatches");
}
