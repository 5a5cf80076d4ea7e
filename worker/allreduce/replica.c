#include "worker/allreduce/replica.h"

#include "common/base/hash.h"
#include "common/model/init.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
#include "worker/compute/pinned.h"

#include <stdlib.h>

struct replicated {
    const struct dp_parameter *parameter;
    struct dp_optimizer *optimizer;
    size_t rows, row_bytes;
    char *row; /* [rows] records */
};

struct dp_replica {
    const struct dp_backend *backend;
    int parameters;
    size_t floats; /* of all parameters */
    void *weights, *sums;
    struct replicated of[DP_GRAPH_PARAMETERS_MAX];
    const float *shown[DP_GRAPH_PARAMETERS_MAX];
    float *gradients[DP_GRAPH_PARAMETERS_MAX];
};

enum dp_status dp_replica_check(const struct dp_graph *graph, const char *model, struct dp_error *err)
{
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        if (parameter->sparse)
            return dp_fail(err, DP_UNSUPPORTED,
                           "model '%.64s' has the sparse table '%s', and every rank keeps a copy of all "
                           "parameters: only dense models (mlp:784-256-10) train without servers; train "
                           "this one with `downpour run`",
                           model, parameter->table.name);
    }
    return DP_OK;
}

static void show(const struct replicated *of, float *weights)
{
    uint32_t dim = of->parameter->table.dim;
    for (size_t i = 0; i < of->rows; i++)
        memcpy(weights + i * dim, dp_row_weights_const(of->row + i * of->row_bytes), dim * sizeof(float));
}

static enum dp_status replicated_new(const struct dp_parameter *parameter, struct replicated *of,
                                     struct dp_error *err)
{
    const struct dp_table_spec *spec = &parameter->table;
    size_t bytes;
    of->parameter = parameter;
    of->rows = dp_parameter_floats(parameter) / spec->dim;
    of->row_bytes = dp_row_bytes(spec);
    of->row = __builtin_mul_overflow(of->rows, of->row_bytes, &bytes) ? NULL : malloc(bytes);
    if (!of->row)
        return dp_fail(err, DP_NOMEM, "no memory for the %zu rows of parameter %s, which every rank keeps",
                       of->rows, spec->name);
    for (size_t i = 0; i < of->rows; i++)
        dp_init_row(spec, i, of->row + i * of->row_bytes);
    return dp_optimizer_new(spec, DP_FORM_BEST, &of->optimizer, err);
}

static enum dp_status buffers_new(struct dp_replica *replica, size_t extra, struct dp_error *err)
{
    const size_t bytes = replica->floats * sizeof(float);
    enum dp_status st = dp_pinned_new(replica->backend, bytes, &replica->weights, err);
    if (st == DP_OK)
        st = dp_pinned_new(replica->backend, bytes + extra * sizeof(float), &replica->sums, err);
    if (st != DP_OK)
        return st;
    size_t at = 0;
    for (int p = 0; p < replica->parameters; p++) {
        const struct replicated *of = &replica->of[p];
        float *weights = (float *)replica->weights + at;
        replica->shown[p] = weights;
        replica->gradients[p] = (float *)replica->sums + at;
        show(of, weights);
        at += dp_parameter_floats(of->parameter);
    }
    DP_ASSERT(at == replica->floats);
    return DP_OK;
}

enum dp_status dp_replica_new(const struct dp_graph *graph, const struct dp_backend *backend, size_t extra,
                              struct dp_replica **out, struct dp_error *err)
{
    *out = NULL;
    struct dp_replica *replica = calloc(1, sizeof *replica);
    if (!replica)
        return dp_fail(err, DP_NOMEM, "no memory for a copy of the parameters");
    replica->backend = backend;
    enum dp_status st = DP_OK;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        DP_ASSERT(!parameter->sparse);
        replica->parameters++;
        replica->floats += dp_parameter_floats(parameter);
        st = replicated_new(parameter, &replica->of[p], err);
    }
    if (st == DP_OK)
        st = buffers_new(replica, extra, err);
    if (st != DP_OK)
        dp_replica_free(&replica);
    *out = replica;
    return st;
}

void dp_replica_free(struct dp_replica **replica)
{
    struct dp_replica *r = *replica;
    *replica = NULL;
    if (!r)
        return;
    for (int p = 0; p < r->parameters; p++) {
        dp_optimizer_free(&r->of[p].optimizer);
        free(r->of[p].row);
    }
    dp_pinned_free(r->backend, &r->weights);
    dp_pinned_free(r->backend, &r->sums);
    free(r);
}

const float *const *dp_replica_weights(const struct dp_replica *replica)
{
    return replica->shown;
}

float *const *dp_replica_gradients(const struct dp_replica *replica)
{
    return replica->gradients;
}

float *dp_replica_sums(const struct dp_replica *replica)
{
    return replica->sums;
}

size_t dp_replica_floats(const struct dp_replica *replica)
{
    return replica->floats;
}

void dp_replica_scale(struct dp_replica *replica, float factor)
{
    float *sums = replica->sums;
    if (factor == 0)
        memset(sums, 0, replica->floats * sizeof *sums);
    else if (factor != 1)
        for (size_t i = 0; i < replica->floats; i++)
            sums[i] *= factor;
}

void dp_replica_apply(struct dp_replica *replica, float rate)
{
    for (int p = 0; p < replica->parameters; p++) {
        struct replicated *of = &replica->of[p];
        const float *gradients = replica->gradients[p];
        for (size_t i = 0; i < of->rows; i++)
            dp_optimizer_apply(of->optimizer, of->row + i * of->row_bytes,
                               gradients + i * of->parameter->table.dim, rate);
        show(of, (float *)replica->weights + (replica->shown[p] - replica->shown[0]));
    }
}

uint64_t dp_replica_digest(const struct dp_replica *replica)
{
    uint64_t digest = DP_HASH_BEGIN;
    for (int p = 0; p < replica->parameters; p++)
        digest = dp_hash_bytes(digest, replica->of[p].row, replica->of[p].rows * replica->of[p].row_bytes);
    return digest;
}

const float *dp_replica_row(const struct dp_replica *replica, int parameter, uint64_t key)
{
    const struct replicated *of = &replica->of[parameter];
    DP_ASSERT(parameter >= 0 && parameter < replica->parameters);
    return key < of->rows ? dp_row_weights_const(of->row + key * of->row_bytes) : NULL;
}
