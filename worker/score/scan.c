#include "worker/score/scan.h"

#include "worker/compute/pinned.h"
#include "worker/context/weights.h"
#include "worker/read/reader.h"
#include "worker/schedule/shares.h"

#include <string.h>

/* Two fetches of one minibatch each: one is computed while the other is pulled. */
struct scan_look {
    struct dp_weights *weights;
    struct dp_batch *batch;
    struct dp_ticket ticket;
};

struct scanning {
    const struct dp_scan *scan;
    struct scan_look look[2];
    struct dp_reader *reader;
    float *output;
    uint32_t width;
    bool quiet; /* it failed without an unanswered pull */
};

static enum dp_status scanning_open(struct scanning *s, struct dp_error *err)
{
    struct dp_job *job = s->scan->job;
    const struct dp_graph *graph = job->model.graph;
    struct dp_weights_options options = {.graph = graph,
                                         .tables = job->table,
                                         .shards = job->shards,
                                         .worst = &job->worst,
                                         .batches_max = 1,
                                         .backend = &job->backend,
                                         .source = job->rows};
    enum dp_status st = dp_weights_new(&options, &s->look[0].weights, err);
    if (st != DP_OK)
        return st;
    options.dense_of = s->look[0].weights;
    st = dp_weights_new(&options, &s->look[1].weights, err);
    if (st != DP_OK)
        return st;
    s->width = dp_graph_node(graph, dp_graph_output(graph))->width;
    void *output;
    st = dp_pinned_new(&job->backend, (size_t)dp_job_batch(job) * s->width * sizeof(float), &output, err);
    if (st != DP_OK)
        return st;
    s->output = output;
    const struct dp_reader_plan plan = {.epochs = 1, .offset = s->scan->offset, .stride = s->scan->stride};
    return dp_reader_start(s->scan->data, &plan, 4, 2, &s->reader, err);
}

static enum dp_status start(struct scanning *s, struct scan_look *look, struct dp_error *err)
{
    struct dp_job *job = s->scan->job;
    uint32_t timeout_ms = job->cluster->training.timeout_ms;
    enum dp_status st = dp_job_next_batch(job, s->reader, &look->batch, err);
    if (st == DP_OK)
        st = dp_weights_take(look->weights, &look->batch, 1, err);
    if (st != DP_OK)
        return st;
    return dp_weights_issue(look->weights, job->client, DP_WEIGHTS_SPARSE, NULL, timeout_ms, &look->ticket,
                            err);
}

static enum dp_status finish(struct scanning *s, struct scan_look *look, struct dp_error *err)
{
    const struct dp_scan *scan = s->scan;
    enum dp_status st = dp_job_wait(scan->job, &look->ticket, false, NULL, err);
    if (st != DP_OK)
        return st;
    if (scan->no_labels)
        memset(look->batch->labels, 0, look->batch->examples * sizeof *look->batch->labels);
    float loss;
    st = dp_program_forward(scan->job->program, look->batch, dp_weights_of(look->weights, 0), &loss,
                            s->output, err);
    if (st == DP_OK)
        st = scan->visit(scan->context, look->batch, s->output, s->width, err);
    dp_reader_give_back(s->reader, &look->batch);
    if (scan->progress)
        dp_progress_tick(scan->progress);
    return st;
}

static enum dp_status run(struct scanning *s, uint64_t positions, struct dp_error *err)
{
    struct dp_job *job = s->scan->job;
    struct dp_ticket dense;
    enum dp_status st = dp_weights_issue(s->look[0].weights, job->client, DP_WEIGHTS_DENSE, NULL,
                                         job->cluster->training.timeout_ms, &dense, err);
    if (st == DP_OK)
        st = dp_job_wait(job, &dense, false, NULL, err);
    if (st == DP_OK)
        st = start(s, &s->look[0], err);
    for (uint64_t i = 0; st == DP_OK && i < positions; i++) {
        if (dp_job_stopped(job)) { /* with no pull under way, so that the client may still be used */
            st = dp_job_wait(job, &s->look[i % 2].ticket, false, NULL, err);
            s->quiet = st == DP_OK;
            return st == DP_OK ? dp_fail(err, DP_STOPPING, "stopped by a signal") : st;
        }
        if (i + 1 < positions)
            st = start(s, &s->look[(i + 1) % 2], err);
        if (st == DP_OK)
            st = finish(s, &s->look[i % 2], err);
    }
    return st;
}

enum dp_status dp_scan(const struct dp_scan *scan, struct dp_error *err)
{
    const struct dp_share share = {
        .batches = dp_dataset_batches(scan->data), .worker = scan->offset, .workers = scan->stride};
    uint64_t positions = dp_share_positions(share);
    if (positions == 0)
        return DP_OK;
    struct scanning s = {.scan = scan};
    enum dp_status st = scanning_open(&s, err);
    dp_program_evaluate(scan->job->program, true);
    if (st == DP_OK)
        st = run(&s, positions, err);
    dp_program_evaluate(scan->job->program, false);
    if (st != DP_OK && scan->progress)
        st = dp_progress_settle(scan->job, st, err);
    if (st != DP_OK && !s.quiet)
        dp_progress_end(scan->progress, scan->job, st);
    for (int i = 0; i < 2; i++)
        if (s.look[i].batch)
            dp_reader_give_back(s.reader, &s.look[i].batch);
    dp_reader_stop(&s.reader);
    dp_weights_free(&s.look[1].weights);
    dp_weights_free(&s.look[0].weights);
    void *output = s.output;
    dp_pinned_free(&scan->job->backend, &output);
    return st;
}
