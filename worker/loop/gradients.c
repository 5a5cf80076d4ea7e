#include "worker/loop/gradients.h"

#include "common/model/mix.h"
#include "worker/compute/pinned.h"

#include <stdlib.h>
#include <string.h>

/* One parameter's buffers. */
struct summed {
    bool sparse;
    uint32_t group; /* sparse */
    uint32_t width; /* floats a key */
    size_t floats;  /* dense */
    float *sum;     /* dense: the sum; sparse: rows of all batches, one after the other, or united */
    float *later;   /* dense, several batches: output for every batch but the first of a sum; united: for
                             every batch */
    struct dp_keys *keys; /* dense: its blocks */
};

/* The keys of one group, of all batches of a push. */
struct gathered {
    uint32_t distinct_max; /* of one batch */
    struct dp_keys *keys;
    uint64_t *user; /* several batches, not united: keys so far, unmixed */
    size_t keys_len;
};

struct dp_gradients {
    struct dp_client_table *const *tables;
    const struct dp_backend *backend; /* or NULL */
    int parameters;
    uint32_t shards, batches_max, groups;
    bool united;
    struct summed summed[DP_GRAPH_PARAMETERS_MAX];
    float *written[DP_GRAPH_PARAMETERS_MAX];
    struct dp_push_part parts[DP_GRAPH_PARAMETERS_MAX];
    struct gathered gathered[DP_BATCH_GROUPS_MAX];
    struct dp_pulled_at *pulled_at;
    const struct dp_batch *batch; /* between next and add; with one batch until the push */
    uint32_t count;               /* batches in the sum */
};

/* a * b floats that a device may copy into, zero-filled; or NULL. */
static float *floats_of(const struct dp_backend *backend, size_t a, size_t b)
{
    size_t n;
    void *block;
    if (__builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, sizeof(float), &n) ||
        dp_pinned_new(backend, n, &block, NULL) != DP_OK)
        return NULL;
    return block;
}

static void floats_free(const struct dp_backend *backend, float *floats)
{
    void *block = floats;
    dp_pinned_free(backend, &block);
}

static enum dp_status summed_new(struct dp_gradients *gradients, const struct dp_parameter *parameter,
                                 struct summed *summed, struct dp_error *err)
{
    bool several = gradients->batches_max > 1;
    summed->sparse = parameter->sparse;
    summed->group = parameter->group;
    summed->width = parameter->table.dim;
    if (parameter->sparse) {
        size_t distinct_max = gradients->gathered[summed->group].distinct_max;
        summed->sum = floats_of(gradients->backend, distinct_max * gradients->batches_max, summed->width);
        if (gradients->united)
            summed->later = floats_of(gradients->backend, distinct_max, summed->width);
    } else {
        summed->floats = dp_parameter_floats(parameter);
        summed->sum = floats_of(gradients->backend, summed->floats, 1);
        summed->later = several ? floats_of(gradients->backend, summed->floats, 1) : NULL;
    }
    if (!summed->sum || ((!summed->sparse || gradients->united) && several && !summed->later))
        return dp_fail(err, DP_NOMEM,
                       "no memory for the gradients of parameter %s: push more often or take "
                       "smaller minibatches",
                       parameter->table.name);
    return parameter->sparse ? DP_OK : dp_weights_block_keys(parameter, &summed->keys, err);
}

static enum dp_status gathered_new(struct gathered *gathered, uint32_t distinct_max,
                                   const struct dp_gradients_options *options, struct dp_error *err)
{
    uint32_t batches_max = options->batches_max;
    gathered->distinct_max = distinct_max;
    enum dp_status st = dp_keys_new(&gathered->keys, err);
    if (st != DP_OK || batches_max == 1 || options->united)
        return st;
    gathered->user = calloc((size_t)distinct_max * batches_max + 1, sizeof *gathered->user);
    return gathered->user ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the keys of a push");
}

enum dp_status dp_gradients_new(const struct dp_gradients_options *options, struct dp_gradients **out,
                                struct dp_error *err)
{
    *out = NULL;
    struct dp_gradients *gradients = calloc(1, sizeof *gradients);
    if (!gradients)
        return dp_fail(err, DP_NOMEM, "no memory for the gradients of a minibatch");
    gradients->tables = options->tables;
    gradients->backend = options->backend;
    gradients->parameters = dp_graph_parameters(options->graph);
    gradients->shards = options->shards;
    gradients->groups = options->worst->groups;
    gradients->batches_max = options->batches_max;
    gradients->united = options->united;
    DP_ASSERT(!options->united || options->batches_max > 1);

    enum dp_status st = DP_OK;
    for (uint32_t g = 0; st == DP_OK && g < gradients->groups; g++)
        st = gathered_new(&gradients->gathered[g], dp_batch_distinct_max(options->worst, g), options, err);
    for (int p = 0; st == DP_OK && p < gradients->parameters; p++)
        st = summed_new(gradients, dp_graph_parameter(options->graph, p), &gradients->summed[p], err);
    if (st != DP_OK)
        goto done;
    gradients->pulled_at = calloc(options->shards, sizeof *gradients->pulled_at);
    if (!gradients->pulled_at)
        st = dp_fail(err, DP_NOMEM, "no memory for the positions of %u shards", options->shards);
done:
    if (st != DP_OK)
        dp_gradients_free(&gradients);
    *out = gradients;
    return st;
}

void dp_gradients_free(struct dp_gradients **gradients)
{
    struct dp_gradients *g = *gradients;
    *gradients = NULL;
    if (!g)
        return;
    for (int p = 0; p < g->parameters; p++) {
        floats_free(g->backend, g->summed[p].sum);
        floats_free(g->backend, g->summed[p].later);
        dp_keys_free(&g->summed[p].keys);
    }
    for (uint32_t i = 0; i < g->groups; i++) {
        dp_keys_free(&g->gathered[i].keys);
        free(g->gathered[i].user);
    }
    free(g->pulled_at);
    free(g);
}

float *const *dp_gradients_next(struct dp_gradients *gradients, const struct dp_batch *batch,
                                const struct dp_pulled_at *pulled_at)
{
    DP_ASSERT(gradients->count < gradients->batches_max);
    if (gradients->count == 0 && !gradients->united) {
        memcpy(gradients->pulled_at, pulled_at, gradients->shards * sizeof *pulled_at);
        for (uint32_t g = 0; g < gradients->groups; g++)
            gradients->gathered[g].keys_len = 0;
    }
    gradients->batch = batch;
    for (int p = 0; p < gradients->parameters; p++) {
        struct summed *summed = &gradients->summed[p];
        if (gradients->united)
            gradients->written[p] = summed->later;
        else if (summed->sparse)
            gradients->written[p] = summed->sum + gradients->gathered[summed->group].keys_len * summed->width;
        else
            gradients->written[p] = gradients->count == 0 ? summed->sum : summed->later;
    }
    return gradients->written;
}

enum dp_status dp_gradients_begin(struct dp_gradients *gradients, const struct dp_weights *weights,
                                  struct dp_error *err)
{
    enum dp_status st = DP_OK;
    DP_ASSERT(gradients->united);
    gradients->count = 0;
    memcpy(gradients->pulled_at, dp_weights_pulled_at(weights),
           gradients->shards * sizeof *gradients->pulled_at);
    for (uint32_t g = 0; st == DP_OK && g < gradients->groups; g++) {
        struct gathered *gathered = &gradients->gathered[g];
        const uint64_t *keys = dp_weights_keys(weights, g, &gathered->keys_len);
        DP_ASSERT(gathered->keys_len <= (size_t)gathered->distinct_max * gradients->batches_max);
        st = dp_keys_lend(gathered->keys, keys, gathered->keys_len, err);
    }
    for (int p = 0; p < gradients->parameters; p++) {
        struct summed *summed = &gradients->summed[p];
        size_t floats =
            summed->sparse ? gradients->gathered[summed->group].keys_len * summed->width : summed->floats;
        memset(summed->sum, 0, floats * sizeof *summed->sum);
    }
    return st;
}

static void add_floats(float *to, const float *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

void dp_gradients_add_at(struct dp_gradients *gradients, const uint32_t *const *place)
{
    DP_ASSERT(gradients->united);
    for (int p = 0; p < gradients->parameters; p++) {
        struct summed *summed = &gradients->summed[p];
        uint32_t keys = summed->sparse ? gradients->batch->group[summed->group].distinct : 0;
        size_t width = summed->width;
        add_floats(summed->sum, summed->later, summed->floats);
        for (uint32_t k = 0; k < keys; k++)
            add_floats(summed->sum + place[summed->group][k] * width, summed->later + k * width, width);
    }
    gradients->count++;
}

void dp_gradients_merge(struct dp_gradients *gradients, const struct dp_gradients *from)
{
    DP_ASSERT(gradients->united && from->united);
    for (int p = 0; from->count > 0 && p < gradients->parameters; p++) {
        struct summed *summed = &gradients->summed[p];
        size_t floats =
            summed->sparse ? gradients->gathered[summed->group].keys_len * summed->width : summed->floats;
        add_floats(summed->sum, from->summed[p].sum, floats);
    }
    gradients->count += from->count;
}

void dp_gradients_add(struct dp_gradients *gradients)
{
    DP_ASSERT(!gradients->united);
    for (int p = 0; gradients->count > 0 && p < gradients->parameters; p++) {
        struct summed *summed = &gradients->summed[p];
        for (size_t i = 0; i < summed->floats; i++)
            summed->sum[i] += summed->later[i];
    }
    for (uint32_t g = 0; g < gradients->groups; g++) {
        struct gathered *gathered = &gradients->gathered[g];
        const struct dp_batch_group *group = &gradients->batch->group[g];
        DP_ASSERT(group->distinct <= gathered->distinct_max);
        for (uint32_t k = 0; gathered->user && k < group->distinct; k++)
            gathered->user[gathered->keys_len + k] = dp_unmix(group->keys[k]);
        gathered->keys_len += group->distinct;
    }
    gradients->count++;
}

enum dp_status dp_gradients_push(struct dp_gradients *gradients, struct dp_client *client,
                                 const struct dp_push_options *options, uint32_t timeout_ms,
                                 struct dp_ticket *ticket, struct dp_error *err)
{
    DP_ASSERT(gradients->count > 0);
    gradients->count = 0;
    enum dp_status st = DP_OK;
    for (uint32_t g = 0; st == DP_OK && !gradients->united && g < gradients->groups; g++) {
        const struct gathered *gathered = &gradients->gathered[g];
        const struct dp_batch_group *group = &gradients->batch->group[g];
        st = gathered->user ? dp_keys_set(gathered->keys, gathered->user, gathered->keys_len, err)
                            : dp_keys_lend(gathered->keys, group->keys, group->distinct, err);
    }
    if (st != DP_OK)
        return st;
    for (int p = 0; p < gradients->parameters; p++) {
        const struct summed *summed = &gradients->summed[p];
        gradients->parts[p] = (struct dp_push_part){
            .table = gradients->tables[p],
            .keys = summed->sparse ? gradients->gathered[summed->group].keys : summed->keys,
            .gradients = summed->sum};
    }
    struct dp_push_options full = *options;
    full.pulled_at = gradients->pulled_at;
    return dp_client_push(client, &full, gradients->parts, (uint32_t)gradients->parameters, timeout_ms,
                          ticket, err);
}

const float *dp_gradients_sum(const struct dp_gradients *gradients, int parameter)
{
    return gradients->summed[parameter].sum;
}

void dp_gradients_drop(struct dp_gradients *gradients)
{
    gradients->count = 0;
}

const uint64_t *dp_gradients_keys(const struct dp_gradients *gradients, uint32_t group, size_t *n)
{
    const struct gathered *gathered = &gradients->gathered[group];
    *n = gathered->keys_len;
    if (gradients->united)
        return dp_keys_mixed(gathered->keys);
    return gathered->user ? gathered->user : gradients->batch->group[group].keys;
}
