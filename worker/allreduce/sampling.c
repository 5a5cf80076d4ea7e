#include "worker/allreduce/sampling.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "worker/observe/samples.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct dp_sampling {
    const struct dp_sampling_options *options;
    const struct dp_replica *replica;
    struct dp_clock clock;
    struct dp_sample_keys keys;
    struct dp_samples_writer *writer; /* NULL: it failed */
    float *rows;
    struct dp_sample now;
    uint64_t due_ns, due; /* the next sample by time, by examples */
};

static void copy_rows(struct dp_sampling *s)
{
    float *at = s->rows;
    for (uint32_t t = 0; t < s->keys.tables; t++) {
        const struct dp_sample_table *table = &s->keys.table[t];
        for (uint64_t k = 0; k < table->count; k++, at += table->dim)
            memcpy(at, dp_replica_row(s->replica, (int)t, dp_unmix(table->keys[k])), table->dim * sizeof *at);
    }
}

static void sample(struct dp_sampling *s, enum dp_sample_by by)
{
    const struct dp_clock wall = dp_clock_wall();
    struct dp_error err = {0};
    if (!s->writer)
        return;
    s->now.monotonic_ns = dp_clock_ns(&s->clock);
    s->now.wall_ns = dp_clock_ns(&wall);
    s->now.by = by;
    if (by == DP_SAMPLE_BY_EXAMPLES)
        s->due = dp_sample_keys_due(&s->keys, s->now.examples);
    copy_rows(s);
    if (dp_samples_writer_append(s->writer, &s->now, s->rows, &err) == DP_OK)
        return;
    dp_log(DP_LOG_WARN, "%s; the training goes on, without samples", err.text);
    dp_samples_writer_close(&s->writer);
    (void)unlink(s->options->samples);
}

static enum dp_status check_rows(const struct dp_sampling *s, struct dp_error *err)
{
    for (uint32_t t = 0; t < s->keys.tables; t++)
        for (uint64_t k = 0; k < s->keys.table[t].count; k++)
            if (!dp_replica_row(s->replica, (int)t, dp_unmix(s->keys.table[t].keys[k])))
                return dp_fail(err, DP_DATA, "'%s' names rows that table %s does not have", s->options->keys,
                               s->keys.table[t].name);
    return DP_OK;
}

enum dp_status dp_sampling_open(const struct dp_sampling_options *options, const struct dp_graph *graph,
                                const struct dp_replica *replica, struct dp_clock clock,
                                struct dp_sampling **out, struct dp_error *err)
{
    struct dp_sampling *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return dp_fail(err, DP_NOMEM, "no memory for samples");
    *s = (struct dp_sampling){.options = options, .replica = replica, .clock = clock};
    enum dp_status st = dp_sample_keys_read(options->keys, &s->keys, err);
    if (st == DP_OK)
        st = dp_sample_keys_fit(&s->keys, graph, options->keys, err);
    if (st == DP_OK)
        st = check_rows(s, err);
    s->rows = st == DP_OK ? malloc((dp_sample_keys_floats(&s->keys) + 1) * sizeof *s->rows) : NULL;
    if (st == DP_OK && !s->rows)
        st = dp_fail(err, DP_NOMEM, "no memory for a sample");
    if (st == DP_OK)
        st = dp_samples_writer_open(options->samples, &s->keys, &s->writer, err);
    if (st == DP_OK)
        sample(s, DP_SAMPLE_BY_EXAMPLES);
    else
        dp_sampling_close(&s);
    *out = s;
    return st;
}

void dp_sampling_close(struct dp_sampling **sampling)
{
    struct dp_sampling *s = *sampling;
    *sampling = NULL;
    if (!s)
        return;
    dp_samples_writer_close(&s->writer);
    dp_sample_keys_clear(&s->keys);
    free(s->rows);
    free(s);
}

void dp_sampling_step(struct dp_sampling *s, uint64_t pushes, uint64_t examples)
{
    uint64_t now = dp_clock_ns(&s->clock), every_ns = s->options->every_ms * UINT64_C(1000000);
    s->now.pushes += pushes;
    s->now.examples += examples;
    if (s->now.began_ns == 0) {
        s->now.began_ns = now;
        s->due_ns = now + every_ns;
    }
    if (s->now.examples >= s->due)
        sample(s, DP_SAMPLE_BY_EXAMPLES);
    if (now < s->due_ns)
        return;
    sample(s, DP_SAMPLE_BY_TIME);
    s->due_ns += (now - s->due_ns) / every_ns * every_ns + every_ns;
}

void dp_sampling_end(struct dp_sampling *s)
{
    sample(s, DP_SAMPLE_BY_EXAMPLES);
}
