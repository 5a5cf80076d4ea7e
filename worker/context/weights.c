#include "worker/context/weights.h"

#include "common/base/memory.h"
#include "common/model/mix.h"
#include "worker/compute/pinned.h"

#include <stdlib.h>
#include <string.h>

/* One parameter's buffers. */
struct weights_held {
    bool sparse;
    uint32_t group;       /* sparse */
    uint32_t width;       /* floats a key */
    size_t floats;        /* dense */
    float *local;         /* what the pull writes; with several batches: the local copy */
    float *gathered;      /* sparse, several batches: rows of the batch of the last `of` */
    struct dp_keys *keys; /* dense: its blocks */
};

/* The keys of one group, of all batches of a fetch. */
struct united {
    uint32_t distinct_max; /* of one batch */
    struct dp_keys *keys;
    uint64_t *merged; /* several batches: the union of their keys */
    uint64_t *spare;  /* the other side of a merge */
    size_t merged_len;
    uint32_t *place; /* the index of key k of the current batch in the union */
};

struct dp_weights {
    struct dp_client_table *const *tables;
    const struct dp_backend *backend;   /* or NULL */
    const struct dp_row_source *source; /* or NULL */
    int parameters;
    uint32_t batches_max, groups;
    bool dense_lent;
    struct weights_held held[DP_GRAPH_PARAMETERS_MAX];
    const float *shown[DP_GRAPH_PARAMETERS_MAX];
    struct dp_pull_part parts[DP_GRAPH_PARAMETERS_MAX];
    struct united united[DP_BATCH_GROUPS_MAX];
    struct dp_pulled_at *pulled_at;

    struct dp_batch *const *batches;
    uint32_t count;
    uint32_t at; /* the batch of the last `of` */
};

/* a * b * size zero-filled bytes, or NULL. */
static void *block_of(size_t a, size_t b, size_t size)
{
    size_t n;
    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, size, &n))
        return NULL;
    return dp_alloc_aligned(n);
}

/* Rows of `width` floats that a device may copy from, zero-filled; or NULL. */
static float *rows_of(const struct dp_backend *backend, size_t rows, size_t width)
{
    size_t n;
    void *block;
    if (__builtin_mul_overflow(rows, width, &n) || __builtin_mul_overflow(n, sizeof(float), &n) ||
        dp_pinned_new(backend, n, &block, NULL) != DP_OK)
        return NULL;
    return block;
}

static void rows_free(const struct dp_backend *backend, float *rows)
{
    void *block = rows;
    dp_pinned_free(backend, &block);
}

enum dp_status dp_weights_block_keys(const struct dp_parameter *parameter, struct dp_keys **out,
                                     struct dp_error *err)
{
    size_t blocks = dp_parameter_floats(parameter) / parameter->table.dim;
    enum dp_status st = dp_keys_new(out, err);
    if (st != DP_OK)
        return st;
    uint64_t *numbers = calloc(blocks, sizeof *numbers);
    if (!numbers)
        return dp_fail(err, DP_NOMEM, "no memory for %zu block numbers", blocks);
    for (size_t i = 0; i < blocks; i++)
        numbers[i] = i;
    st = dp_keys_set(*out, numbers, blocks, err);
    free(numbers);
    return st;
}

static enum dp_status dense_new(const struct dp_weights *weights, struct weights_held *held,
                                const struct dp_parameter *parameter, struct dp_error *err)
{
    held->local = rows_of(weights->backend, held->floats, 1);
    return held->local ? dp_weights_block_keys(parameter, &held->keys, err)
                       : dp_fail(err, DP_NOMEM, "no memory for the %zu floats of parameter %s", held->floats,
                                 parameter->table.name);
}

static enum dp_status sparse_new(struct dp_weights *weights, struct weights_held *held,
                                 const struct dp_parameter *parameter, struct dp_error *err)
{
    uint32_t distinct_max = weights->united[held->group].distinct_max;
    size_t keys = (size_t)distinct_max * weights->batches_max;
    bool several = weights->batches_max > 1;
    held->local =
        several ? block_of(keys, held->width, sizeof(float)) : rows_of(weights->backend, keys, held->width);
    if (held->local && several)
        held->gathered = rows_of(weights->backend, distinct_max, held->width);
    if (!held->local || (several && !held->gathered))
        return dp_fail(err, DP_NOMEM,
                       "no memory for %zu rows of parameter %s: fetch less often or take smaller "
                       "minibatches",
                       keys, parameter->table.name);
    return DP_OK;
}

static enum dp_status held_new(struct dp_weights *weights, const struct dp_weights_options *options,
                               struct dp_error *err)
{
    for (int p = 0; p < weights->parameters; p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(options->graph, p);
        struct weights_held *held = &weights->held[p];
        held->sparse = parameter->sparse;
        held->group = parameter->group;
        held->width = parameter->table.dim;
        held->floats = parameter->sparse ? 0 : dp_parameter_floats(parameter);
        enum dp_status st = DP_OK;
        if (parameter->sparse)
            st = sparse_new(weights, held, parameter, err);
        else if (options->dense_of)
            held->local = options->dense_of->held[p].local;
        else
            st = dense_new(weights, held, parameter, err);
        if (st != DP_OK)
            return st;
        weights->shown[p] = held->gathered ? held->gathered : held->local;
    }
    return DP_OK;
}

static enum dp_status united_new(struct united *united, uint32_t distinct_max, uint32_t batches_max,
                                 struct dp_error *err)
{
    united->distinct_max = distinct_max;
    enum dp_status st = dp_keys_new(&united->keys, err);
    if (st != DP_OK || batches_max == 1)
        return st;
    united->merged = block_of(distinct_max, batches_max, sizeof *united->merged);
    united->spare = block_of(distinct_max, batches_max, sizeof *united->spare);
    united->place = block_of(distinct_max, 1, sizeof *united->place);
    if (!united->merged || !united->spare || !united->place)
        return dp_fail(err, DP_NOMEM, "no memory for the keys of %u minibatches", batches_max);
    return DP_OK;
}

enum dp_status dp_weights_new(const struct dp_weights_options *options, struct dp_weights **out,
                              struct dp_error *err)
{
    *out = NULL;
    struct dp_weights *weights = calloc(1, sizeof *weights);
    if (!weights)
        return dp_fail(err, DP_NOMEM, "no memory for the weights of a minibatch");
    weights->tables = options->tables;
    weights->backend = options->backend;
    weights->source = options->source;
    weights->parameters = dp_graph_parameters(options->graph);
    weights->groups = options->worst->groups;
    weights->batches_max = options->batches_max;
    weights->dense_lent = options->dense_of != NULL;

    enum dp_status st = DP_OK;
    for (uint32_t g = 0; st == DP_OK && g < weights->groups; g++)
        st = united_new(&weights->united[g], dp_batch_distinct_max(options->worst, g), options->batches_max,
                        err);
    if (st == DP_OK)
        st = held_new(weights, options, err);
    if (st != DP_OK)
        goto done;
    weights->pulled_at = calloc(options->shards, sizeof *weights->pulled_at);
    if (!weights->pulled_at)
        st = dp_fail(err, DP_NOMEM, "no memory for the figures of %u shards", options->shards);
done:
    if (st != DP_OK)
        dp_weights_free(&weights);
    *out = weights;
    return st;
}

void dp_weights_free(struct dp_weights **weights)
{
    struct dp_weights *w = *weights;
    *weights = NULL;
    if (!w)
        return;
    for (int p = 0; p < w->parameters; p++) {
        struct weights_held *held = &w->held[p];
        if (held->sparse && w->batches_max > 1)
            free(held->local);
        else if (held->sparse || !w->dense_lent)
            rows_free(w->backend, held->local);
        rows_free(w->backend, held->gathered);
        dp_keys_free(&w->held[p].keys);
    }
    for (uint32_t g = 0; g < w->groups; g++) {
        dp_keys_free(&w->united[g].keys);
        free(w->united[g].merged);
        free(w->united[g].spare);
        free(w->united[g].place);
    }
    free(w->pulled_at);
    free(w);
}

/* Writes the union of two ascending lists to out, and returns its length. */
static size_t merge(const uint64_t *a, size_t a_len, const uint64_t *b, size_t b_len, uint64_t *out)
{
    size_t i = 0, j = 0, n = 0;
    while (i < a_len && j < b_len) {
        uint64_t x = a[i], y = b[j];
        out[n++] = x < y ? x : y;
        i += x <= y;
        j += y <= x;
    }
    memcpy(out + n, a + i, (a_len - i) * sizeof *out);
    n += a_len - i;
    memcpy(out + n, b + j, (b_len - j) * sizeof *out);
    return n + b_len - j;
}

static enum dp_status unite(struct united *united, uint32_t group, struct dp_batch *const *batches,
                            uint32_t count, struct dp_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        DP_ASSERT(batches[i]->group[group].distinct <= united->distinct_max);
    if (!united->merged)
        return dp_keys_lend(united->keys, batches[0]->group[group].keys, batches[0]->group[group].distinct,
                            err);
    united->merged_len = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct dp_batch_group *of = &batches[i]->group[group];
        united->merged_len = merge(united->merged, united->merged_len, of->keys, of->distinct, united->spare);
        uint64_t *swap = united->merged;
        united->merged = united->spare;
        united->spare = swap;
    }
    return dp_keys_lend(united->keys, united->merged, united->merged_len, err);
}

enum dp_status dp_weights_take(struct dp_weights *weights, struct dp_batch *const *batches, uint32_t count,
                               struct dp_error *err)
{
    DP_ASSERT(count > 0 && count <= weights->batches_max);
    weights->batches = batches;
    weights->count = count;
    enum dp_status st = DP_OK;
    for (uint32_t g = 0; st == DP_OK && g < weights->groups; g++)
        st = unite(&weights->united[g], g, batches, count, err);
    return st;
}

/* The rows of the source: those of a dense parameter are its blocks, in order. */
static enum dp_status take_from_source(const struct dp_weights *weights, const struct dp_pull_part *part,
                                       int p, struct dp_error *err)
{
    const struct dp_row_source *source = weights->source;
    const struct weights_held *held = &weights->held[p];
    size_t n = dp_keys_count(part->keys);
    enum dp_status st = DP_OK;
    if (held->sparse)
        return source->pull(source->of, p, dp_keys_mixed(part->keys), n, part->weights, err);
    for (uint64_t i = 0; st == DP_OK && i < n; i++) {
        uint64_t mixed = dp_mix(i);
        st = source->pull(source->of, p, &mixed, 1, part->weights + i * held->width, err);
    }
    return st;
}

enum dp_status dp_weights_issue(struct dp_weights *weights, struct dp_client *client,
                                enum dp_weights_which which, const uint64_t *step, uint32_t timeout_ms,
                                struct dp_ticket *ticket, struct dp_error *err)
{
    *ticket = (struct dp_ticket){0};
    uint32_t parts = 0;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < weights->parameters; p++) {
        const struct weights_held *held = &weights->held[p];
        if (held->sparse ? which == DP_WEIGHTS_DENSE : weights->dense_lent || which == DP_WEIGHTS_SPARSE)
            continue;
        weights->parts[parts++] =
            (struct dp_pull_part){.table = weights->tables[p],
                                  .keys = held->sparse ? weights->united[held->group].keys : held->keys,
                                  .weights = held->local};
        if (weights->source)
            st = take_from_source(weights, &weights->parts[parts - 1], p, err);
    }
    if (parts == 0 || weights->source)
        return st;
    return step ? dp_client_pull_step(client, *step, weights->parts, parts, weights->pulled_at, timeout_ms,
                                      ticket, err)
                : dp_client_pull(client, weights->parts, parts, weights->pulled_at, timeout_ms, ticket, err);
}

const struct dp_pulled_at *dp_weights_pulled_at(const struct dp_weights *weights)
{
    return weights->pulled_at;
}

/* Finds the batch's keys in the union: both ascend, so one pass finds all. */
static void find_places(const uint64_t *united, const struct dp_batch_group *group, uint32_t *place)
{
    size_t at = 0;
    for (uint32_t k = 0; k < group->distinct; k++) {
        while (united[at] < group->keys[k])
            at++;
        place[k] = (uint32_t)at;
    }
}

const float *const *dp_weights_of(struct dp_weights *weights, uint32_t i)
{
    DP_ASSERT(i < weights->count);
    weights->at = i;
    if (weights->batches_max == 1)
        return weights->shown;
    const struct dp_batch *batch = weights->batches[i];
    for (uint32_t g = 0; g < weights->groups; g++)
        find_places(weights->united[g].merged, &batch->group[g], weights->united[g].place);
    for (int p = 0; p < weights->parameters; p++) {
        const struct weights_held *held = &weights->held[p];
        if (!held->sparse)
            continue;
        size_t width = held->width;
        const uint32_t *place = weights->united[held->group].place;
        for (uint32_t k = 0; k < batch->group[held->group].distinct; k++)
            memcpy(held->gathered + k * width, held->local + place[k] * width, width * sizeof(float));
    }
    return weights->shown;
}

static void descend(float *w, const float *g, size_t n, float rate)
{
    for (size_t i = 0; i < n; i++)
        w[i] -= rate * g[i];
}

void dp_weights_step(struct dp_weights *weights, float rate, float *const *gradients)
{
    for (int p = 0; p < weights->parameters; p++) {
        struct weights_held *held = &weights->held[p];
        if (!held->sparse) {
            descend(held->local, gradients[p], held->floats, rate);
            continue;
        }
        size_t width = held->width;
        DP_ASSERT(weights->batches_max > 1); /* with one batch a fetch there is nothing to step to */
        const uint32_t *place = weights->united[held->group].place;
        for (uint32_t k = 0; k < weights->batches[weights->at]->group[held->group].distinct; k++)
            descend(held->local + place[k] * width, gradients[p] + k * width, width, rate);
    }
}

float *dp_weights_local(struct dp_weights *weights, int parameter)
{
    return weights->held[parameter].local;
}

const uint64_t *dp_weights_keys(const struct dp_weights *weights, uint32_t group, size_t *n)
{
    *n = dp_keys_distinct(weights->united[group].keys);
    return dp_keys_mixed(weights->united[group].keys);
}

/* ---- views */

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

static void descend_shared(float *w, const float *g, size_t n, float rate)
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
        descend_shared(viewed->shared, gradients[p], viewed->floats, rate);
        for (uint32_t k = 0; k < keys; k++)
            descend_shared(viewed->shared + place[k] * width, gradients[p] + k * width, width, rate);
    }
}
