/* Goal    a copy has the rows that servers would have: their first values, and each step's bits, for every optimizer.
 * Method  rows of its own beside the copy, which take the same gradients. */
#include "tests/lib/test.h"
#include "worker/allreduce/replica.h"

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"
#include "worker/compute/models/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 20

static struct dp_model open_model(const char *text, const struct dp_optimizer_spec *optimizer)
{
    struct dp_model model = {0};
    struct dp_error err = {0};
    if (dp_model_open(text, &model, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_graph_set_optimizer(model.graph, optimizer, 5);
    assert_int_equal(dp_graph_check(model.graph, &err), DP_OK);
    return model;
}

static struct dp_replica *copy_of(const struct dp_model *model, size_t extra)
{
    struct dp_replica *replica = NULL;
    struct dp_error err = {0};
    if (dp_replica_new(model->graph, extra, &replica, &err) != DP_OK)
        fail_msg("%s", err.text);
    return replica;
}

/* A row beside the copy's. */
struct beside {
    char row[DP_ROW_HEADER + 4 * 3 * 1024];
    struct dp_optimizer *optimizer;
};

static void begin(struct beside *beside, const struct dp_table_spec *spec, uint64_t key)
{
    struct dp_error err = {0};
    assert_true(dp_row_bytes(spec) <= sizeof beside->row);
    dp_init_row(spec, key, beside->row);
    assert_int_equal(dp_optimizer_new(spec, DP_FORM_PORTABLE, &beside->optimizer, &err), DP_OK);
}

static void expect_pulled(struct dp_replica *replica, int parameter, uint64_t key, size_t dim)
{
    const struct dp_row_source rows = dp_replica_rows(replica);
    const uint64_t mixed[] = {dp_mix(key), dp_mix(0)};
    float pulled[2 * 1024];
    struct dp_error err = {0};
    assert_true(2 * dim <= sizeof pulled / sizeof *pulled);
    assert_int_equal(rows.pull(rows.of, parameter, mixed, 2, pulled, &err), DP_OK);
    assert_memory_equal(pulled, dp_replica_row(replica, parameter, key), dim * sizeof *pulled);
    assert_memory_equal(pulled + dim, dp_replica_row(replica, parameter, 0), dim * sizeof *pulled);
}

/* The last row of each parameter, whose end may be padding. Planted: keys from 1; one optimizer for all; one row left out. */
static void follows(const struct dp_optimizer_spec *optimizer)
{
    struct dp_model model = open_model("mlp:7-300-3", optimizer);
    struct dp_replica *replica = copy_of(&model, 0);
    int parameters = dp_graph_parameters(model.graph);
    struct beside *beside = calloc((size_t)parameters, sizeof *beside);
    assert_non_null(beside);
    for (int p = 0; p < parameters; p++) {
        const struct dp_parameter *of = dp_graph_parameter(model.graph, p);
        uint64_t last = dp_parameter_floats(of) / of->table.dim - 1;
        begin(&beside[p], &of->table, last);
        assert_memory_equal(dp_replica_row(replica, p, last), dp_row_weights_const(beside[p].row),
                            of->table.dim * 4);
        assert_null(dp_replica_row(replica, p, last + 1));
    }
    for (int s = 1; s <= STEPS; s++) {
        float rate = 0.1f / (float)s;
        size_t end = 0;
        for (size_t i = 0; i < dp_replica_floats(replica); i++)
            dp_replica_sums(replica)[i] = sinf((float)(i + 1) * (float)s);
        for (int p = 0; p < parameters; p++) {
            const struct dp_parameter *of = dp_graph_parameter(model.graph, p);
            end += dp_parameter_floats(of);
            dp_optimizer_apply(beside[p].optimizer, beside[p].row,
                               dp_replica_sums(replica) + end - of->table.dim, rate);
        }
        dp_replica_apply(replica, rate);
        for (int p = 0; p < parameters; p++) {
            const struct dp_parameter *of = dp_graph_parameter(model.graph, p);
            size_t at = dp_parameter_floats(of) - of->table.dim;
            assert_memory_equal(dp_replica_row(replica, p, at / of->table.dim),
                                dp_row_weights_const(beside[p].row), of->table.dim * 4);
            expect_pulled(replica, p, at / of->table.dim, of->table.dim);
        }
    }
    for (int p = 0; p < parameters; p++)
        dp_optimizer_free(&beside[p].optimizer);
    free(beside);
    dp_replica_free(&replica);
    dp_model_close(&model);
}

static void rows_are_those_of_servers(void **state)
{
    struct dp_optimizer_spec momentum = dp_optimizer_defaults(DP_OPT_SGD);
    momentum.momentum = 0.9f;
    momentum.l2 = 0.01f;
    follows(&momentum);
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++) {
        const struct dp_optimizer_spec spec = dp_optimizer_defaults((enum dp_optimizer_kind)kind);
        follows(&spec);
    }
}

static void gradients_lie_together_and_are_scaled(void **state)
{
    const struct dp_optimizer_spec sgd = dp_optimizer_defaults(DP_OPT_SGD);
    struct dp_model model = open_model("mlp:7-300-3", &sgd);
    struct dp_replica *replica = copy_of(&model, 1);
    size_t floats = dp_replica_floats(replica), all = 0;
    float *sums = dp_replica_sums(replica), *own = calloc(floats, sizeof *own);
    assert_non_null(own);
    sums[floats] = 7;
    for (size_t i = 0; i < floats; i++)
        own[i] = (float)i;
    for (int p = 0; p < dp_graph_parameters(model.graph); p++) {
        dp_replica_put(replica, p, own + all, 0.25f);
        all += dp_parameter_floats(dp_graph_parameter(model.graph, p));
    }
    assert_int_equal(all, floats);
    for (size_t i = 0; i < floats; i++)
        assert_true(sums[i] == 0.25f * (float)i);
    sums[0] = NAN;
    for (int p = 0; p < dp_graph_parameters(model.graph); p++)
        dp_replica_put(replica, p, NULL, 1); /* of a rank that computed nothing */
    for (size_t i = 0; i < floats; i++)
        assert_true(sums[i] == 0);
    assert_true(sums[floats] == 7);
    free(own);
    uint64_t before = dp_replica_digest(replica);
    assert_true(dp_replica_digest(replica) == before);
    sums[floats - 1] = 1;
    dp_replica_apply(replica, 0.1f);
    assert_true(dp_replica_digest(replica) != before);
    dp_replica_free(&replica);
    dp_model_close(&model);
}

/* A copy that has taken one step, with a gradient of 1 at this float alone; at >= floats: with none. */
static uint64_t digest_after(const struct dp_model *model, size_t at, float rate)
{
    struct dp_replica *replica = copy_of(model, 0);
    for (size_t i = 0; i < dp_replica_floats(replica); i++)
        dp_replica_sums(replica)[i] = i == at ? 1.0f : 0.0f;
    dp_replica_apply(replica, rate);
    uint64_t digest = dp_replica_digest(replica);
    dp_replica_free(&replica);
    return digest;
}

/* The first and the last float of each parameter tell; at a rate that moves no weight, their slots alone do. Planted: the first table
 * only; all but the last; the weights without the slots; all rows but the last. */
static void the_digest_is_of_all_tables(void **state)
{
    struct dp_optimizer_spec momentum = dp_optimizer_defaults(DP_OPT_SGD);
    momentum.momentum = 0.9f;
    struct dp_model model = open_model("mlp:7-300-3", &momentum);
    assert_int_equal(dp_graph_parameters(model.graph), 4);
    static const float rates[] = {0.1f, 1e-37f};
    for (int r = 0; r < 2; r++) {
        size_t first = 0;
        uint64_t none = digest_after(&model, SIZE_MAX, rates[r]), last = none;
        assert_true(digest_after(&model, SIZE_MAX, rates[r]) == none);
        for (int p = 0; p < 4; p++) {
            size_t floats = dp_parameter_floats(dp_graph_parameter(model.graph, p));
            for (int end = 0; end < 2; end++) {
                uint64_t digest = digest_after(&model, end ? first + floats - 1 : first, rates[r]);
                assert_true(digest != none && digest != last);
                last = digest;
            }
            first += floats;
        }
    }
    dp_model_close(&model);
}

static void sparse_tables_are_refused_by_name(void **state)
{
    const struct dp_optimizer_spec sgd = dp_optimizer_defaults(DP_OPT_SGD);
    struct dp_model model = open_model("logistic", &sgd);
    struct dp_error err = {0};
    assert_int_equal(dp_replica_check(model.graph, "logistic", &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "model 'logistic' has the sparse table 'logistic.w'"));
    assert_non_null(strstr(err.text, "downpour run"));
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_servers), cmocka_unit_test(gradients_lie_together_and_are_scaled),
        cmocka_unit_test(the_digest_is_of_all_tables), cmocka_unit_test(sparse_tables_are_refused_by_name)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
