/* Fixture: a program on a graph with a random batch and random weights, all from one seed. */
#ifndef DP_TESTS_UNIT_WORKER_COMPUTE_FIXTURE_H
#define DP_TESTS_UNIT_WORKER_COMPUTE_FIXTURE_H

#include "worker/compute/program.h"

struct fixture {
    uint64_t seed, random;
    const struct dp_graph *graph;
    struct dp_backend backend;
    struct dp_program *program;
    struct dp_batch_shape worst;
    struct dp_batch batch;
    float *weights[DP_GRAPH_PARAMETERS_MAX], *gradients[DP_GRAPH_PARAMETERS_MAX];
    double *weights64[DP_GRAPH_PARAMETERS_MAX];
    size_t floats[DP_GRAPH_PARAMETERS_MAX]; /* of each, in this batch */
    float loss;
    float *output;
};

/* Takes over the backend. The batch has `examples` examples; room is for twice as many. Weights are uniform
 * in [-scale, scale). */
void fixture_open(struct fixture *f, const struct dp_graph *graph, struct dp_backend backend,
                  uint32_t examples, float scale, uint64_t seed);
void fixture_close(struct fixture *f);
/* forward and backward, which must succeed. The gradients' memory is full of NaN before. */
void fixture_run(struct fixture *f);

uint64_t fixture_random(uint64_t *state);
/* [-1, 1) */
float fixture_uniform(uint64_t *state);

#endif
