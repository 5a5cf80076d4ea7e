/* Graph: the first mistake is said with its shapes; dense parameters are cut into rows. */
#include "tests/lib/test.h"

#include "worker/compute/graph.h"

#include <stdio.h>
#include <string.h>

static const struct dp_init_spec zero = {.kind = DP_INIT_ZERO};

static struct dp_graph *fresh(void)
{
    struct dp_graph *g;
    assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
    return g;
}

/* Ends a graph, expects its check to say so, frees it. */
static void says(struct dp_graph *g, const char *text)
{
    struct dp_error err = {0};
    assert_int_equal(dp_graph_check(g, &err), DP_ARGUMENT);
    if (!strstr(err.text, text))
        fail_msg("'%s' does not say '%s'", err.text, text);
    dp_graph_free(&g);
}

static void wrong_shapes_are_named(void **state)
{
    struct dp_graph *g = fresh();
    int x = dp_graph_matmul(g, dp_graph_input(g, 4), dp_graph_dense(g, "w", 5, 3, zero));
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, x); /* later calls add nothing to the first mistake */
    says(g, "matmul: x [B, 4] times 'w' [5, 3] does not fit");

    g = fresh();
    dp_graph_bias(g, dp_graph_input(g, 4), dp_graph_dense(g, "b", 1, 3, zero));
    says(g, "bias: x [B, 4] plus 'b' [1, 3]");
    g = fresh();
    dp_graph_bias(g, dp_graph_input(g, 4), dp_graph_dense(g, "b", 2, 4, zero));
    says(g, "must be [1, 4]");
    g = fresh();
    x = dp_graph_input(g, 4);
    dp_graph_add(g, x, dp_graph_matmul(g, x, dp_graph_dense(g, "w", 4, 3, zero)));
    says(g, "add: [B, 4] and [B, 3]");
    g = fresh();
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, dp_graph_input(g, 1));
    says(g, "one class");
    g = fresh();
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, dp_graph_input(g, 2));
    says(g, "logistic loss: x [B, 2] must be [B, 1]");
}

static void unused_parts_are_named(void **state)
{
    struct dp_graph *g = fresh();
    says(g, "no loss");
    g = fresh();
    int x = dp_graph_input(g, 1);
    (void)dp_graph_unary(g, DP_OP_RELU, x);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, x);
    says(g, "operation 1 (relu) has no user");
    g = fresh();
    (void)dp_graph_dense(g, "idle", 1, 1, zero);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, dp_graph_input(g, 1));
    says(g, "'idle' is used by no operation");
}

static void parameters_are_checked(void **state)
{
    struct dp_graph *g = fresh();
    (void)dp_graph_sparse(g, dp_graph_group(g), "w", 0, zero);
    says(g, "width 0");
    g = fresh();
    (void)dp_graph_sparse(g, dp_graph_group(g), "w", DP_TABLE_DIM_MAX + 1, zero);
    says(g, "is not 1 .. 65536");
    g = fresh();
    (void)dp_graph_dense(g, "w", 4000000000u, 4000000000u, zero);
    says(g, "shape [4000000000, 4000000000]");
    g = fresh();
    (void)dp_graph_dense(g, "w", 1u << 24, 1u << 24, zero);
    says(g, "281474976710656 weights");
    g = fresh();
    int w = dp_graph_sparse(g, dp_graph_group(g), "no spaces", 1, zero); /* dp_table_check's */
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, dp_graph_gather_sum(g, w, dp_graph_list(g, 0, 0)));
    says(g, "no spaces");
    g = fresh();
    char name[16];
    for (int i = 0; i <= DP_GRAPH_PARAMETERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "w%d", i);
        (void)dp_graph_dense(g, name, 1, 1, zero);
    }
    says(g, "at most 64 parameters");
    g = fresh();
    int x = dp_graph_input(g, 1);
    for (int i = 0; i <= DP_GRAPH_NODES_MAX; i++)
        x = dp_graph_unary(g, DP_OP_RELU, x);
    says(g, "at most 1024 operations");
}

static void dense_parameters_are_cut_into_rows(void **state)
{
    static const struct {
        uint32_t rows, width, block, table_rows;
    } cases[] = {
        {784, 256, 256, 784}, {1, 10, 10, 1},    {1, 1, 1, 1},     {256, 1, 256, 1},
        {257, 1, 136, 2},     {128, 10, 256, 5}, {64, 10, 216, 3}, {4096, 4096, 1024, 16384},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_graph *g = fresh();
        int w = dp_graph_dense(g, "w", cases[i].rows, cases[i].width, zero);
        const struct dp_parameter *p = dp_graph_parameter(g, w);
        assert_int_equal(p->table.dim, cases[i].block);
        assert_int_equal(dp_parameter_floats(p) / p->table.dim, cases[i].table_rows);
        dp_graph_free(&g);
    }
    /* The padding is always less than a row, and less than 8 floats for each. */
    for (uint32_t n = 1; n < 600000; n += n < 5000 ? 1 : 997) {
        struct dp_graph *g = fresh();
        const struct dp_parameter *p = dp_graph_parameter(g, dp_graph_dense(g, "w", n, 1, zero));
        size_t floats = dp_parameter_floats(p), rows = floats / p->table.dim;
        assert_true(floats >= n && floats - n < 8 * rows && floats - n < p->table.dim);
        assert_true(p->table.dim <= 1024);
        dp_graph_free(&g);
    }
}

static void optimizer_and_seed_reach_every_table(void **state)
{
    struct dp_graph *g = fresh();
    int w = dp_graph_sparse(g, dp_graph_group(g), "w", 1, zero), b = dp_graph_dense(g, "b", 1, 1, zero);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS,
                  dp_graph_bias(g, dp_graph_gather_sum(g, w, dp_graph_list(g, 0, 0)), b));
    assert_int_equal(dp_graph_check(g, NULL), DP_OK);
    struct dp_optimizer_spec adam = dp_optimizer_defaults(DP_OPT_ADAM);
    adam.l2 = 0.5f;
    dp_graph_add_l2(g, w, 0.25f);
    dp_graph_set_optimizer(g, &adam, 77);
    assert_true(dp_graph_parameter(g, w)->table.optimizer.l2 == 0.75f);
    assert_true(dp_graph_parameter(g, b)->table.optimizer.l2 == 0.5f);
    for (int p = 0; p < dp_graph_parameters(g); p++) {
        assert_int_equal(dp_graph_parameter(g, p)->table.optimizer.kind, DP_OPT_ADAM);
        assert_int_equal(dp_graph_parameter(g, p)->table.seed, 77);
    }
    assert_int_equal(dp_graph_check(g, NULL), DP_OK);
    assert_int_equal(dp_graph_output(g), 1);
    dp_graph_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_shapes_are_named),
        cmocka_unit_test(unused_parts_are_named),
        cmocka_unit_test(parameters_are_checked),
        cmocka_unit_test(dense_parameters_are_cut_into_rows),
        cmocka_unit_test(optimizer_and_seed_reach_every_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
