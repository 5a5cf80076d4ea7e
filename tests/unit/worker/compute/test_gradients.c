/* Gradients: every operation and model against float64: the loss and outputs, the derivative by dual numbers
 * and by central differences, over random shapes and seeds. Errors are relative to the greatest derivative of
 * the parameter. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "tests/lib/oracle.h"
#include "worker/compute/models/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SEEDS 12

struct shape {
    uint32_t examples, a, b, c;
};

struct figure {
    const char *name;
    void (*declare)(struct dp_graph *g, const struct shape *s);
    double tolerance; /* of f32 against dual numbers */
    float scale;      /* of the weights */
};

static const struct dp_init_spec zero_init = {.kind = DP_INIT_ZERO};

/* The sum of an example's entries, of a list and a table of their own. */
static int gather(struct dp_graph *g, const char *name, uint32_t width)
{
    int group = dp_graph_group(g), list = dp_graph_list(g, group, 0);
    return dp_graph_gather_sum(g, dp_graph_sparse(g, group, name, width, zero_init), list);
}

static int matmul(struct dp_graph *g, int x, const char *name, uint32_t rows, uint32_t width)
{
    return dp_graph_matmul(g, x, dp_graph_dense(g, name, rows, width, zero_init));
}

static void gather_one(struct dp_graph *g, const struct shape *s)
{
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, gather(g, "w", 1));
}

static void gather_wide(struct dp_graph *g, const struct shape *s)
{
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, gather(g, "w", s->a + 1));
}

static void one_matmul(struct dp_graph *g, const struct shape *s)
{
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, dp_graph_input(g, s->a), "w", s->a, 1));
}

static void two_matmuls(struct dp_graph *g, const struct shape *s)
{
    int x = matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b);
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, matmul(g, x, "w2", s->b, 1));
}

static void bias(struct dp_graph *g, const struct shape *s)
{
    int x = matmul(g, dp_graph_input(g, s->a), "w", s->a, s->b + 1);
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, dp_graph_bias(g, x, dp_graph_dense(g, "b", 1, s->b + 1, zero_init)));
}

static void bias_on_input(struct dp_graph *g, const struct shape *s)
{
    int x = dp_graph_bias(g, dp_graph_input(g, s->a), dp_graph_dense(g, "b", 1, s->a, zero_init));
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, x, "w", s->a, 1));
}

static void unary(struct dp_graph *g, const struct shape *s, enum dp_op op)
{
    int x = dp_graph_unary(g, op, matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b));
    x = dp_graph_unary(g, op, matmul(g, dp_graph_unary(g, op, x), "w2", s->b, s->c + 1));
    dp_graph_loss(g, DP_OP_SOFTMAX_LOSS, x);
}

static void relu(struct dp_graph *g, const struct shape *s)
{
    unary(g, s, DP_OP_RELU);
}

static void sigmoid(struct dp_graph *g, const struct shape *s)
{
    unary(g, s, DP_OP_SIGMOID);
}

static void hyperbolic(struct dp_graph *g, const struct shape *s)
{
    unary(g, s, DP_OP_TANH);
}

/* Each node that has two users hands its gradient on from both. */
static void node_twice(struct dp_graph *g, const struct shape *s)
{
    static const enum dp_op ops[] = {DP_OP_RELU, DP_OP_SIGMOID, DP_OP_TANH};
    int x = matmul(g, dp_graph_input(g, s->a), "w0", s->a, s->b);
    char name[8];
    for (int i = 0; i < 3; i++) {
        (void)snprintf(name, sizeof name, "w%d", i + 1);
        int y = dp_graph_unary(g, ops[i], x);
        x = dp_graph_add(g, x, matmul(g, y, name, s->b, s->b)); /* residual */
        x = dp_graph_add(g, dp_graph_unary(g, ops[i], x), x);
        (void)snprintf(name, sizeof name, "b%d", i + 1);
        x = dp_graph_add(g, x, dp_graph_bias(g, x, dp_graph_dense(g, name, 1, s->b, zero_init)));
    }
    x = dp_graph_add(g, x, x);
    int y = matmul(g, x, "v", s->b, s->b);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, dp_graph_add(g, x, y), "last", s->b, 1));
}

static void weight_twice(struct dp_graph *g, const struct shape *s)
{
    int w = dp_graph_dense(g, "w", s->a, s->a, zero_init), b = dp_graph_dense(g, "b", 1, s->a, zero_init);
    int x = dp_graph_input(g, s->a);
    for (int i = 0; i < 3; i++)
        x = dp_graph_unary(g, DP_OP_TANH, dp_graph_bias(g, dp_graph_matmul(g, x, w), b));
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, x, "last", s->a, 1));
}

static void sparse_twice(struct dp_graph *g, const struct shape *s)
{
    int words = dp_graph_group(g), list = dp_graph_list(g, words, 0);
    int w = dp_graph_sparse(g, words, "w", s->a, zero_init);
    int x = matmul(g, dp_graph_gather_sum(g, w, list), "v", s->a, s->a);
    x = dp_graph_add(g, dp_graph_unary(g, DP_OP_SIGMOID, x), dp_graph_gather_sum(g, w, list));
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, x, "last", s->a, 1));
}

static void wide_and_deep(struct dp_graph *g, const struct shape *s)
{
    int x = dp_graph_unary(g, DP_OP_RELU, matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b));
    int wide = gather(g, "wide", 1);
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, dp_graph_add(g, matmul(g, x, "w2", s->b, 1), wide));
}

/* ---- rows in sequence, means, interactions, and what joins columns */

static int rows(struct dp_graph *g, const char *name, uint32_t width, uint32_t each)
{
    int group = dp_graph_group(g), list = dp_graph_list(g, group, each);
    return dp_graph_gather(g, dp_graph_sparse(g, group, name, width, zero_init), list);
}

static void gather_mean(struct dp_graph *g, const struct shape *s)
{
    int group = dp_graph_group(g), list = dp_graph_list(g, group, 0);
    int w = dp_graph_sparse(g, group, "w", s->a + 1, zero_init),
        b = dp_graph_sparse(g, group, "b", 1, zero_init);
    int x = matmul(g, dp_graph_gather_mean(g, w, list), "v", s->a + 1, 1);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, dp_graph_add(g, x, dp_graph_gather_mean(g, b, list)));
}

static void gather_rows(struct dp_graph *g, const struct shape *s)
{
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, matmul(g, rows(g, "w", s->a, s->c), "v", s->a * s->c, 1));
}

/* Two lists with keys of one kind, as the two items of a comparison. */
static void two_lists(struct dp_graph *g, const struct shape *s)
{
    int items = dp_graph_group(g), a = dp_graph_list(g, items, 1), b = dp_graph_list(g, items, 1);
    int w = dp_graph_sparse(g, items, "w", s->a, zero_init), user = rows(g, "u", s->a, 1);
    int x = dp_graph_dot(g, user, dp_graph_gather(g, w, a)),
        y = dp_graph_dot(g, user, dp_graph_gather(g, w, b));
    dp_graph_loss_of_pair(g, DP_OP_BPR_LOSS, x, y);
}

static void near_rows(struct dp_graph *g, const struct shape *s)
{
    int group = dp_graph_group(g), list = dp_graph_list(g, group, 0);
    int w = dp_graph_sparse(g, group, "w", s->a, zero_init);
    int x = matmul(g, dp_graph_gather_sum(g, w, list), "v", s->a, s->a);
    dp_graph_loss(g, DP_OP_MEAN_LOSS,
                  dp_graph_add(g, dp_graph_near(g, x, w, list), matmul(g, x, "last", s->a, 1)));
}

static void interactions(struct dp_graph *g, const struct shape *s)
{
    int group = dp_graph_group(g), list = dp_graph_list(g, group, 0);
    int v = dp_graph_sparse(g, group, "v", s->a, zero_init), w = dp_graph_sparse(g, group, "w", 1, zero_init);
    int x = dp_graph_add(g, dp_graph_interactions(g, v, list), dp_graph_gather_sum(g, w, list));
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, x);
}

static void products(struct dp_graph *g, const struct shape *s)
{
    int x = matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b),
        y = matmul(g, dp_graph_input(g, s->a), "w2", s->a, s->b);
    int z = dp_graph_multiply(g, dp_graph_multiply(g, x, y), dp_graph_unary(g, DP_OP_TANH, x));
    int last = dp_graph_add(g, dp_graph_dot(g, z, y), matmul(g, dp_graph_multiply(g, y, y), "w3", s->b, 1));
    dp_graph_loss(g, DP_OP_SQUARED_LOSS, dp_graph_add(g, last, dp_graph_dot(g, x, x)));
}

static void columns(struct dp_graph *g, const struct shape *s)
{
    int x = matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b + 2), y = rows(g, "r", s->c, 2);
    int parts[4] = {x, y, dp_graph_slice(g, x, 1, s->b), x};
    int z = dp_graph_concat(g, parts, 4);
    uint32_t width = 3 * s->b + 4 + 2 * s->c;
    int half = dp_graph_add(g, dp_graph_slice(g, z, 0, width / 2),
                            dp_graph_slice(g, z, width - width / 2, width / 2));
    int one = dp_graph_concat(g, &half, 1);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS,
                  dp_graph_add(g, matmul(g, one, "w2", width / 2, 1), matmul(g, z, "w3", width, 1)));
}

static void pairs(struct dp_graph *g, const struct shape *s)
{
    uint32_t n = s->c + 1;
    int x = matmul(g, dp_graph_input(g, s->a), "w1", s->a, s->b * n);
    int y = dp_graph_pairs(g, x, n);
    dp_graph_loss(g, DP_OP_SQUARED_LOSS,
                  dp_graph_add(g, matmul(g, y, "w2", n * (n - 1) / 2, 1), matmul(g, x, "w3", s->b * n, 1)));
}

static const struct figure figures[] = {
    {"gather_sum, width 1", gather_one, 2e-6, 1},
    {"gather_sum", gather_wide, 2e-6, 1},
    {"matmul", one_matmul, 5e-6, 1},
    {"matmul, dx", two_matmuls, 5e-6, 1},
    {"bias", bias, 1e-5, 1},
    {"bias on the input", bias_on_input, 5e-6, 1},
    {"relu", relu, 1e-5, 1},
    {"sigmoid", sigmoid, 1e-5, 1},
    {"tanh", hyperbolic, 1e-5, 1},
    {"a node used twice", node_twice, 1e-5, 0.3f}, /* its sums grow: 1 would saturate tanh */
    {"a weight used twice", weight_twice, 1e-5, 1},
    {"a sparse weight used twice", sparse_twice, 1e-5, 1},
    {"wide and deep", wide_and_deep, 1e-5, 1},
    {"gather_mean", gather_mean, 1e-5, 1},
    {"gather", gather_rows, 1e-5, 1},
    {"bpr loss, two lists", two_lists, 1e-5, 1},
    {"interactions", interactions, 1e-5, 1},
    {"near rows", near_rows, 1e-5, 1},
    {"multiply, dot", products, 1e-5, 0.5f},
    {"concat, slice", columns, 1e-5, 1},
    {"pairs", pairs, 1e-5, 0.5f},
};

static void near(const struct fixture *f, const char *what, const char *name, double have, double want,
                 double tolerance)
{
    if (!(fabs(have - want) <= tolerance))
        fail_msg("%s, seed %" PRIu64 ", %s: %.9g, float64 says %.9g, off by %.3g of %.3g allowed", name,
                 f->seed, what, have, want, fabs(have - want), tolerance);
}

static void check_forward(struct fixture *f, const char *name, double tolerance)
{
    uint32_t width = dp_graph_node(f->graph, dp_graph_output(f->graph))->width;
    size_t n = (size_t)f->batch.examples * width;
    double *output = calloc(n, sizeof *output);
    assert_non_null(output);
    struct dp_oracle_result want = dp_oracle_run(f->graph, &f->batch, f->weights64, -1, 0, output);
    double scale = 1;
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs(output[i]));
    for (size_t i = 0; i < n; i++)
        near(f, "output", name, (double)f->output[i], output[i], tolerance * scale);
    near(f, "loss", name, (double)f->loss, want.loss, tolerance * fmax(1, want.loss) * scale);
    free(output);
}

/* Every index of a small parameter, 40 of a large one. Returns the worst error. */
static double check_parameter(struct fixture *f, int p, const char *name, double tolerance)
{
    const struct dp_parameter *parameter = dp_graph_parameter(f->graph, p);
    size_t n = f->floats[p], used = parameter->sparse ? n : (size_t)parameter->rows * parameter->width;
    size_t step = used > 80 ? used / 40 : 1;
    double scale = 1e-3, worst = 0;
    for (size_t i = 0; i < used; i++)
        scale = fmax(scale, fabs((double)f->gradients[p][i]));
    for (size_t i = 0; i < used; i += step) {
        double have = (double)f->gradients[p][i];
        double dual = dp_oracle_run(f->graph, &f->batch, f->weights64, p, i, NULL).derivative;
        near(f, "dual numbers", name, have, dual, tolerance * scale);
        near(f, "finite difference", name, have,
             dp_oracle_difference(f->graph, &f->batch, f->weights64, p, i), (tolerance + 1e-5) * scale);
        worst = fmax(worst, fabs(have - dual) / scale);
    }
    for (size_t i = used; i < n; i++)
        assert_true(f->gradients[p][i] == 0.0f); /* padding */
    return worst;
}

static double check_graph(const struct dp_graph *graph, const char *name, uint32_t examples, float scale,
                          double tolerance, uint64_t seed)
{
    struct dp_backend backend;
    struct fixture f;
    double worst = 0;
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    fixture_open(&f, graph, backend, examples, scale, seed);
    fixture_run(&f);
    check_forward(&f, name, tolerance);
    for (int p = 0; p < dp_graph_parameters(graph); p++)
        worst = fmax(worst, check_parameter(&f, p, name, tolerance));
    fixture_close(&f);
    return worst;
}

static void operations_agree_with_float64(void **state)
{
    for (size_t at = 0; at < sizeof figures / sizeof figures[0]; at++) {
        double worst = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            uint64_t random = seed * 77 + at;
            struct shape s = {
                1 + (uint32_t)(fixture_random(&random) % 9), 1 + (uint32_t)(fixture_random(&random) % 12),
                1 + (uint32_t)(fixture_random(&random) % 12), 1 + (uint32_t)(fixture_random(&random) % 5)};
            struct dp_graph *g;
            assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
            figures[at].declare(g, &s);
            worst = fmax(worst, check_graph(g, figures[at].name, s.examples, figures[at].scale,
                                            figures[at].tolerance, seed));
            dp_graph_free(&g);
        }
        print_message("%-28s worst error %.2g of %.0g\n", figures[at].name, worst, figures[at].tolerance);
    }
}

static void models_agree_with_float64(void **state)
{
    static const char *const hidden[] = {"", "-7", "-33-5", "-16-300-3"};
    static const char *const activations[] = {"relu", "sigmoid", "tanh"};
    static const char *const ends[] = {"-1,loss=squared", "-1,loss=logistic", "-4,loss=softmax", "-10"};
    uint64_t random = 5;
    struct dp_model model;
    struct dp_error err = {0};
    double worst = 0;
    for (uint64_t seed = 0; seed < 48; seed++) {
        char text[128];
        (void)snprintf(text, sizeof text, "mlp:%u%s%s,activation=%s",
                       1 + (unsigned)(fixture_random(&random) % 40), hidden[seed % 4], ends[seed / 4 % 4],
                       activations[seed / 16 % 3]);
        uint32_t examples = 1 + (uint32_t)(fixture_random(&random) % 20);
        if (dp_model_open(text, &model, &err) != DP_OK)
            fail_msg("%s", err.text);
        worst = fmax(worst, check_graph(model.graph, text, examples, 0.5f, 1e-4, seed));
        dp_model_close(&model);
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        assert_int_equal(dp_model_open("logistic", &model, &err), DP_OK);
        worst = fmax(worst, check_graph(model.graph, "logistic", (uint32_t)(3 * seed), 2, 1e-4, seed));
        dp_model_close(&model);
    }
    print_message("models: worst error %.2g of 1e-04\n", worst);
}

/* Each model of the table, small. */
static void every_model_agrees_with_float64(void **state)
{
    static const char *const texts[] = {"fm:5",
                                        "fm:3,loss=squared",
                                        "mf:4,l2=0",
                                        "mf:4,loss=bpr,l2=0",
                                        "mf:4,loss=squared,l2=0",
                                        "neumf:3-8-5",
                                        "wide-deep:3-7-4,fields=3,columns=2",
                                        "wide-deep:3-7,fields=2,columns=0",
                                        "deepfm:3-7-4,fields=4,columns=2",
                                        "deepfm:3-7-4,fields=3,columns=2,lists=3",
                                        "deepfm:3-7-4,fields=0,columns=0,lists=2",
                                        "wide-deep:3-7,fields=0,columns=2,lists=1",
                                        "dlrm:3,bottom=5,top=6,fields=2,columns=2,lists=2",
                                        "dlrm:3,bottom=5,top=6,fields=2,columns=2,lists=2,tables=fields",
                                        "wide-deep:3-7-4,fields=4,columns=2,loss=squared",
                                        "dlrm:3,bottom=5,top=6-4,fields=3,columns=2,loss=squared",
                                        "dlrm:3,bottom=5,top=6-4,fields=3,columns=2",
                                        "dlrm:3,bottom=5,top=6,fields=3,columns=2,tables=fields",
                                        "skipgram:6",
                                        "lstm:4-3-5,classes=6",
                                        "lstm:1-2-3,classes=2",
                                        "lstm:4-3-5,classes=6,recompute=1"};
    struct dp_model model;
    struct dp_error err = {0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double worst = 0;
        if (dp_model_open(texts[i], &model, &err) != DP_OK)
            fail_msg("%s", err.text);
        for (uint64_t seed = 1; seed <= 4; seed++)
            worst = fmax(worst, check_graph(model.graph, texts[i], 3 + (uint32_t)seed, 0.7f, 1e-4, seed));
        print_message("%-56s worst error %.2g of 1e-04\n", texts[i], worst);
        dp_model_close(&model);
    }
}

/* The gradients of mf with and without: each entry of a row adds l2 / examples times the row. */
static void the_factors_shrink_by_example(void **state)
{
    enum { EXAMPLES = 7 };
    static const char *const texts[] = {"mf:4,l2=0", "mf:4,l2=0.5"};
    struct fixture f[2];
    struct dp_model model[2];
    for (int i = 0; i < 2; i++) {
        struct dp_backend backend;
        assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
        assert_int_equal(dp_model_open(texts[i], &model[i], NULL), DP_OK);
        fixture_open(&f[i], model[i].graph, backend, EXAMPLES, 0.7f, 3);
        fixture_run(&f[i]);
    }
    assert_true(f[0].loss == f[1].loss);
    for (int p = 0; p < 2; p++) { /* the lists and groups have the numbers of the factors' tables */
        const struct dp_batch_list *list = &f[1].batch.list[p];
        for (size_t k = 0; k < f[1].floats[p]; k++) {
            double entries = 0;
            for (uint32_t e = 0; e < EXAMPLES; e++)
                if (list->slots[e] == k / 4)
                    entries += (double)list->values[e] * (double)list->values[e];
            near(&f[1], "l2", texts[1], (double)f[1].gradients[p][k] - (double)f[0].gradients[p][k],
                 0.5 * entries / EXAMPLES * (double)f[1].weights[p][k], 1e-6);
        }
    }
    for (int i = 0; i < 2; i++) {
        fixture_close(&f[i]);
        dp_model_close(&model[i]);
    }
}

/* The gradients of fm with its priors in force and without: a row of a minibatch adds its share of itself,
 * once, and the bias nothing. */
static void the_rows_of_a_prior_shrink(void **state)
{
    enum { EXAMPLES = 7, OF = 40 };
    static const double prior[] = {2.0 / OF, 30.0 / OF, 0};
    struct fixture f[2];
    struct dp_model model[2];
    for (int i = 0; i < 2; i++) {
        struct dp_backend backend;
        assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
        assert_int_equal(dp_model_open("fm:4", &model[i], NULL), DP_OK);
        dp_graph_set_examples(model[i].graph, i == 0 ? 0 : OF);
        assert_int_equal(dp_graph_has_prior(model[i].graph), i > 0);
        fixture_open(&f[i], model[i].graph, backend, EXAMPLES, 0.7f, 3);
        fixture_run(&f[i]);
    }
    assert_true(f[0].loss == f[1].loss);
    for (int p = 0; p < 3; p++)
        for (size_t k = 0; k < f[1].floats[p]; k++)
            near(&f[1], "prior", "fm:4", (double)f[1].gradients[p][k] - (double)f[0].gradients[p][k],
                 prior[p] * (double)f[1].weights[p][k], 1e-6);
    for (int i = 0; i < 2; i++) {
        fixture_close(&f[i]);
        dp_model_close(&model[i]);
    }
}

/* An l2 that is given stands alone. */
static void an_l2_replaces_the_prior(void **state)
{
    static const struct {
        const char *model;
        bool has;
    } want[] = {{"logistic", true},   {"fm:4", true},         {"deepfm:4-3", true}, {"wide-deep:4-3", true},
                {"fm:4,l2=0", false}, {"fm:4,l2=0.1", false}, {"mf:4", false},      {"mlp:4-3-2", false}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct dp_model model;
        assert_int_equal(dp_model_open(want[i].model, &model, NULL), DP_OK);
        assert_false(dp_graph_has_prior(model.graph));
        dp_graph_set_examples(model.graph, 100);
        assert_int_equal(dp_graph_has_prior(model.graph), want[i].has);
        dp_model_close(&model);
    }
}

/* Logits of 1e4: e^x would overflow f32 and f64. */
static void huge_logits_stay_finite(void **state)
{
    for (uint32_t width = 1; width <= 3; width += 2) {
        struct dp_graph *g;
        assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
        int x = matmul(g, dp_graph_input(g, 2), "w", 2, width);
        dp_graph_loss(g, width == 1 ? DP_OP_LOGISTIC_LOSS : DP_OP_SOFTMAX_LOSS, x);
        double worst = check_graph(g, "huge logits", 6, 1e4f, 1e-5, width);
        assert_true(isfinite(worst));
        dp_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_agree_with_float64),   cmocka_unit_test(models_agree_with_float64),
        cmocka_unit_test(every_model_agrees_with_float64), cmocka_unit_test(the_factors_shrink_by_example),
        cmocka_unit_test(the_rows_of_a_prior_shrink),      cmocka_unit_test(an_l2_replaces_the_prior),
        cmocka_unit_test(huge_logits_stay_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
