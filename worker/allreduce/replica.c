#include "worker/allreduce/replica.h"

#include "common/base/hash.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"

#include <stdlib.h>

struct replicated {
    const struct dp_parameter *parameter;
    struct dp_optimizer *optimizer;
    size_t rows, row_bytes, at; /* at: of its gradients */
    char *row;                  /* [rows] records */
};

struct dp_replica {
    int parameters;
    size_t floats; /* of all parameters */
    float *sums;
    struct replicated of[DP_GRAPH_PARAMETERS_MAX];
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

enum dp_status dp_replica_new(const struct dp_graph *graph, size_t extra, struct dp_replica **out,
                              struct dp_error *err)
{
    struct dp_replica *replica = calloc(1, sizeof *replica);
    enum dp_status st = replica ? DP_OK : DP_NOMEM;
    for (int p = 0; st == DP_OK && p < dp_graph_parameters(graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(graph, p);
        DP_ASSERT(!parameter->sparse);
        replica->parameters++;
        replica->of[p].at = replica->floats;
        replica->floats += dp_parameter_floats(parameter);
        st = replicated_new(parameter, &replica->of[p], err);
    }
    if (st == DP_OK)
        replica->sums = calloc(replica->floats + extra, sizeof *replica->sums);
    if (!replica || (st == DP_OK && !replica->sums))
        st = dp_fail(err, DP_NOMEM, "no memory for a copy of the parameters");
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
    free(r->sums);
    free(r);
}

static enum dp_status pull(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                           struct dp_error *err)
{
    const struct dp_replica *replica = of;
    size_t dim = replica->of[parameter].parameter->table.dim;
    (void)err;
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * dim, dp_replica_row(replica, parameter, dp_unmix(mixed[i])), dim * sizeof *rows);
    return DP_OK;
}

struct dp_row_source dp_replica_rows(struct dp_replica *replica)
{
    return (struct dp_row_source){.pull = pull, .of = replica};
}

float *dp_replica_sums(const struct dp_replica *replica)
{
    return replica->sums;
}

size_t dp_replica_floats(const struct dp_replica *replica)
{
    return replica->floats;
}

void dp_replica_put(struct dp_replica *replica, int parameter, const float *gradients, float factor)
{
    const struct replicated *of = &replica->of[parameter];
    size_t floats = dp_parameter_floats(of->parameter);
    for (size_t i = 0; i < floats; i++)
        replica->sums[of->at + i] = gradients ? factor * gradients[i] : 0;
}

void dp_replica_apply(struct dp_replica *replica, float rate)
{
    for (int p = 0; p < replica->parameters; p++) {
        const struct replicated *of = &replica->of[p];
        for (size_t i = 0; i < of->rows; i++)
            dp_optimizer_apply(of->optimizer, of->row + i * of->row_bytes,
                               replica->sums + of->at + i * of->parameter->table.dim, rate);
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
