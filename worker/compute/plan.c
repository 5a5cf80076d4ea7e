#include "worker/compute/plan.h"

#include "worker/compute/pinned.h"
#include "worker/compute/reuse.h"

#include <inttypes.h>

/* A block that is cut from front to back. Without a base it only counts, so that one function measures and
 * cuts. */
struct arena {
    char *base;
    size_t used;
    bool overflow;
};

static void *take(struct arena *arena, size_t count, size_t each)
{
    size_t bytes, rounded, end;
    if (__builtin_mul_overflow(count, each, &bytes) ||
        __builtin_add_overflow(bytes, DP_PLAN_ALIGN - 1, &rounded) ||
        __builtin_add_overflow(arena->used, rounded / DP_PLAN_ALIGN * DP_PLAN_ALIGN, &end)) {
        arena->overflow = true;
        return NULL;
    }
    void *at = arena->base ? arena->base + arena->used : NULL;
    arena->used = end;
    return at;
}

static float *take_floats(struct arena *arena, size_t rows, size_t width)
{
    size_t n;
    if (__builtin_mul_overflow(rows, width, &n)) {
        arena->overflow = true;
        return NULL;
    }
    return take(arena, n, sizeof(float));
}

static bool on_elements(enum dp_op op)
{
    return op == DP_OP_BIAS || op == DP_OP_RELU || op == DP_OP_SIGMOID || op == DP_OP_TANH ||
           op == DP_OP_DROPOUT;
}

/* Whether an operation's backward pass reads its output. */
static bool keeps_output(enum dp_op op)
{
    return op == DP_OP_INPUT_DENSE || op == DP_OP_RELU || op == DP_OP_SIGMOID || op == DP_OP_TANH;
}

static void count_users(const struct dp_graph *graph, int *users)
{
    for (int i = 0; i < dp_graph_nodes(graph); i++) {
        const struct dp_node *node = dp_graph_node(graph, i);
        for (int k = 0; k < node->inputs; k++)
            users[node->input[k]]++;
    }
}

/* Buffers that recomputed values share. */
static void lay_out_reused(struct dp_plan *plan, struct arena *arena, const struct dp_graph *graph,
                           const struct dp_batch_shape *worst)
{
    struct dp_reuse reuse;
    float *buffers[DP_GRAPH_NODES_MAX];
    dp_reuse_plan(graph, &reuse);
    for (int b = 0; b < reuse.buffers; b++)
        buffers[b] = take_floats(arena, worst->examples, reuse.width[b]);
    for (int i = 0; i < dp_graph_nodes(graph) - 1; i++)
        if (reuse.buffer_of[i] >= 0)
            plan->nodes[i].value = buffers[reuse.buffer_of[i]];
}

static void lay_out_gradient(struct dp_plan *plan, struct arena *arena, const struct dp_graph *graph, int i,
                             bool alone, const struct dp_batch_shape *worst)
{
    const struct dp_node *node = dp_graph_node(graph, i);
    plan->nodes[i].needs_gradient = node->parameter >= 0;
    for (int k = 0; k < node->inputs; k++)
        plan->nodes[i].needs_gradient |= plan->nodes[node->input[k]].needs_gradient;
    if (!plan->nodes[i].needs_gradient)
        return;
    if (alone && plan->nodes[node->input[0]].needs_gradient)
        plan->nodes[i].gradient = plan->nodes[node->input[0]].gradient;
    else
        plan->nodes[i].gradient = take_floats(arena, worst->examples, node->width);
}

static void lay_out_nodes(struct dp_plan *plan, struct arena *arena, const struct dp_graph *graph,
                          const struct dp_batch_shape *worst)
{
    int users[DP_GRAPH_NODES_MAX] = {0};
    count_users(graph, users);
    lay_out_reused(plan, arena, graph, worst);
    for (int i = 0; i < dp_graph_nodes(graph) - 1; i++) {
        const struct dp_node *node = dp_graph_node(graph, i);
        if (node->op == DP_OP_INPUT_DENSE) {
            plan->has_dense = true;
            continue;
        }
        const struct dp_node *x = node->inputs > 0 ? dp_graph_node(graph, node->input[0]) : NULL;
        bool alone = on_elements(node->op) && users[node->input[0]] == 1;
        if (alone && !keeps_output(x->op) && !x->recomputed && !node->recomputed)
            plan->nodes[i].value = plan->nodes[node->input[0]].value;
        else if (!node->recomputed)
            plan->nodes[i].value = take_floats(arena, worst->examples, node->width);
        if (node->op == DP_OP_INTERACTIONS)
            plan->nodes[i].saved =
                take_floats(arena, worst->examples, dp_graph_parameter(graph, node->parameter)->width);
        if (node->op == DP_OP_NEAR)
            plan->nodes[i].saved = take_floats(arena, worst->list[node->list].entries, 1);
        lay_out_gradient(plan, arena, graph, i, alone, worst);
    }
}

/* The length of slot_offsets: the slots of a list's group, plus one. */
static size_t slots_of(const struct dp_batch_shape *worst, uint32_t list)
{
    return (size_t)dp_batch_distinct_max(worst, worst->list[list].group) + 1;
}

/* Counts the arrays of a batch; entries: those of the batch itself, by_slot: those derived from it. */
static void lay_out_batch(struct arena *arena, const struct dp_graph *graph,
                          const struct dp_batch_shape *worst, bool entries, bool by_slot)
{
    if (entries) {
        (void)take_floats(arena, worst->examples, 1); /* labels */
        (void)take_floats(arena, worst->examples, 1); /* weights of examples */
        (void)take_floats(arena, dp_graph_shrunk(graph, worst), 1);
        (void)take_floats(arena, worst->examples, dp_graph_columns(graph));
    }
    for (uint32_t l = 0; l < worst->lists; l++) {
        size_t count = worst->list[l].entries;
        if (entries) {
            (void)take(arena, (size_t)worst->examples + 1, sizeof(uint32_t));
            (void)take(arena, count, sizeof(uint32_t));
            (void)take(arena, count, sizeof(float));
        }
        if (by_slot) {
            (void)take(arena, count, sizeof(uint32_t));
            (void)take(arena, count, sizeof(uint32_t));
            (void)take(arena, slots_of(worst, l), sizeof(uint32_t));
        }
    }
}

/* Copies for a backend that cannot use the caller's memory. */
static void lay_out_copies(struct dp_plan_slot *slot, struct arena *arena, const struct dp_graph *graph,
                           size_t batch_bytes, const struct dp_batch_shape *worst)
{
    slot->batch = take(arena, batch_bytes, 1);
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        size_t rows = parameter->sparse ? dp_batch_distinct_max(worst, parameter->group) : 1;
        size_t width = parameter->sparse ? parameter->width : dp_parameter_floats(parameter);
        slot->parameters[p].weights = take_floats(arena, rows, width);
        slot->parameters[p].gradient = take_floats(arena, rows, width);
    }
}

static void lay_out(struct dp_plan *plan, struct arena *arena, const struct dp_graph *graph,
                    const struct dp_backend_ops *ops, const struct dp_batch_shape *worst)
{
    for (uint32_t s = 0; s < plan->slots; s++) {
        plan->slot[s].loss = take_floats(arena, 1, 1);
        if (!ops->host_memory)
            lay_out_copies(&plan->slot[s], arena, graph, plan->batch_bytes, worst);
    }
    lay_out_nodes(plan, arena, graph, worst);
}

static void lay_out_host(struct dp_plan *plan, struct arena *arena, const struct dp_backend_ops *ops)
{
    for (uint32_t s = 0; s < plan->slots; s++) {
        plan->slot[s].staged = take(arena, plan->batch_bytes, 1);
        if (!ops->host_memory)
            plan->slot[s].host_loss = take_floats(arena, 1, 1);
    }
}

enum dp_status dp_plan_init(struct dp_plan *plan, const struct dp_graph *graph,
                            const struct dp_backend *backend, const struct dp_batch_shape *worst,
                            struct dp_error *err)
{
    const struct dp_backend_ops *ops = backend->ops;
    struct arena device = {0}, host = {0}, batch = {0};
    enum dp_status st = DP_OK;
    *plan = (struct dp_plan){.slots = ops->mark ? DP_BACKEND_SLOTS : 1};
    lay_out_batch(&batch, graph, worst, !ops->host_memory, ops->wants_by_slot);
    plan->batch_bytes = batch.used;
    lay_out(plan, &device, graph, ops, worst);
    lay_out_host(plan, &host, ops);
    if (batch.overflow || device.overflow || host.overflow ||
        __builtin_add_overflow(device.used, host.used, &plan->bytes)) {
        st = dp_fail(err, DP_NOMEM, "buffers are larger than any memory: use a smaller batch or model");
        goto done;
    }
    st = ops->alloc(backend->self, device.used, &plan->block, err);
    if (st != DP_OK)
        goto done;
    device = (struct arena){.base = plan->block};
    lay_out(plan, &device, graph, ops, worst);
    if (host.used > 0) {
        st = dp_pinned_new(backend, host.used, &plan->host_block, err);
        if (st != DP_OK)
            goto done;
        host = (struct arena){.base = plan->host_block};
        lay_out_host(plan, &host, ops);
    }
done:
    if (st != DP_OK) {
        dp_plan_clear(plan, backend);
        st = dp_wrap(err, st, "%s buffers for batches of %" PRIu32 " examples", ops->name, worst->examples);
    }
    return st;
}

void dp_plan_clear(struct dp_plan *plan, const struct dp_backend *backend)
{
    if (plan->block)
        backend->ops->release(backend->self, plan->block);
    dp_pinned_free(backend, &plan->host_block);
    *plan = (struct dp_plan){0};
}
