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
static void make_list(struct fixture *f, uint32_t l)
{
    const struct dp_list_shape *shape = &f->worst.list[l];
    struct dp_batch_list *list = &f->batch.list[l];
    uint32_t count = 0, room = f->batch.examples * (shape->each ? shape->each : 7);
    list->offsets = get(f->batch.examples + 1, sizeof *list->offsets);
    list->slots = get(room, sizeof *list->slots);
    list->values = get(room, sizeof *list->values);
    for (uint32_t i = 0; i < f->batch.examples; i++) {
        uint32_t entries = shape->each ? shape->each : (uint32_t)(fixture_random(&f->random) % 8);
        for (uint32_t j = 0; j < entries; j++, count++) {
            list->slots[count] =
                (uint32_t)(fixture_random(&f->random) % f->batch.group[shape->group].distinct);
            list->values[count] = fixture_uniform(&f->random);
        }
        list->offsets[i + 1] = count;
    }
}

static void make_entries(struct fixture *f)
{
    for (uint32_t g = 0; g < f->worst.groups; g++) {
        struct dp_batch_group *group = &f->batch.group[g];
        uint32_t most = dp_batch_distinct_max(&f->worst, g);
        group->distinct = 1 + (uint32_t)(fixture_random(&f->random) % (f->seed % 2 ? 12 : 100));
        group->distinct = group->distinct < most ? group->distinct : most;
        group->keys = get(group->distinct, sizeof *group->keys);
        for (uint32_t s = 0; s < group->distinct; s++)
            group->keys[s] = 1000 + 3 * s;
    }
    for (uint32_t l = 0; l < f->worst.lists; l++)
        make_list(f, l);
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
    f->worst = (struct dp_batch_shape){.examples = 2 * examples,
                                       .groups = (uint32_t)dp_graph_groups(graph),
                                       .lists = (uint32_t)dp_graph_lists(graph)};
    for (uint32_t l = 0; l < f->worst.lists; l++) {
        struct dp_graph_list list = dp_graph_list_at(graph, (int)l);
        f->worst.list[l] = (struct dp_list_shape){
            .group = list.group, .entries = (list.each ? 2 * list.each : 14) * examples, .each = list.each};
    }
    if (dp_program_open(graph, &f->backend, &f->worst, &f->program, &err) != DP_OK)
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
        size_t n = parameter->sparse ? (size_t)f->batch.group[parameter->group].distinct * parameter->width
                                     : dp_parameter_floats(parameter);
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
    for (uint32_t l = 0; l < DP_BATCH_LISTS_MAX; l++) {
        free(f->batch.list[l].offsets);
        free(f->batch.list[l].slots);
        free(f->batch.list[l].values);
    }
    for (uint32_t g = 0; g < DP_BATCH_GROUPS_MAX; g++)
        free(f->batch.group[g].keys);
    free(f->batch.dense);
    free(f->output);
}

void fixture_run(struct fixture *f)
{
    struct dp_error err = {0};
    for (int p = 0; p < dp_graph_parameters(f->graph); p++)
        for (size_t i = 0; i < f->floats[p]; i++)
            f->gradients[p][i] = (float)NAN;
    const float *const *weights = (const float *const *)f->weights;
    if (dp_program_forward(f->program, &f->batch, weights, &f->loss, f->output, &err) != DP_OK ||
        dp_program_start(f->program, &f->batch, weights, f->gradients, &err) != DP_OK ||
        dp_program_finish(f->program, &f->loss, NULL, &err) != DP_OK)
        fail_msg("%s", err.text);
}
