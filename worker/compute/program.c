/* One pass of a program.
 *     check the batch -> bind it (or pack it, and copy) -> forward along the tape -> loss, output
 *     backward along the tape -> padding -> gradients
 * Why   The loss's gradient is computed with the loss: softmax is then evaluated once. In the backward
 *       pass, the first user of a node or parameter sets its gradient. The other users add to it, so
 *       nothing is zeroed.
 * Holds When the backward pass reaches a node, its gradient is complete, since the users of a node come
 * later on the tape. */
#include "worker/compute/program_inner.h"

#include "common/model/mix.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

size_t dp_program_bytes(const struct dp_program *program)
{
    return program->plan.bytes;
}

void dp_program_evaluate(struct dp_program *program, bool evaluates)
{
    program->evaluates = evaluates;
}

static const struct dp_node *loss_node(const struct dp_program *program)
{
    return dp_graph_node(program->graph, dp_graph_nodes(program->graph) - 1);
}

/* Entries index into rows: they are checked here, although the data set made them. */
static void check_list(const struct dp_program *program, const struct dp_batch *batch, uint32_t l)
{
    const struct dp_batch_list *list = &batch->list[l];
    const struct dp_list_shape *room = &program->worst.list[l];
    uint32_t entries = list->offsets[batch->examples], most = 0;
    DP_ASSERT(list->offsets[0] == 0 && entries <= room->entries);
    for (uint32_t i = 0; i < batch->examples; i++)
        DP_ASSERT(list->offsets[i] <= list->offsets[i + 1] &&
                  (room->each == 0 || list->offsets[i + 1] - list->offsets[i] == room->each));
    for (uint32_t j = 0; j < entries; j++)
        most = list->slots[j] > most ? list->slots[j] : most;
    DP_ASSERT(entries == 0 || most < batch->group[room->group].distinct);
}

/* Labels index into softmax rows. */
static void check_labels(const struct dp_program *program, const struct dp_batch *batch)
{
    enum dp_op op = loss_node(program)->op;
    uint32_t classes = dp_graph_node(program->graph, dp_graph_output(program->graph))->width;
    for (uint32_t i = 0; i < batch->examples; i++) {
        float label = batch->labels[i];
        DP_ASSERT(op != DP_OP_SOFTMAX_LOSS ||
                  (label >= 0 && label < (float)classes && label == (float)(uint32_t)label));
        DP_ASSERT(op != DP_OP_LOGISTIC_LOSS || (label >= 0 && label <= 1));
    }
}

static void check_batch(const struct dp_program *program, const struct dp_batch *batch,
                        const float *const *weights)
{
    DP_ASSERT(batch->examples > 0 && batch->examples <= program->worst.examples);
    DP_ASSERT(!program->plan.has_dense || (batch->dense && batch->width == dp_graph_columns(program->graph)));
    for (uint32_t g = 0; g < program->worst.groups; g++)
        DP_ASSERT(batch->group[g].distinct <= dp_batch_distinct_max(&program->worst, g));
    for (uint32_t l = 0; l < program->worst.lists; l++)
        check_list(program, batch, l);
    check_labels(program, batch);
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(program->graph, p);
        DP_ASSERT(weights[p] || (parameter->sparse && batch->group[parameter->group].distinct == 0));
    }
}

/* Floats of a parameter in this batch. */
static size_t parameter_floats(const struct dp_program *program, int p)
{
    const struct dp_parameter *parameter = dp_graph_parameter(program->graph, p);
    return parameter->sparse ? (size_t)program->distinct[parameter->group] * parameter->width
                             : dp_parameter_floats(parameter);
}

/* Entries by slot, each slot's in ascending order: a counting sort. */
static void sort_by_slot(const struct dp_entries *e, uint32_t *example_of, uint32_t *by_slot, uint32_t *end)
{
    memset(end, 0, ((size_t)e->distinct + 1) * sizeof *end);
    for (uint32_t i = 0; i < e->examples; i++)
        for (uint32_t j = e->offsets[i]; j < e->offsets[i + 1]; j++)
            example_of[j] = i;
    for (uint32_t j = 0; j < e->count; j++)
        end[e->slots[j]]++;
    for (uint32_t s = 1; s <= e->distinct; s++)
        end[s] += end[s - 1];
    /* Each slot is filled from its end, which moves down to its begin. */
    for (uint32_t j = e->count; j-- > 0;)
        by_slot[--end[e->slots[j]]] = j;
}

/* Reserves the next `count` values of 4 bytes in the packed batch: where the host writes them, and where
 * operations read them. */
static const void *room(struct dp_program *program, size_t count, void **staged)
{
    const struct dp_plan_slot *slot = program->at;
    size_t at = program->packed;
    program->packed += (count * sizeof(uint32_t) + DP_PLAN_ALIGN - 1) / DP_PLAN_ALIGN * DP_PLAN_ALIGN;
    DP_ASSERT(program->packed <= program->plan.batch_bytes);
    *staged = slot->staged + at;
    return program->backend.ops->host_memory ? *staged : slot->batch + at;
}

/* Returns where operations read `count` floats or u32 of the host: in place, or packed if the backend cannot
 * use host memory. */
static const void *pack(struct dp_program *program, const void *host, size_t count)
{
    void *staged;
    if (program->backend.ops->host_memory)
        return host;
    const void *device = room(program, count, &staged);
    if (count > 0)
        memcpy(staged, host, count * sizeof(uint32_t));
    return device;
}

static void bind_list(struct dp_program *program, const struct dp_batch *batch, uint32_t l)
{
    const struct dp_batch_list *list = &batch->list[l];
    struct dp_entries *e = &program->entries[l];
    size_t count = list->offsets[batch->examples];
    *e = (struct dp_entries){.examples = batch->examples,
                             .distinct = batch->group[program->worst.list[l].group].distinct,
                             .count = (uint32_t)count,
                             .offsets = list->offsets,
                             .slots = list->slots};
    if (program->backend.ops->wants_by_slot) {
        void *example_of, *by_slot, *slot_offsets;
        e->example_of = room(program, count, &example_of);
        e->by_slot = room(program, count, &by_slot);
        e->slot_offsets = room(program, (size_t)e->distinct + 1, &slot_offsets);
        sort_by_slot(e, example_of, by_slot, slot_offsets);
    }
    e->offsets = pack(program, list->offsets, (size_t)batch->examples + 1);
    e->slots = pack(program, list->slots, count);
    e->values = pack(program, list->values, count);
}

/* The share of itself by which each factor (of an example), or row (of a parameter with a prior), shrinks. */
static void bind_shrink(struct dp_program *program, const struct dp_batch *batch)
{
    size_t count = 0;
    if (!program->shrink)
        return;
    if (dp_graph_dot_l2(program->graph) > 0)
        for (; count < batch->examples; count++)
            program->shrink[count] = dp_graph_dot_l2(program->graph) / (float)batch->examples;
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        float prior = dp_graph_prior(program->graph, p);
        uint32_t rows = prior > 0 ? program->distinct[dp_graph_parameter(program->graph, p)->group] : 0;
        for (uint32_t i = 0; i < rows; i++)
            program->shrink[count++] = prior;
    }
    program->shrink_bound = pack(program, program->shrink, count);
}

/* The host's part, before the copies, whose time counts as the device's. */
static void bind_batch(struct dp_program *program, const struct dp_batch *batch)
{
    program->examples = batch->examples;
    program->packed = 0;
    program->dropout_seed =
        dp_mix(dp_graph_seed(program->graph) + dp_mix(batch->epoch + dp_mix(batch->number)));
    for (uint32_t g = 0; g < program->worst.groups; g++)
        program->distinct[g] = batch->group[g].distinct;
    for (uint32_t l = 0; l < program->worst.lists; l++)
        bind_list(program, batch, l);
    program->labels = pack(program, batch->labels, batch->examples);
    program->example_weights = batch->weighted ? pack(program, batch->weights, batch->examples) : NULL;
    bind_shrink(program, batch);
    if (program->plan.has_dense)
        program->dense = pack(program, batch->dense, (size_t)batch->examples * batch->width);
}

/* Copies the batch at once, and each parameter from the caller's memory. */
static enum dp_status copy_in(struct dp_program *program, const float *const *weights, struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    const struct dp_plan_slot *slot = program->at;
    enum dp_status st = DP_OK;
    if (!backend->ops->host_memory)
        st = backend->ops->copy_in(backend->self, slot->batch, slot->staged, program->packed, err);
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        size_t n = parameter_floats(program, p);
        program->weights[p] = backend->ops->host_memory ? weights[p] : slot->parameters[p].weights;
        if (st == DP_OK && !backend->ops->host_memory && n > 0)
            st = backend->ops->copy_in(backend->self, slot->parameters[p].weights, weights[p],
                                       n * sizeof(float), err);
    }
    return st;
}

static void mark(const struct dp_program *program, enum dp_stage stage)
{
    if (program->backend.ops->mark)
        program->backend.ops->mark(program->backend.self, stage,
                                   (uint32_t)(program->at - program->plan.slot));
}

void dp_program_gives_up(struct dp_program *program, bool (*asked)(void *of), void *of)
{
    program->asked = program->backend.ops->host_memory ? asked : NULL;
    program->asked_of = of;
}

static bool is_given_up(const struct dp_program *program)
{
    return program->asked && program->asked(program->asked_of);
}

/* Issues the forward pass up to the loss, in the buffers of a slot. */
static enum dp_status issue_forward(struct dp_program *program, uint32_t slot, const struct dp_batch *batch,
                                    const float *const *weights, struct dp_error *err)
{
    check_batch(program, batch, weights);
    program->at = &program->plan.slot[slot];
    bind_batch(program, batch);
    mark(program, DP_STAGE_IN);
    enum dp_status st = copy_in(program, weights, err);
    if (st != DP_OK)
        return st;
    mark(program, DP_STAGE_COMPUTE);
    for (int i = 0; i < dp_graph_nodes(program->graph); i++) {
        if (is_given_up(program))
            return dp_fail(err, DP_STOPPING, "the step is given up");
        dp_forward_node(program, i);
    }
    return DP_OK;
}

/* The priors' part of the gradients, after those of the loss. */
static void add_priors(const struct dp_program *program)
{
    const struct dp_backend *backend = &program->backend;
    const float *shrink = program->shrink_bound;
    if (shrink && dp_graph_dot_l2(program->graph) > 0)
        shrink += program->examples;
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(program->graph, p);
        if (dp_graph_prior(program->graph, p) <= 0)
            continue;
        backend->ops->dot_back(backend->self, program->weights[p], shrink,
                               program->distinct[parameter->group], parameter->width, program->gradients[p],
                               true);
        shrink += program->distinct[parameter->group];
    }
}

/* The backward pass of the step that was issued last. */
static enum dp_status issue_backward(struct dp_program *program, float *const *gradients,
                                     struct dp_error *err)
{
    for (int p = 0; p < dp_graph_parameters(program->graph); p++) {
        if (!gradients[p] && parameter_floats(program, p) > 0)
            return dp_fail(err, DP_ARGUMENT, "there is no buffer for the gradient of '%s'",
                           dp_graph_parameter(program->graph, p)->table.name);
        program->gradients[p] =
            program->backend.ops->host_memory ? gradients[p] : program->at->parameters[p].gradient;
    }
    memset(program->node_written, 0, sizeof program->node_written);
    memset(program->parameter_written, 0, sizeof program->parameter_written);
    memset(program->has_value, 0, sizeof program->has_value);
    program->failed = (struct dp_error){0};
    const struct dp_node *loss = loss_node(program);
    for (int k = 0; k < loss->inputs; k++)
        program->node_written[loss->input[k]] = true;
    for (int i = dp_graph_nodes(program->graph) - 2; i >= 0; i--) {
        if (is_given_up(program))
            return dp_fail(err, DP_STOPPING, "the step is given up");
        if (program->plan.nodes[i].needs_gradient)
            dp_backward_node(program, i);
    }
    add_priors(program);
    if (program->failed.status != DP_OK)
        return dp_fail(err, program->failed.status, "%s", program->failed.text);
    return DP_OK;
}

/* Sets the padding of dense gradients to 0. */
static enum dp_status pad(struct dp_program *program, struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(program->graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(program->graph, p);
        size_t n = parameter_floats(program, p);
        size_t used = parameter->sparse ? n : (size_t)parameter->rows * parameter->width;
        if (n > used)
            st = backend->ops->zero(backend->self, program->gradients[p] + used, (n - used) * sizeof(float),
                                    err);
    }
    return st;
}

/* Copies the gradients that are not in the caller's memory. */
static enum dp_status deliver(struct dp_program *program, float *const *gradients, struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(program->graph); p++) {
        size_t n = parameter_floats(program, p);
        if (!backend->ops->host_memory && n > 0)
            st = backend->ops->copy_out(backend->self, gradients[p], program->gradients[p], n * sizeof(float),
                                        err);
    }
    return st;
}

enum dp_status dp_program_forward(struct dp_program *program, const struct dp_batch *batch,
                                  const float *const *weights, float *loss, float *output,
                                  struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    float *to = NULL;
    DP_ASSERT(program->under_way == 0);
    enum dp_status st = issue_forward(program, 0, batch, weights, err);
    if (st != DP_OK)
        goto done;
    mark(program, DP_STAGE_OUT);
    /* To pinned memory: a copy to the caller's would block the host, without a deadline. */
    to = program->at->host_loss ? program->at->host_loss : &program->loss;
    st = backend->ops->copy_out(backend->self, to, program->at->loss, sizeof *to, err);
    int last = dp_graph_output(program->graph);
    size_t n = (size_t)batch->examples * dp_graph_node(program->graph, last)->width;
    if (st == DP_OK && output)
        st = backend->ops->copy_out(backend->self, output, dp_value_of(program, last), n * sizeof *output,
                                    err);
    if (st == DP_OK)
        st = backend->ops->finish(backend->self, err);
    if (st == DP_OK)
        *loss = *to;
done:
    if (st != DP_OK)
        (void)backend->ops->finish(backend->self, NULL); /* an issued copy may still read lent memory */
    return st;
}

uint32_t dp_program_depth(const struct dp_program *program)
{
    return program->plan.slots;
}

enum dp_status dp_program_start(struct dp_program *program, const struct dp_batch *batch,
                                const float *const *weights, float *const *gradients, struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    DP_ASSERT(program->under_way < program->plan.slots && !program->evaluates);
    uint32_t slot = (program->oldest + program->under_way) % program->plan.slots;
    enum dp_status st = issue_forward(program, slot, batch, weights, err);
    if (st != DP_OK)
        goto done;
    st = issue_backward(program, gradients, err);
    if (st == DP_OK)
        st = pad(program, err);
    if (st != DP_OK)
        goto done;
    mark(program, DP_STAGE_OUT);
    float *loss = program->at->host_loss ? program->at->host_loss : &program->loss;
    st = backend->ops->copy_out(backend->self, loss, program->at->loss, sizeof *loss, err);
    if (st == DP_OK)
        st = deliver(program, gradients, err);
    mark(program, DP_STAGE_END);
done:
    if (st == DP_OK)
        program->under_way++;
    else
        (void)backend->ops->finish(backend->self, NULL);
    return st;
}

bool dp_program_done(const struct dp_program *program)
{
    const struct dp_backend *backend = &program->backend;
    return program->under_way == 0 || !backend->ops->done ||
           backend->ops->done(backend->self, program->oldest);
}

enum dp_status dp_program_finish(struct dp_program *program, float *loss, struct dp_device_times *times,
                                 struct dp_error *err)
{
    const struct dp_backend *backend = &program->backend;
    const struct dp_plan_slot *slot = &program->plan.slot[program->oldest];
    struct dp_device_times spent = {0};
    DP_ASSERT(program->under_way > 0);
    enum dp_status st = backend->ops->wait ? backend->ops->wait(backend->self, program->oldest, &spent, err)
                                           : backend->ops->finish(backend->self, err);
    if (st != DP_OK) {
        dp_program_drain(program);
        return st;
    }
    *loss = slot->host_loss ? *slot->host_loss : program->loss;
    if (times)
        *times = spent;
    program->oldest = (program->oldest + 1) % program->plan.slots;
    program->under_way--;
    return DP_OK;
}

void dp_program_drain(struct dp_program *program)
{
    if (program->under_way > 0)
        (void)program->backend.ops->finish(program->backend.self, NULL);
    program->under_way = program->oldest = 0;
}
