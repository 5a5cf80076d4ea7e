#include "worker/compute/first_step.h"

#include "worker/compute/pinned.h"
#include "worker/compute/program_inner.h"

#include <stdlib.h>
#include <string.h>

/* Everything that the step reads (weights, labels, columns, slots, values) is one block of zeros, and all
 * gradients are written to one place that is never read. Both are pinned, since a copy of other memory has no
 * deadline. */
struct zeros {
    struct dp_batch batch;
    uint32_t *offsets; /* of all lists, one after the other */
    void *read, *written;
    const float *weights[DP_GRAPH_PARAMETERS_MAX];
    float *gradients[DP_GRAPH_PARAMETERS_MAX];
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The lists of a data set that is smaller than a minibatch have space only for its own examples. */
static uint32_t examples_of(const struct dp_batch_shape *worst)
{
    uint32_t examples = worst->examples;
    for (uint32_t l = 0; l < worst->lists; l++) {
        const struct dp_list_shape *list = &worst->list[l];
        if (list->each && list->entries / list->each < examples)
            examples = list->entries / list->each;
    }
    return examples;
}

static size_t parameter_bytes(const struct dp_program *program, int p)
{
    const struct dp_parameter *parameter = dp_graph_parameter(program->graph, p);
    size_t floats = parameter->sparse
                        ? (size_t)dp_batch_distinct_max(&program->worst, parameter->group) * parameter->width
                        : dp_parameter_floats(parameter);
    return floats * sizeof(float);
}

static enum dp_status reserve(struct zeros *z, const struct dp_program *program, struct dp_error *err)
{
    const struct dp_batch_shape *worst = &program->worst;
    size_t written = 0;
    for (int p = 0; p < dp_graph_parameters(program->graph); p++)
        written = larger(written, parameter_bytes(program, p));
    size_t read =
        larger(written, (size_t)worst->examples * (dp_graph_columns(program->graph) + 1) * sizeof(float));
    for (uint32_t l = 0; l < worst->lists; l++)
        read = larger(read, worst->list[l].entries * sizeof(float));
    enum dp_status st = dp_pinned_new(&program->backend, read, &z->read, err);
    if (st == DP_OK) {
        memset(z->read, 0, read);
        st = dp_pinned_new(&program->backend, written, &z->written, err);
    }
    z->offsets = calloc(((size_t)z->batch.examples + 1) * (worst->lists + 1), sizeof *z->offsets);
    if (st == DP_OK && !z->offsets)
        st = dp_fail(err, DP_NOMEM, "no memory for the lists of %u examples", (unsigned)z->batch.examples);
    return st;
}

static void fill(struct zeros *z, const struct dp_program *program)
{
    const struct dp_batch_shape *worst = &program->worst;
    struct dp_batch *batch = &z->batch;
    batch->labels = z->read;
    batch->width = dp_graph_columns(program->graph);
    batch->dense = batch->width ? z->read : NULL;
    for (uint32_t g = 0; g < worst->groups; g++)
        batch->group[g].distinct = dp_batch_distinct_max(worst, g);
    for (uint32_t l = 0; l < worst->lists; l++) {
        const struct dp_list_shape *list = &worst->list[l];
        uint64_t entries = list->each ? (uint64_t)list->each * batch->examples : list->entries;
        uint32_t *offsets = z->offsets + (size_t)l * (batch->examples + 1);
        for (uint32_t i = 0; i <= batch->examples; i++)
            offsets[i] = (uint32_t)(entries * i / batch->examples);
        batch->list[l] = (struct dp_batch_list){.offsets = offsets, .slots = z->read, .values = z->read};
    }
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        z->weights[p] = z->read;
        z->gradients[p] = z->written;
    }
}

enum dp_status dp_first_step(struct dp_program *program, struct dp_error *err)
{
    struct zeros z = {.batch.examples = examples_of(&program->worst)};
    float loss;
    DP_ASSERT(program->under_way == 0 && !program->evaluates);
    if (!program->backend.ops->loads_at_first_use || z.batch.examples == 0)
        return DP_OK;
    enum dp_status st = reserve(&z, program, err);
    if (st != DP_OK)
        goto done;
    fill(&z, program);
    st = dp_program_start(program, &z.batch, z.weights, z.gradients, err);
    if (st == DP_OK)
        st = dp_program_finish(program, &loss, NULL, err);
    /* The next step is the first one again, in the first slot. */
    dp_program_drain(program);
done:
    free(z.offsets);
    dp_pinned_free(&program->backend, &z.written);
    dp_pinned_free(&program->backend, &z.read);
    return st == DP_OK ? st : dp_wrap(err, st, "the first step, of zeros, on the device");
}
