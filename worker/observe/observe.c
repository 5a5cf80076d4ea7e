#include "worker/observe/observe.h"

#include "common/base/log.h"
#include "common/config/consistency.h"
#include "common/wire/counters.h"
#include "worker/context/retry.h"
#include "worker/observe/samples.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_NS      UINT64_C(1000000)
#define LOOK_MS    20u             /* for the first push */
#define SOON_NS    MS_NS           /* between two looks at counts, at least, */
#define LATER_NS   (10000 * MS_NS) /* and at most */
#define BOUNDARY   3u              /* tries to sample between two steps */
#define TABLES_MS  20u             /* for tables */
#define SLICE_NS   (50 * MS_NS)
#define KEYS_MAX   65536u     /* of a request */
#define FLOATS_MAX (4u << 20) /* likewise */

/* What one shard counted since it was started, and before. */
struct seen_shard {
    uint64_t up_ms, pushes, examples;
    uint64_t pushes_before, examples_before; /* of earlier processes in its place */
};

struct observer {
    struct dp_job job;
    const struct dp_observe_options *options;
    struct dp_sample_keys wanted;
    struct dp_samples_writer *writer;
    float *rows; /* of the current sample */
    struct dp_keys *keys[DP_GRAPH_PARAMETERS_MAX];
    struct seen_shard *shard;              /* [shards] */
    uint64_t pushes, examples;             /* that all shards have */
    uint64_t restarts;                     /* of servers, seen */
    uint64_t began_ns;                     /* 0: no push was seen */
    uint64_t began_pushes, began_examples; /* that were seen then */
    uint64_t due;                          /* examples at which the next sample by examples is taken */
};

/* ---- counts */

static void see(struct observer *o, struct seen_shard *shard, const struct dp_status_report *report)
{
    uint64_t up_ms = dp_counter_value(report->counter, report->counters, "up_ms"),
             pushes = dp_counter_value(report->counter, report->counters, "pushes"),
             examples = dp_counter_value(report->counter, report->counters, "examples");
    if (up_ms < shard->up_ms || pushes < shard->pushes || examples < shard->examples) {
        shard->pushes_before += shard->pushes;
        shard->examples_before += shard->examples;
        o->restarts++;
    }
    shard->up_ms = up_ms;
    shard->pushes = pushes;
    shard->examples = examples;
}

static enum dp_status look_at(struct observer *o, uint32_t shard, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    struct dp_retry retry = dp_retry_begin(&o->job);
    enum dp_status st;
    do
        st =
            dp_client_status(o->job.client, shard, dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), &report, err);
    while (dp_retry_more(&retry, &st, err));
    if (st == DP_OK)
        see(o, &o->shard[shard], report);
    dp_client_status_free(&report);
    return st;
}

static enum dp_status look(struct observer *o, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; st == DP_OK && s < o->job.shards; s++)
        st = look_at(o, s, err);
    if (st != DP_OK)
        return st;
    o->pushes = o->examples = UINT64_MAX;
    for (uint32_t s = 0; s < o->job.shards; s++) {
        const struct seen_shard *shard = &o->shard[s];
        uint64_t pushes = shard->pushes_before + shard->pushes,
                 examples = shard->examples_before + shard->examples;
        o->pushes = pushes < o->pushes ? pushes : o->pushes;
        o->examples = examples < o->examples ? examples : o->examples;
    }
    if (o->began_ns == 0 && o->pushes > 0) {
        o->began_ns = dp_clock_ns(&o->job.clock);
        o->began_pushes = o->pushes;
        o->began_examples = o->examples;
    }
    return DP_OK;
}

/* ---- rows */

/* Where the next request goes on. */
struct pull_place {
    uint32_t table;
    uint64_t key;
    float *rows;
};

/* Takes the parts of one request, at most one of each table. */
static enum dp_status take_parts(struct observer *o, struct pull_place *at,
                                 struct dp_pull_part parts[DP_GRAPH_PARAMETERS_MAX], uint32_t *count,
                                 struct dp_error *err)
{
    uint64_t keys_left = KEYS_MAX, floats_left = FLOATS_MAX;
    enum dp_status st = DP_OK;
    *count = 0;
    while (st == DP_OK && at->table < o->wanted.tables) {
        const struct dp_sample_table *table = &o->wanted.table[at->table];
        uint64_t n = table->count - at->key, fit = floats_left / table->dim;
        if (n > 0) {
            n = n < fit ? n : fit;
            n = n < keys_left ? n : keys_left;
            if (n == 0)
                return DP_OK; /* full */
            st = dp_keys_lend(o->keys[at->table], table->keys + at->key, n, err);
            parts[(*count)++] = (struct dp_pull_part){
                .table = o->job.table[at->table], .keys = o->keys[at->table], .weights = at->rows};
            keys_left -= n;
            floats_left -= n * table->dim;
            at->key += n;
            at->rows += n * table->dim;
        }
        if (at->key < table->count)
            return st;
        at->table++;
        at->key = 0;
    }
    return st;
}

static enum dp_status pull_all(struct observer *o, struct dp_error *err)
{
    struct pull_place at = {.rows = o->rows};
    struct dp_pull_part parts[DP_GRAPH_PARAMETERS_MAX];
    enum dp_status st = DP_OK;
    while (st == DP_OK && at.table < o->wanted.tables) {
        uint32_t count;
        struct dp_ticket ticket = {0};
        st = take_parts(o, &at, parts, &count, err);
        if (st == DP_OK && count > 0)
            st = dp_client_pull(o->job.client, parts, count, NULL, o->job.cluster->training.timeout_ms,
                                &ticket, err);
        if (st == DP_OK)
            st = dp_job_wait(&o->job, &ticket, false, NULL, err);
    }
    return st;
}

/* Rows from both sides of a restart are pulled again. In sync so are rows by examples from both sides of a
 * step, unless steps are too short for that. */
static enum dp_status pull_and_count(struct observer *o, enum dp_sample_by by, struct dp_error *err)
{
    const struct dp_cluster_rule rule = dp_cluster_rule_of(&o->job.cluster->training);
    bool steps = by == DP_SAMPLE_BY_EXAMPLES && dp_cluster_rule_by_step(rule);
    enum dp_status st = look(o, err);
    uint64_t restarts, pushes;
    uint32_t tries = 0;
    do {
        restarts = o->restarts;
        pushes = o->pushes;
        if (st == DP_OK)
            st = pull_all(o, err);
        if (st == DP_OK)
            st = look(o, err);
    } while (st == DP_OK &&
             (restarts != o->restarts || (steps && pushes != o->pushes && ++tries < BOUNDARY)));
    return st;
}

static enum dp_status sample(struct observer *o, enum dp_sample_by by, struct dp_error *err)
{
    const struct dp_clock wall = dp_clock_wall();
    enum dp_status st = pull_and_count(o, by, err);
    if (st != DP_OK)
        return st;
    const struct dp_sample now = {.monotonic_ns = dp_clock_ns(&o->job.clock),
                                  .wall_ns = dp_clock_ns(&wall),
                                  .began_ns = o->began_ns,
                                  .pushes = o->pushes,
                                  .examples = o->examples,
                                  .by = by};
    if (by == DP_SAMPLE_BY_EXAMPLES)
        o->due = dp_sample_keys_due(&o->wanted, o->examples);
    return dp_samples_writer_append(o->writer, &now, o->rows, err);
}

/* ---- the course */

static void rest_until(struct observer *o, uint64_t until_ns)
{
    uint64_t now = dp_clock_ns(&o->job.clock);
    while (now < until_ns && !dp_job_stopped(&o->job)) {
        uint64_t slice = until_ns - now < SLICE_NS ? until_ns - now : SLICE_NS;
        const struct timespec rest = {.tv_nsec = (long)slice};
        (void)nanosleep(&rest, NULL);
        dp_client_progress(o->job.client);
        now = dp_clock_ns(&o->job.clock);
    }
}

static enum dp_status await_tables(struct observer *o, struct dp_error *err)
{
    uint64_t limit_ns = (uint64_t)DP_RETRY_MOST * o->job.cluster->training.timeout_ms * MS_NS;
    const uint64_t begun_ns = dp_clock_ns(&o->job.clock);
    enum dp_status st = dp_job_tables(&o->job, true, err);
    while (st == DP_NOT_FOUND && !dp_job_stopped(&o->job)) {
        uint64_t now = dp_clock_ns(&o->job.clock);
        if (now - begun_ns > limit_ns) {
            const struct dp_error cause = *err;
            return dp_fail(err, DP_TIMEOUT, "no training began within %" PRIu64 " s: %s",
                           limit_ns / MS_NS / 1000, cause.text);
        }
        rest_until(o, now + TABLES_MS * MS_NS);
        st = dp_job_tables(&o->job, true, err);
    }
    return st;
}

/* When to look whether a sample by examples is due. Half of the way there at the mean speed, since a
 * training may become faster; but a quarter of the mean time of a push, so that looks do not disturb it. */
static uint64_t next_look_ns(const struct observer *o, uint64_t now)
{
    double ran = (double)(now - o->began_ns), examples = (double)(o->examples - o->began_examples);
    double rest = ran / fmax((double)(o->pushes - o->began_pushes), 1) / 4;
    if (o->due == UINT64_MAX)
        return UINT64_MAX;
    if (examples > 0)
        rest = fmax(rest, ran * (double)(o->due - o->examples) / examples / 2);
    return now + (uint64_t)fmin(fmax(rest, (double)SOON_NS), (double)LATER_NS);
}

/* From the first push until it is stopped. */
static enum dp_status observe_course(struct observer *o, struct dp_error *err)
{
    const uint64_t every_ns = o->options->every_ms * MS_NS;
    uint64_t due_ns = o->began_ns + every_ns;
    enum dp_status st = DP_OK;
    while (st == DP_OK && !dp_job_stopped(&o->job)) {
        uint64_t now = dp_clock_ns(&o->job.clock);
        if (o->examples >= o->due) {
            st = sample(o, DP_SAMPLE_BY_EXAMPLES, err);
        } else if (now >= due_ns) {
            st = sample(o, DP_SAMPLE_BY_TIME, err);
            now = dp_clock_ns(&o->job.clock);
            due_ns += (now - due_ns) / every_ns * every_ns + every_ns;
        } else {
            uint64_t look_ns = next_look_ns(o, now);
            rest_until(o, look_ns < due_ns ? look_ns : due_ns);
            if (look_ns < due_ns && !dp_job_stopped(&o->job))
                st = look(o, err);
        }
    }
    return st;
}

static enum dp_status observe(struct observer *o, struct dp_error *err)
{
    enum dp_status st = await_tables(o, err);
    if (st == DP_OK)
        st = sample(o, DP_SAMPLE_BY_EXAMPLES, err);
    while (st == DP_OK && o->began_ns == 0 && !dp_job_stopped(&o->job)) {
        rest_until(o, dp_clock_ns(&o->job.clock) + LOOK_MS * MS_NS);
        st = look(o, err);
    }
    if (st == DP_OK)
        st = observe_course(o, err);
    return st == DP_OK ? sample(o, DP_SAMPLE_BY_EXAMPLES, err) : st;
}

static enum dp_status observer_open(struct observer *o, const struct dp_cluster *cluster,
                                    const atomic_int *stop, struct dp_error *err)
{
    enum dp_status st = dp_sample_keys_read(o->options->keys, &o->wanted, err);
    if (st == DP_OK)
        st = dp_job_open(cluster, 0, "observer", stop, &o->job, err);
    if (st != DP_OK)
        return st;
    st = dp_sample_keys_fit(&o->wanted, o->job.model.graph, o->options->keys, err);
    /* That it is there says that the servers have answered. */
    if (st == DP_OK)
        st = dp_samples_writer_open(o->options->samples, &o->wanted, &o->writer, err);
    o->rows = calloc(dp_sample_keys_floats(&o->wanted) + 1, sizeof *o->rows);
    o->shard = calloc(o->job.shards, sizeof *o->shard);
    if (st == DP_OK && (!o->rows || !o->shard))
        st = dp_fail(err, DP_NOMEM, "no memory for a sample of %zu weights",
                     dp_sample_keys_floats(&o->wanted));
    for (uint32_t t = 0; st == DP_OK && t < o->wanted.tables; t++)
        st = dp_keys_new(&o->keys[t], err);
    return st;
}

static void observer_close(struct observer *o)
{
    dp_job_close(&o->job); /* first: an unanswered pull may still write */
    for (uint32_t t = 0; t < o->wanted.tables; t++)
        dp_keys_free(&o->keys[t]);
    dp_samples_writer_close(&o->writer);
    dp_sample_keys_clear(&o->wanted);
    free(o->rows);
    free(o->shard);
}

enum dp_status dp_observe(const struct dp_cluster *cluster, const atomic_int *stop,
                          const struct dp_observe_options *options, struct dp_error *err)
{
    struct observer *o = calloc(1, sizeof *o);
    if (!o)
        return dp_fail(err, DP_NOMEM, "no memory to observe a training");
    o->options = options;
    enum dp_status st = observer_open(o, cluster, stop, err);
    if (st == DP_OK)
        st = observe(o, err);
    uint64_t taken = o->writer ? dp_samples_writer_count(o->writer) : 0;
    bool deaf = st == DP_TIMEOUT || st == DP_UNAVAILABLE, stopped = atomic_load(stop) != 0;
    /* The servers have stopped, or it was stopped before any table was made. */
    if ((deaf && taken > 0 && !stopped) || (st == DP_NOT_FOUND && stopped)) {
        dp_log(DP_LOG_INFO, "no more samples: %s", err->text);
        *err = (struct dp_error){0};
        st = DP_OK;
    } else if (st != DP_OK && stopped) {
        st = dp_wrap(err, st, "the last sample was not taken");
    }
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "%" PRIu64 " samples, the last one after %" PRIu64 " examples", taken,
               o->examples == UINT64_MAX ? 0 : o->examples);
    observer_close(o);
    free(o);
    return st;
}
