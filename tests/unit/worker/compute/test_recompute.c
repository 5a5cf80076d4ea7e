/* Values that are not kept: equal bits, less memory. Dropout: a function of the minibatch's number alone, the same in
 * both directions, and nothing in evaluation. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "worker/compute/models/model.h"
#include "worker/compute/reuse.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS 12

static const struct dp_init_spec zero = {.kind = DP_INIT_ZERO};

static int matmul(struct dp_graph *g, int x, int number, uint32_t rows, uint32_t width)
{
    char name[16];
    (void)snprintf(name, sizeof name, "w%d", number);
    return dp_graph_matmul(g, x, dp_graph_dense(g, name, rows, width, zero));
}

/* Layers of every kind that may be recomputed, residuals among them. Seed 0: all is kept; 1: each layer's last value
 * is kept, what is inside a layer is not; else at random. */
static struct dp_graph *deep(uint64_t seed, float dropout)
{
    bool layer_end[DP_GRAPH_NODES_MAX] = {false};
    struct dp_graph *g;
    uint64_t random = seed;
    assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
    int words = dp_graph_group(g), list = dp_graph_list(g, words, 3);
    int rows = dp_graph_sparse(g, words, "rows", 4, zero);
    int last = dp_graph_gather(g, rows, list), before = last;
    for (int layer = 0; layer < LAYERS; layer++) {
        static const enum dp_op ops[] = {DP_OP_RELU, DP_OP_SIGMOID, DP_OP_TANH};
        int x = matmul(g, last, layer, 12, 12);
        int y = dp_graph_dropout(g, dp_graph_unary(g, ops[layer % 3], x), dropout);
        int halves[2] = {dp_graph_slice(g, y, 6, 6), dp_graph_slice(g, x, 0, 6)};
        int z = dp_graph_add(g, dp_graph_concat(g, halves, 2), dp_graph_multiply(g, before, y));
        before = last;
        last = z;
        layer_end[z] = true;
    }
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS,
                  dp_graph_add(g, matmul(g, last, LAYERS, 12, 1), dp_graph_dot(g, last, before)));
    for (int i = 0; seed > 0 && i < dp_graph_nodes(g) - 1; i++)
        if (seed == 1 ? !layer_end[i] : fixture_random(&random) % 3 != 0)
            dp_graph_recompute(g, i);
    return g;
}

static struct dp_backend cpu(void)
{
    struct dp_backend backend;
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    return backend;
}

static void equal_bits_and_less_memory(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct dp_graph *kept = deep(0, 0.3f), *recomputed = deep(seed, 0.3f);
        struct fixture a, b;
        fixture_open(&a, kept, cpu(), 9, 1, seed);
        fixture_open(&b, recomputed, cpu(), 9, 1, seed);
        for (int step = 0; step < 2; step++) {
            a.batch.number = b.batch.number = (uint64_t)step;
            fixture_run(&a);
            fixture_run(&b);
            assert_true(a.loss == b.loss);
            for (int p = 0; p < dp_graph_parameters(kept); p++)
                assert_memory_equal(a.gradients[p], b.gradients[p], a.floats[p] * sizeof(float));
        }
        if (seed == 1) {
            print_message("layers recomputed: %zu bytes instead of %zu\n", dp_program_bytes(b.program),
                          dp_program_bytes(a.program));
            assert_true(dp_program_bytes(b.program) < dp_program_bytes(a.program));
        }
        fixture_close(&a);
        fixture_close(&b);
        dp_graph_free(&kept);
        dp_graph_free(&recomputed);
    }
}

/* No two values that are needed at one time share a buffer: the lives of a plan, step by step. */
static void nothing_that_lives_is_overwritten(void **state)
{
    struct dp_graph *g = deep(1, 0);
    struct dp_reuse reuse;
    dp_reuse_plan(g, &reuse);
    assert_in_range(reuse.buffers, 2, 12); /* about one layer's values */
    for (int i = 0; i < dp_graph_nodes(g) - 1; i++) {
        const struct dp_node *node = dp_graph_node(g, i);
        if (!node->recomputed)
            continue;
        assert_true(reuse.buffer_of[i] >= 0 && reuse.width[reuse.buffer_of[i]] >= node->width);
        for (int k = 0; k < node->inputs; k++)
            assert_int_not_equal(reuse.buffer_of[i], reuse.buffer_of[node->input[k]]);
    }
    dp_graph_free(&g);
}

static struct dp_graph *dropped(float rate)
{
    struct dp_graph *g;
    assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
    int x = dp_graph_bias(g, dp_graph_input(g, 500), dp_graph_dense(g, "b", 1, 500, zero));
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, dp_graph_dropout(g, x, rate), 0, 500, 1));
    return g;
}

/* The gradient of a bias is 0 where its column is dropped in every example: with one example it shows the mask. */
static void mask_is_of_the_minibatch(void **state)
{
    struct dp_graph *g = dropped(0.25f);
    struct fixture f;
    float first[500];
    fixture_open(&f, g, cpu(), 1, 1, 3);
    uint32_t dropped_first = 0, same_as_next = 0;
    fixture_run(&f);
    memcpy(first, f.gradients[0], sizeof first);
    for (int c = 0; c < 500; c++)
        dropped_first += first[c] == 0;
    assert_in_range(dropped_first, 90, 160); /* of 125 on average */
    fixture_run(&f);
    assert_memory_equal(first, f.gradients[0], sizeof first);
    f.batch.number = 1;
    fixture_run(&f);
    for (int c = 0; c < 500; c++)
        same_as_next += (first[c] == 0) == (f.gradients[0][c] == 0);
    assert_in_range(same_as_next, 250, 400); /* 312 on average */
    fixture_close(&f);
    dp_graph_free(&g);
}

static void evaluation_drops_nothing(void **state)
{
    struct dp_graph *with = dropped(0.5f), *without = dropped(0);
    struct fixture a, b;
    struct dp_error err = {0};
    fixture_open(&a, with, cpu(), 7, 1, 4);
    fixture_open(&b, without, cpu(), 7, 1, 4);
    fixture_run(&a);
    fixture_run(&b);
    assert_true(a.loss != b.loss);
    dp_program_evaluate(a.program, true);
    assert_int_equal(
        dp_program_forward(a.program, &a.batch, (const float *const *)a.weights, &a.loss, a.output, &err),
        DP_OK);
    assert_true(a.loss == b.loss);
    assert_memory_equal(a.output, b.output, 7 * sizeof(float));
    dp_program_evaluate(a.program, false);
    fixture_run(&a);
    assert_true(a.loss != b.loss);
    fixture_close(&a);
    fixture_close(&b);
    dp_graph_free(&with);
    dp_graph_free(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_bits_and_less_memory),
        cmocka_unit_test(nothing_that_lives_is_overwritten),
        cmocka_unit_test(mask_is_of_the_minibatch),
        cmocka_unit_test(evaluation_drops_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
