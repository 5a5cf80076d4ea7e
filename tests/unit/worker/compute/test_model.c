/* Models: what a text becomes, and what is said of one that is wrong. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "worker/compute/models/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void logistic_is_a_sparse_graph(void **state)
{
    struct dp_model m;
    assert_int_equal(dp_model_open("logistic", &m, NULL), DP_OK);
    assert_int_equal(m.form, DP_FORM_SPARSE);
    assert_int_equal(m.labels, DP_LABELS_BINARY);
    const struct dp_parameter *w = dp_graph_parameter(m.graph, 0), *b = dp_graph_parameter(m.graph, 1);
    assert_string_equal(w->table.name, "logistic.w");
    assert_true(w->sparse && w->table.dim == 1 && w->table.init.kind == DP_INIT_ZERO);
    assert_string_equal(b->table.name, "logistic.b");
    assert_true(!b->sparse && b->table.dim == 1);
    dp_model_close(&m);
    assert_null(m.graph);
}

static void pairs_of_words_or_not(void **state)
{
    static const char *const models[] = {"skipgram:4", "mf:4", "neumf:4-8-4", "mf:4,loss=bpr"};
    for (int i = 0; i < 4; i++) {
        struct dp_model m;
        assert_int_equal(dp_model_open(models[i], &m, NULL), DP_OK);
        assert_int_equal(m.form == DP_FORM_WORDS, i == 0);
        assert_int_equal(m.settings != NULL, i == 0);
        dp_model_close(&m);
    }
}

static void mlp_starts_by_he_and_glorot(void **state)
{
    struct dp_model m;
    assert_int_equal(dp_model_open("mlp:784-256-128-10", &m, NULL), DP_OK);
    assert_int_equal(m.form, DP_FORM_DENSE);
    assert_int_equal(m.width, 784);
    assert_int_equal(m.labels, DP_LABELS_CLASS);
    assert_int_equal(m.classes, 10);
    assert_int_equal(dp_graph_parameters(m.graph), 6);
    static const struct {
        const char *name;
        enum dp_init_kind kind;
        uint32_t in, out;
    } want[] = {{"mlp.w1", DP_INIT_HE, 784, 256},    {"mlp.b1", DP_INIT_ZERO, 0, 0},
                {"mlp.w2", DP_INIT_HE, 256, 128},    {"mlp.b2", DP_INIT_ZERO, 0, 0},
                {"mlp.w3", DP_INIT_XAVIER, 128, 10}, {"mlp.b3", DP_INIT_ZERO, 0, 0}};
    for (int p = 0; p < 6; p++) {
        const struct dp_table_spec *table = &dp_graph_parameter(m.graph, p)->table;
        assert_string_equal(table->name, want[p].name);
        assert_int_equal(table->init.kind, want[p].kind);
        assert_int_equal(table->init.fan_in, want[p].in);
        assert_int_equal(table->init.fan_out, want[p].out);
    }
    dp_model_close(&m);

    assert_int_equal(dp_model_open("mlp:64-32-1,loss=squared,activation=tanh", &m, NULL), DP_OK);
    assert_int_equal(m.labels, DP_LABELS_ANY);
    assert_int_equal(m.classes, 0);
    assert_int_equal(dp_graph_parameter(m.graph, 0)->table.init.kind, DP_INIT_XAVIER);
    assert_int_equal(dp_graph_node(m.graph, 3)->op, DP_OP_TANH);
    dp_model_close(&m);
    assert_int_equal(dp_model_open("mlp:3-1,loss=logistic", &m, NULL), DP_OK);
    assert_int_equal(m.labels, DP_LABELS_BINARY);
    dp_model_close(&m);
}

/* The last bias, and no other, starts where the caller says; classes have no single start. */
static void one_bias_starts_elsewhere(void **state)
{
    static const struct {
        const char *model, *bias; /* NULL: none */
    } cases[] = {{"logistic", "logistic.b"},  {"fm:4", "fm.b"},
                 {"deepfm:4-8", "clicks.b2"}, {"wide-deep:4-8,columns=0", "clicks.b2"},
                 {"dlrm:4", "dlrm.top.b3"},   {"mlp:3-5-1,loss=logistic", "mlp.b2"},
                 {"mlp:3-5-2", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_model m;
        assert_int_equal(dp_model_open(cases[i].model, &m, NULL), DP_OK);
        dp_graph_set_start(m.graph, -3);
        int found = 0;
        for (int p = 0; p < dp_graph_parameters(m.graph); p++) {
            const struct dp_table_spec *table = &dp_graph_parameter(m.graph, p)->table;
            if (table->init.kind != DP_INIT_CONSTANT)
                continue;
            found++;
            assert_string_equal(table->name, cases[i].bias);
            assert_true(table->init.scale == -3 && table->dim == 1);
        }
        assert_int_equal(found, cases[i].bias != NULL);
        dp_model_close(&m);
    }
}

static void wrong_texts_are_answered(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "the models are"},
        {"resnet", "there is no model 'resnet'; the models are logistic, mlp, "},
        {"MLP:2-2", "there is no model 'MLP'"},
        {"logistic:3", "takes no shape"},
        {"logistic,rate=1", "'rate' is not an option of logistic; it has: none"},
        {"mlp", "needs a shape"},
        {"mlp:", "needs a shape"},
        {"mlp:784", "one width is not a layer"},
        {"mlp:784-0-10", "width"},
        {"mlp:784--10", "width"},
        {"mlp:784-10-", "width"},
        {"mlp:-784-10", "width"},
        {"mlp:784x10", "784x10"},
        {"mlp:7-9999999999999999999999999999999999999999-3", "width"},
        {"mlp:4000000000-4000000000-2", "width"},
        {"mlp:16777216-16777216-2", "a dense parameter has at most 2147483648"},
        {"mlp:64-64-10,activation=foo", "activation 'foo' is not known: relu, sigmoid or tanh"},
        {"fm:8,l2=-1", "l2"},
        {"mlp:64-64-10,loss=hinge", "loss 'hinge' is not known"},
        {"mlp:64-64-10,depth=3", "'depth' is not an option of mlp; it has: activation, loss"},
        {"mlp:64-64-10,activation", "has no value"},
        {"mlp:64-64-10,activation=", "has no value"},
        {"mlp:64-64-10,", "'' is not an option"},
        {"mlp:64-64-10,activation=relu,activation=tanh", "given twice"},
        {"mlp:64-1", "add loss=squared"},
        {"mlp:64-2,loss=squared", "the last width is 2"},
        {"mlp:1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1-2", "more than 33 widths"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_model m;
        struct dp_error err = {0};
        assert_int_equal(dp_model_open(cases[i].text, &m, &err), DP_ARGUMENT);
        assert_null(m.graph);
        if (!strstr(err.text, cases[i].says))
            fail_msg("model '%s': '%s' does not say '%s'", cases[i].text, err.text, cases[i].says);
        assert_int_equal(err.status, DP_ARGUMENT);
    }
    char longer[2000];
    struct dp_model m;
    memset(longer, 'm', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(dp_model_open(longer, &m, NULL), DP_ARGUMENT);
}

/* The example, and "EXAMPLE,OPTION=DEFAULT" of each option. Planted: a default that its model refuses. */
static void what_the_help_says_opens(void **state)
{
    const struct dp_model_kind *kind;
    for (size_t m = 0; (kind = dp_model_kind(m)); m++)
        for (int i = -1; i < DP_MODEL_OPTIONS_MAX && (i < 0 || kind->option[i].name); i++) {
            char text[512];
            struct dp_model model;
            struct dp_error err = {0};
            int n = snprintf(text, sizeof text, "%s", kind->example);
            if (i >= 0)
                (void)snprintf(text + n, sizeof text - (size_t)n, ",%s=%s", kind->option[i].name,
                               kind->option[i].start);
            if (dp_model_open(text, &model, &err) != DP_OK)
                fail_msg("%s", err.text);
            dp_model_close(&model);
        }
}

static void help_is_printed_for_all_or_for_one(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(dp_model_help_print(NULL, file));
    assert_int_equal(fclose(file), 0);
    for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        assert_true(strcspn(line, "\n") <= 100);
    assert_non_null(strstr(text, "\nfm:K\n"));
    assert_non_null(strstr(text, "\ndlrm:R\n"));
    free(text);
    file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(dp_model_help_print("mf", file));
    assert_false(dp_model_help_print("resnet", file));
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "loss=logistic|bpr"));
    assert_null(strstr(text, "fm:K"));
    free(text);
}

/* Else the first steps of asynchronous workers, all down to the share of clicks, leave no unit of the columns' vector above 0. */
static void dlrm_starts_near_0(void **state)
{
    struct dp_model model;
    struct dp_error err;
    const struct dp_table_spec *last = NULL;
    assert_int_equal(dp_model_open("dlrm:16", &model, &err), DP_OK);
    for (int p = 0; p < dp_graph_parameters(model.graph); p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(model.graph, p);
        if (strcmp(parameter->table.name, "dlrm.top.w3") == 0)
            last = &parameter->table;
    }
    assert_non_null(last);
    assert_int_equal(last->init.kind, DP_INIT_NORMAL);
    assert_true(last->init.scale <= 0.01f && last->init.scale > 0);
    dp_model_close(&model);
}

enum { EXAMPLES = 5, ROW = 2, HIDDEN = 3, VECTORS = 3 };

/* An example's logit by deepfm:2-3,fields=1,columns=0,lists=2: each list is one vector, the sum of its
 * entries, in the products as in the layers. */
static double logit_by_hand(const struct fixture *f, uint32_t example)
{
    double *const *w = f->weights64, vector[VECTORS][ROW] = {{0}}, x = w[5][0];
    for (int l = 0; l < VECTORS; l++)
        for (uint32_t j = f->batch.list[l].offsets[example]; j < f->batch.list[l].offsets[example + 1]; j++) {
            double value = l > 0 ? (double)f->batch.list[l].values[j] : 1;
            uint32_t slot = f->batch.list[l].slots[j];
            x += value * w[0][slot];
            for (int d = 0; d < ROW; d++)
                vector[l][d] += value * w[1][slot * ROW + (uint32_t)d];
        }
    for (int a = 0; a < VECTORS; a++)
        for (int b = a + 1; b < VECTORS; b++)
            for (int d = 0; d < ROW; d++)
                x += vector[a][d] * vector[b][d];
    for (int h = 0; h < HIDDEN; h++) {
        double unit = w[3][h];
        for (int i = 0; i < VECTORS * ROW; i++)
            unit += vector[i / ROW][i % ROW] * w[2][i * HIDDEN + h];
        x += fmax(unit, 0) * w[4][h];
    }
    return x;
}

static double loss_by_hand(const struct fixture *f)
{
    double sum = 0;
    for (uint32_t i = 0; i < EXAMPLES; i++) {
        double x = logit_by_hand(f, i);
        sum += log1p(exp(-fabs(x))) + fmax(x, 0) - (double)f->batch.labels[i] * x;
    }
    return sum / EXAMPLES;
}

/* Outputs, and the gradient of every weight by central differences: that of each entry's row, too. */
static void a_list_counts_as_one_field(void **state)
{
    struct dp_model m;
    struct fixture f;
    struct dp_backend backend;
    assert_int_equal(dp_model_open("deepfm:2-3,fields=1,columns=0,lists=2", &m, NULL), DP_OK);
    assert_int_equal(m.pooled, 2);
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    fixture_open(&f, m.graph, backend, EXAMPLES, 0.7f, 5);
    for (uint32_t j = 0; j < EXAMPLES; j++)
        f.batch.list[0].values[j] = 1;
    fixture_run(&f);
    for (uint32_t i = 0; i < EXAMPLES; i++)
        assert_true(fabs((double)f.output[i] - logit_by_hand(&f, i)) < 1e-5);
    for (int p = 0; p < dp_graph_parameters(m.graph); p++)
        for (size_t i = 0; i < f.floats[p]; i++) {
            double *w = &f.weights64[p][i], before = *w, up, step = 1e-5;
            *w = before + step;
            up = loss_by_hand(&f);
            *w = before - step;
            double slope = (up - loss_by_hand(&f)) / (2 * step);
            *w = before;
            if (fabs(slope - (double)f.gradients[p][i]) > 1e-4)
                fail_msg("parameter %d, weight %zu: %g, not %g", p, i, (double)f.gradients[p][i], slope);
        }
    fixture_close(&f);
    dp_model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dlrm_starts_near_0),
        cmocka_unit_test(logistic_is_a_sparse_graph),
        cmocka_unit_test(a_list_counts_as_one_field),
        cmocka_unit_test(pairs_of_words_or_not),
        cmocka_unit_test(mlp_starts_by_he_and_glorot),
        cmocka_unit_test(one_bias_starts_elsewhere),
        cmocka_unit_test(wrong_texts_are_answered),
        cmocka_unit_test(what_the_help_says_opens),
        cmocka_unit_test(help_is_printed_for_all_or_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
