#include "worker/context/weights_view.h"

#include "common/base/memory.h"

#include <stdlib.h>

/* One parameter: the thread's copy, and the local copy of all threads. */
struct viewed {
    bool sparse;
    uint32_t group; /* sparse */
    size_t width;   /* floats a key */
    size_t floats;  /* dense */
    float *copy;    /* of the rows of the batch, or of a dense parameter */
    float *shared;
};

struct dp_weights_view {
    int parameters;
    uint32_t groups;
    struct viewed viewed[DP_GRAPH_PARAMETERS_MAX];
    const float *shown[DP_GRAPH_PARAMETERS_MAX];
    uint32_t *place[DP_BATCH_GROUPS_MAX];
    const uint32_t *lent[DP_BATCH_GROUPS_MAX];
    const struct dp_batch *batch; /* of the last `at` */
};

static float load(const float *from)
{
    float value;
    __atomic_load(from, &value, __ATOMIC_RELAXED);
    return value;
}

static void store(float *to, float value)
{
    __atomic_store(to, &value, __ATOMIC_RELAXED);
}

/* rows * width * size zero-filled bytes, or NULL. */
static void *block_of(size_t rows, size_t width, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(rows, width, &n) || __builtin_mul_overflow(n, size, &n))
        return NULL;
    return dp_alloc_aligned(n);
}

static enum dp_status viewed_init(struct viewed *viewed, const struct dp_parameter *parameter,
                                  const struct dp_batch_shape *worst, struct dp_error *err)
{
    viewed->sparse = parameter->sparse;
    viewed->group = parameter->group;
    viewed->width = parameter->table.dim;
    viewed->floats = parameter->sparse ? 0 : dp_parameter_floats(parameter);
    viewed->copy = parameter->sparse ? block_of(dp_batch_distinct_max(worst, parameter->group), viewed->width,
                                                sizeof(float))
                                     : block_of(viewed->floats, 1, sizeof(float));
    return viewed->copy ? DP_OK
                        : dp_fail(err, DP_NOMEM,
                                  "no memory for a thread's weights of parameter %s: use fewer threads or "
                                  "take smaller minibatches",
                                  parameter->table.name);
}

enum dp_status dp_weights_view_new(const struct dp_weights_options *options, struct dp_weights_view **out,
                                   struct dp_error *err)
{
    DP_ASSERT(options->batches_max > 1);
    *out = NULL;
    struct dp_weights_view *view = calloc(1, sizeof *view);
    if (!view)
        return dp_fail(err, DP_NOMEM, "no memory for a thread's weights");
    view->parameters = dp_graph_parameters(options->graph);
    view->groups = options->worst->groups;
    enum dp_status st = DP_OK;
    for (uint32_t g = 0; st == DP_OK && g < view->groups; g++) {
        uint32_t distinct_max = dp_batch_distinct_max(options->worst, g);
        view->place[g] = block_of(distinct_max, 1, sizeof *view->place[g]);
        if (!view->place[g])
            st = dp_fail(err, DP_NOMEM, "no memory for a thread's places of %u keys", distinct_max);
    }
    for (int p = 0; st == DP_OK && p < view->parameters; p++) {
        st = viewed_init(&view->viewed[p], dp_graph_parameter(options->graph, p), options->worst, err);
        view->shown[p] = view->viewed[p].copy;
    }
    if (st != DP_OK)
        dp_weights_view_free(&view);
    *out = view;
    return st;
}

void dp_weights_view_free(struct dp_weights_view **view)
{
    struct dp_weights_view *v = *view;
    *view = NULL;
    if (!v)
        return;
    for (int p = 0; p < v->parameters; p++)
        free(v->viewed[p].copy);
    for (uint32_t g = 0; g < v->groups; g++)
        free(v->place[g]);
    free(v);
}

/* Both ascend, and the union has all keys of the batch. */
static void find_places(const uint64_t *united, const struct dp_batch_group *group, uint32_t *place)
{
    size_t at = 0;
    for (uint32_t k = 0; k < group->distinct; k++) {
        while (united[at] < group->keys[k])
            at++;
        place[k] = (uint32_t)at;
    }
}

static void copy_rows(const struct viewed *viewed, const uint32_t *place, uint32_t keys)
{
    size_t width = viewed->width;
    for (uint32_t k = 0; k < keys; k++) {
        const float *from = viewed->shared + place[k] * width;
        for (size_t c = 0; c < width; c++)
            viewed->copy[k * width + c] = load(from + c);
    }
}

const uint32_t *const *dp_weights_view_at(struct dp_weights_view *view, struct dp_weights *weights,
                                          const struct dp_batch *batch)
{
    view->batch = batch;
    for (uint32_t g = 0; g < view->groups; g++) {
        size_t n;
        find_places(dp_weights_keys(weights, g, &n), &batch->group[g], view->place[g]);
        view->lent[g] = view->place[g];
    }
    for (int p = 0; p < view->parameters; p++)
        view->viewed[p].shared = dp_weights_local(weights, p);
    return view->lent;
}

const float *const *dp_weights_view_of(struct dp_weights_view *view)
{
    for (int p = 0; p < view->parameters; p++) {
        const struct viewed *viewed = &view->viewed[p];
        if (viewed->sparse)
            copy_rows(viewed, view->place[viewed->group], view->batch->group[viewed->group].distinct);
        for (size_t i = 0; i < viewed->floats; i++)
            viewed->copy[i] = load(viewed->shared + i);
    }
    return view->shown;
}

static void descend(float *w, const float *g, size_t n, float rate)
{
    for (size_t i = 0; i < n; i++)
        store(w + i, load(w + i) - rate * g[i]);
}

void dp_weights_view_step(struct dp_weights_view *view, float rate, float *const *gradients)
{
    for (int p = 0; p < view->parameters; p++) {
        const struct viewed *viewed = &view->viewed[p];
        size_t width = viewed->width;
        const uint32_t *place = viewed->sparse ? view->place[viewed->group] : NULL;
        uint32_t keys = viewed->sparse ? view->batch->group[viewed->group].distinct : 0;
        descend(viewed->shared, gradients[p], viewed->floats, rate);
        for (uint32_t k = 0; k < keys; k++)
            descend(viewed->shared + place[k] * width, gradients[p] + k * width, width, rate);
    }
}
