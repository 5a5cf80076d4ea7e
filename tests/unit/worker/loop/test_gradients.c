/* Goal    a push of several minibatches is their sum: dense added, sparse one behind the other under the
 *         user's keys.
 * Method  the backward pass is played by the test.                                                       */
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/loop/gradients.h"

#include "common/model/mix.h"

static struct dp_gradients *gradients_new(const struct dp_graph *graph, uint32_t batches_max)
{
    struct dp_client_table *tables[FIX_PARAMETERS] = {NULL};
    const struct dp_batch_shape worst = fixture_worst(4);
    const struct dp_gradients_options options = {
        .graph = graph, .tables = tables, .shards = 2, .worst = &worst, .batches_max = batches_max};
    struct dp_gradients *gradients;
    assert_int_equal(dp_gradients_new(&options, &gradients, NULL), DP_OK);
    return gradients;
}

/* Writes `value` wherever a backward pass would. */
static void backward(const struct dp_graph *graph, float *const *out, const struct dp_batch *batch,
                     float value)
{
    for (uint32_t k = 0; k < batch->group[0].distinct; k++)
        out[FIX_THIN][k] = value;
    for (uint32_t k = 0; k < batch->group[0].distinct * 3; k++)
        out[FIX_WIDE][k] = value * 10;
    for (size_t i = 0; i < dp_parameter_floats(dp_graph_parameter(graph, FIX_DENSE)); i++)
        out[FIX_DENSE][i] = value;
}

static void test_several(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_gradients *gradients = gradients_new(graph, 3);
    uint64_t a[] = {dp_mix(7), dp_mix(8)}, b[] = {dp_mix(8)};
    struct dp_batch batch[] = {fixture_batch(a, 2), fixture_batch(b, 1), fixture_batch(NULL, 0)};
    const struct dp_pulled_at applied[2] = {{1, 0}, {2, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        backward(graph, dp_gradients_next(gradients, &batch[i], applied), &batch[i], (float)(1u << i));
        dp_gradients_add(gradients);
    }
    size_t n;
    const uint64_t *keys = dp_gradients_keys(gradients, 0, &n), want[] = {7, 8, 8};
    assert_int_equal(n, 3);
    assert_memory_equal(keys, want, sizeof want);
    const float thin[] = {1, 1, 2}, wide[] = {10, 10, 10, 10, 10, 10, 20, 20, 20};
    assert_memory_equal(dp_gradients_sum(gradients, FIX_THIN), thin, sizeof thin);
    assert_memory_equal(dp_gradients_sum(gradients, FIX_WIDE), wide, sizeof wide);
    for (size_t i = 0; i < dp_parameter_floats(dp_graph_parameter(graph, FIX_DENSE)); i++)
        assert_true(dp_gradients_sum(gradients, FIX_DENSE)[i] == 7);
    dp_gradients_free(&gradients);
    dp_graph_free(&graph);
}

static void test_one_lends_its_keys(void **state)
{
    struct dp_graph *graph = fixture_graph();
    struct dp_gradients *gradients = gradients_new(graph, 1);
    uint64_t a[] = {3, 4};
    struct dp_batch batch = fixture_batch(a, 2);
    const struct dp_pulled_at applied[2] = {{0}};
    float *const *out = dp_gradients_next(gradients, &batch, applied);
    for (int p = 0; p < FIX_PARAMETERS; p++)
        assert_ptr_equal(out[p], dp_gradients_sum(gradients, p));
    backward(graph, out, &batch, 1);
    dp_gradients_add(gradients);
    size_t n;
    assert_ptr_equal(dp_gradients_keys(gradients, 0, &n), a);
    assert_int_equal(n, 2);
    dp_gradients_free(&gradients);
    dp_graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_several),
                                       cmocka_unit_test(test_one_lends_its_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
