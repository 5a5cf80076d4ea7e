#include "fixture.h"

#include "tests/lib/test.h"

#include <math.h>
#include <stdlib.h>

uint64_t fixture_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

float fixture_uniform(uint64_t *state)
{
    return (float)(int32_t)(fixture_random(state) >> 32) / 2147483648.0f;
}

static void *get(size_t count, size_t each)
{
    void *block = calloc(count + 1, each);
    assert_non_null(block);
    return block;
}

static void make_labels(struct fixture *f, enum dp_op loss, uint32_t width)
{
    f->batch.labels = get(f->batch.examples, sizeof *f->batch.labels);
    for (uint32_t i = 0; i < f->batch.examples; i++)
        f->batch.labels[i] = loss == DP_OP_SOFTMAX_LOSS    ? (float)(fixture_random(&f->random) % width)
                             : loss == DP_OP_LOGISTIC_LOSS ? (float)(fixture_random(&f->random) % 2)
                                                           : fixture_uniform(&f->random);
}

/* Some keys occur often, examples without entries occur, a slot may occur twice in one example. */
static void make_entries(struct fixture *f)
{
    struct dp_batch *batch = &f->batch;
    uint32_t count = 0;
    batch->distinct = 1 + (uint32_t)(fixture_random(&f->random) % (f->seed % 2 ? 12 : 100));
    batch->offsets = get(batch->examples + 1, sizeof *batch->offsets);
    batch->slots = get(batch->examples * 7, sizeof *batch->slots);
    batch->values = get(batch->examples * 7, sizeof *batch->values);
    batch->keys = get(batch->distinct, sizeof *batch->keys);
    for (uint32_t s = 0; s < batch->distinct; s++)
        batch->keys[s] = 1000 + 3 * s;
    for (uint32_t i = 0; i < batch->examples; i++) {
        uint32_t entries = (uint32_t)(fixture_random(&f->random) % 8);
        for (uint32_t j = 0; j < entries; j++, count++) {
            batch->slots[count] = (uint32_t)(fixture_random(&f->random) % batch->distinct);
            batch->values[count] = fixture_uniform(&f->random);
        }
        batch->offsets[i + 1] = count;
    }
}

static void make_dense(struct fixture *f, uint32_t width)
{
    size_t n = (size_t)f->batch.examples * width;
    f->batch.width = width;
    f->batch.dense = get(n, sizeof *f->batch.dense);
    for (size_t i = 0; i < n; i++)
        f->batch.dense[i] = fixture_uniform(&f->random);
}

void fixture_open(struct fixture *f, const struct dp_graph *graph, struct dp_backend backend,
                  uint32_t examples, float scale, uint64_t seed)
{
    struct dp_error err = {0};
    *f = (struct fixture){.seed = seed, .random = seed, .graph = graph, .backend = backend};
    f->batch.examples = examples;
    f->limits = (struct dp_program_limits){2 * examples, 14 * examples, 100};
    if (dp_program_open(graph, &f->backend, &f->limits, &f->program, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < dp_graph_nodes(graph); i++)
        if (dp_graph_node(graph, i)->op == DP_OP_INPUT_DENSE && !f->batch.dense)
            make_dense(f, dp_graph_node(graph, i)->width);
    make_entries(f);
    uint32_t width = dp_graph_node(graph, dp_graph_output(graph))->width;
    make_labels(f, dp_graph_node(graph, dp_graph_nodes(graph) - 1)->op, width);
    f->output = get((size_t)examples * width, sizeof *f->output);
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        size_t n =
            parameter->sparse ? (size_t)f->batch.distinct * parameter->width : dp_parameter_floats(parameter);
        f->floats[p] = n;
        f->weights[p] = get(n, sizeof(float));
        f->gradients[p] = get(n, sizeof(float));
        f->weights64[p] = get(n, sizeof(double));
        for (size_t i = 0; i < n; i++)
            f->weights64[p][i] = (double)(f->weights[p][i] = scale * fixture_uniform(&f->random));
    }
}

void fixture_close(struct fixture *f)
{
    dp_program_close(&f->program);
    dp_backend_close(&f->backend);
    for (int p = 0; p < DP_GRAPH_PARAMETERS_MAX; p++) {
        free(f->weights[p]);
        free(f->gradients[p]);
        free(f->weights64[p]);
    }
    free(f->batch.labels);
    free(f->batch.offsets);
    free(f->batch.slots);
    free(f->batch.values);
    free(f->batch.keys);
    free(f->batch.dense);
    free(f->output);
}

void fixture_run(struct fixture *f)
{
    struct dp_error err = {0};
    for (int p = 0; p < dp_graph_parameters(f->graph); p++)
        for (size_t i = 0; i < f->floats[p]; i++)
            f->gradients[p][i] = (float)NAN;
    if (dp_program_forward(f->program, &f->batch, (const float *const *)f->weights, &f->loss, f->output,
                           &err) != DP_OK ||
        dp_program_backward(f->program, f->gradients, &err) != DP_OK)
        fail_msg("%s", err.text);
}
