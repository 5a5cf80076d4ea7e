/* Goal    of hands out the batch's rows in the batch's order, and step moves the one local copy.
 * Method  the pull is played by the test: it fills the local copy row by row by key.                     */
#include "common/model/mix.h"
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/context/weights.h"

#include <stdlib.h>

static float value_of(uint64_t key, uint32_t column)
{
    return (float)key + 0.25f * (float)column;
}

static void fill(struct dp_weights *weights, int parameter, uint32_t width)
{
    size_t n;
    const uint64_t *keys = dp_weights_keys(weights, 0, &n);
    float *local = dp_weights_local(weights, parameter);
    for (size_t k = 0; k < n; k++)
        for (uint32_t c = 0; c < width; c++)
            local[k * width + c] = value_of(keys[k], c);
}

static struct dp_weights *weights_new(const struct dp_graph *graph, uint32_t batches_max,
                                      const struct dp_weights *dense_of)
{
    struct dp_client_table *tables[FIX_PARAMETERS] = {NULL};
    const struct dp_batch_shape worst = fixture_worst(5);
    const struct dp_weights_options options = {.graph = graph,
                                               .tables = tables,
                                               .shards = 2,
                                               .worst = &worst,
                                               .batches_max = batches_max,
                                               .dense_of = dense_of};
    struct dp_weights *weights;
    assert_int_equal(dp_weights_new(&options, &weights, NULL), DP_OK);
    return weights;
}

static void test_union(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_weights *weights = weights_new(graph, 3, NULL);
    uint64_t a[] = {2, 5, 9}, b[] = {1, 5, 10, 11, 12}, c[] = {9};
    struct dp_batch batch[3] = {fixture_batch(a, 3), fixture_batch(b, 5), fixture_batch(c, 1)};
    struct dp_batch *batches[3] = {&batch[0], &batch[1], &batch[2]};
    const uint64_t want[] = {1, 2, 5, 9, 10, 11, 12};
    assert_int_equal(dp_weights_take(weights, batches, 3, NULL), DP_OK);
    size_t n;
    const uint64_t *keys = dp_weights_keys(weights, 0, &n);
    assert_int_equal(n, 7);
    assert_memory_equal(keys, want, sizeof want);
    /* A short group after a full one, with an empty batch in it. */
    batch[0].group[0].distinct = 0;
    assert_int_equal(dp_weights_take(weights, batches, 2, NULL), DP_OK);
    keys = dp_weights_keys(weights, 0, &n);
    assert_int_equal(n, 5);
    assert_memory_equal(keys, b, sizeof b);
    dp_weights_free(&weights);
    dp_graph_free(&graph);
}

static void test_rows_of_each_batch(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_weights *weights = weights_new(graph, 2, NULL);
    uint64_t a[] = {2, 5, 9}, b[] = {1, 5, 10, 11};
    struct dp_batch batch[2] = {fixture_batch(a, 3), fixture_batch(b, 4)};
    struct dp_batch *batches[2] = {&batch[0], &batch[1]};
    assert_int_equal(dp_weights_take(weights, batches, 2, NULL), DP_OK);
    fill(weights, FIX_THIN, 1);
    fill(weights, FIX_WIDE, 3);
    for (uint32_t i = 0; i < 2; i++) {
        const float *const *rows = dp_weights_of(weights, i);
        for (uint32_t k = 0; k < batch[i].group[0].distinct; k++) {
            assert_true(rows[FIX_THIN][k] == value_of(batch[i].group[0].keys[k], 0));
            for (uint32_t c = 0; c < 3; c++)
                assert_true(rows[FIX_WIDE][k * 3 + c] == value_of(batch[i].group[0].keys[k], c));
        }
        assert_ptr_equal(rows[FIX_DENSE], dp_weights_local(weights, FIX_DENSE));
    }
    dp_weights_free(&weights);
    dp_graph_free(&graph);
}

static void test_step_moves_shared_rows(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_weights *weights = weights_new(graph, 2, NULL);
    uint64_t a[] = {2, 5, 9}, b[] = {1, 5, 10, 11};
    struct dp_batch batch[2] = {fixture_batch(a, 3), fixture_batch(b, 4)};
    struct dp_batch *batches[2] = {&batch[0], &batch[1]};
    assert_int_equal(dp_weights_take(weights, batches, 2, NULL), DP_OK);
    fill(weights, FIX_THIN, 1);
    fill(weights, FIX_WIDE, 3);
    float *dense = dp_weights_local(weights, FIX_DENSE);
    size_t floats = dp_parameter_floats(dp_graph_parameter(graph, FIX_DENSE));
    float thin_g[] = {1, 2, 4}, wide_g[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    float *dense_g = calloc(floats, sizeof *dense_g);
    dense[1] = 3;
    dense_g[1] = 2;
    float *gradients[FIX_PARAMETERS] = {[FIX_THIN] = thin_g, [FIX_WIDE] = wide_g, [FIX_DENSE] = dense_g};
    (void)dp_weights_of(weights, 0);
    dp_weights_step(weights, 0.5f, gradients);
    const float *const *rows = dp_weights_of(weights, 1);
    assert_true(rows[FIX_THIN][0] == value_of(1, 0)); /* not in the first batch: as pulled */
    assert_true(rows[FIX_THIN][1] == value_of(5, 0) - 1);
    assert_true(rows[FIX_WIDE][3 + 0] == value_of(5, 0) - 2);
    assert_true(rows[FIX_WIDE][3 + 2] == value_of(5, 2) - 3);
    assert_true(rows[FIX_WIDE][6] == value_of(10, 0));
    assert_true(rows[FIX_DENSE][1] == 2);
    free(dense_g);
    dp_weights_free(&weights);
    dp_graph_free(&graph);
}

/* The hot path: keys lent, and what the pull wrote is what is handed out. */
static void test_one_batch_copies_nothing(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_weights *weights = weights_new(graph, 1, NULL);
    struct dp_weights *other = weights_new(graph, 1, weights);
    uint64_t a[] = {2, 5, 9};
    struct dp_batch batch = fixture_batch(a, 3), *batches[1] = {&batch};
    assert_int_equal(dp_weights_take(weights, batches, 1, NULL), DP_OK);
    size_t n;
    assert_ptr_equal(dp_weights_keys(weights, 0, &n), a);
    assert_int_equal(n, 3);
    const float *const *rows = dp_weights_of(weights, 0);
    for (int p = 0; p < FIX_PARAMETERS; p++)
        assert_ptr_equal(rows[p], dp_weights_local(weights, p));
    /* Another's dense parameters, sparse ones of its own. */
    assert_ptr_equal(dp_weights_local(other, FIX_DENSE), dp_weights_local(weights, FIX_DENSE));
    assert_ptr_not_equal(dp_weights_local(other, FIX_WIDE), dp_weights_local(weights, FIX_WIDE));
    dp_weights_free(&other);
    dp_weights_free(&weights);
    dp_graph_free(&graph);
}

static enum dp_status pull_values(void *of, int parameter, const uint64_t *mixed, size_t n, float *rows,
                                  struct dp_error *err)
{
    const struct dp_graph *graph = of;
    uint32_t width = dp_graph_parameter(graph, parameter)->table.dim;
    for (size_t i = 0; i < n; i++)
        for (uint32_t c = 0; c < width; c++)
            rows[i * width + c] = value_of(mixed[i] & 0xffff, c) + (float)parameter;
    return n > 0 && mixed[0] == 13 ? dp_fail(err, DP_NOT_FOUND, "no row 13") : DP_OK;
}

/* No client, no tables, no wait. */
static void test_rows_of_a_source(void **state)
{
    struct dp_graph *graph = fixture_graph();
    const struct dp_row_source source = {.pull = pull_values, .of = graph};
    const struct dp_batch_shape worst = fixture_worst(5);
    struct dp_client_table *tables[FIX_PARAMETERS] = {NULL};
    const struct dp_weights_options options = {
        .graph = graph, .tables = tables, .shards = 1, .worst = &worst, .batches_max = 1, .source = &source};
    struct dp_weights *weights;
    struct dp_error err = {0};
    assert_int_equal(dp_weights_new(&options, &weights, NULL), DP_OK);
    uint64_t a[] = {2, 5, 9}, unlucky[] = {13};
    struct dp_batch batch = fixture_batch(a, 3), bad = fixture_batch(unlucky, 1);
    struct dp_batch *batches[1] = {&batch};
    struct dp_ticket ticket = {7};
    assert_int_equal(dp_weights_take(weights, batches, 1, NULL), DP_OK);
    assert_int_equal(dp_weights_issue(weights, NULL, DP_WEIGHTS_SPARSE, NULL, 0, &ticket, &err), DP_OK);
    assert_int_equal(ticket.id, 0);
    const float *const *rows = dp_weights_of(weights, 0);
    for (uint32_t k = 0; k < 3; k++) {
        assert_true(rows[FIX_THIN][k] == value_of(a[k], 0) + FIX_THIN);
        assert_true(rows[FIX_WIDE][3 * k + 2] == value_of(a[k], 2) + FIX_WIDE);
    }
    assert_true(rows[FIX_DENSE][0] == 0); /* not asked for */
    assert_int_equal(dp_weights_issue(weights, NULL, DP_WEIGHTS_DENSE, NULL, 0, &ticket, &err), DP_OK);
    const struct dp_parameter *dense = dp_graph_parameter(graph, FIX_DENSE);
    size_t blocks = dp_parameter_floats(dense) / dense->table.dim;
    for (uint64_t b = 0; b < blocks; b++)
        assert_true(rows[FIX_DENSE][b * dense->table.dim] == value_of(dp_mix(b) & 0xffff, 0) + FIX_DENSE);
    batches[0] = &bad;
    assert_int_equal(dp_weights_take(weights, batches, 1, NULL), DP_OK);
    assert_int_equal(dp_weights_issue(weights, NULL, DP_WEIGHTS_ALL, NULL, 0, &ticket, &err), DP_NOT_FOUND);
    dp_weights_free(&weights);
    dp_graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_union), cmocka_unit_test(test_rows_of_each_batch),
        cmocka_unit_test(test_step_moves_shared_rows), cmocka_unit_test(test_one_batch_copies_nothing),
        cmocka_unit_test(test_rows_of_a_source)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
