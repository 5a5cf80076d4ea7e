/* Goal    the constant beside a model's figures is the best by the training labels, on the evaluated set.
 * Method  small files whose shares and means are known, the formulas in float64; a share held out, and labels that are drawn. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"
#include "worker/score/baseline.h"

#include <math.h>

static struct dp_dataset *opened(const struct dp_model *model, const char *name, const char *text,
                                 double held_out, const char *class_weight)
{
    struct dp_dataset *data = NULL;
    struct dp_error err = {0};
    const struct dp_dataset_options options = {.path = write_text(name, text),
                                               .labels = model->labels,
                                               .classes = model->classes,
                                               .form = model->form,
                                               .width = model->width,
                                               .index_base = 1,
                                               .negatives = 3,
                                               .class_weight = class_weight,
                                               .weighs = true,
                                               .held_out = held_out,
                                               .shuffle = true,
                                               .batch = 4};
    if (dp_dataset_open(&options, &data, &err) != DP_OK)
        fail_msg("%s", err.text);
    return data;
}

static struct dp_figures weighted_constant(const char *name, const char *train, const char *test,
                                           double held_out, const char *weights)
{
    struct dp_figures figures;
    struct dp_model model;
    assert_int_equal(dp_model_open(name, &model, NULL), DP_OK);
    struct dp_dataset *a = opened(&model, "train", train, held_out, weights);
    struct dp_dataset *b = opened(&model, "test", test, 0, NULL);
    assert_int_equal(dp_baseline_figures(&model, a, b, &figures, NULL), DP_OK);
    dp_dataset_close(&a);
    dp_dataset_close(&b);
    dp_model_close(&model);
    return figures;
}

static struct dp_figures constant_of(const char *name, const char *train, const char *test, double held_out)
{
    return weighted_constant(name, train, test, held_out, NULL);
}

static void assert_near(double value, double want)
{
    if (!(fabs(value - want) < 1e-9))
        fail_msg("%.12g is not %.12g", value, want);
}

static void of_two_classes(void **state)
{
    /* 3 of 4 are 1 in the training set, 1 of 5 in the other. */
    struct dp_figures f = constant_of("logistic", "+1 1:1\n-1 1:2\n+1 1:1\n+1 2:1\n",
                                      "-1 1:1\n-1 1:1\n+1 1:1\n-1 1:1\n-1 1:1\n", 0);
    assert_near(f.loss, -(1 * log(3.5 / 5) + 4 * log(1.5 / 5)) / 5);
    assert_near(f.accuracy, 0.2);
    assert_near(f.auc, 0.5);
    assert_int_equal(f.examples, 5);
    f = constant_of("logistic", "1 1:1\n0 1:2\n", "1 1:1\n", 0);
    assert_true(isnan(f.auc));
}

/* The training file's shares are those of its weights; the other file has none. */
static void of_weighted_classes(void **state)
{
    const char *train = "+1 1:1\n-1 1:2\n+1 1:1\n+1 2:1\n", *test = "-1 1:1\n-1 1:1\n+1 1:1\n";
    struct dp_figures f = weighted_constant("logistic", train, test, 0, "1=1,-1=5"); /* 3 of 8 are 1 */
    assert_near(f.loss, -(1 * log(2. / 5) + 2 * log(3. / 5)) / 3);
    assert_near(f.accuracy, 2. / 3);
}

static void of_classes_and_numbers(void **state)
{
    struct dp_figures f = constant_of("mlp:2-3", "0 1:1\n1 1:2\n1 1:3\n", "1 1:1\n2 1:1\n", 0);
    assert_near(f.loss, -(log(2.5 / 4.5) + log(0.5 / 4.5)) / 2);
    assert_near(f.accuracy, 0.5);
    assert_true(isnan(f.auc) && isnan(f.rmse));
    f = constant_of("mlp:2-1,loss=squared", "1 1:1\n2 1:1\n6 1:1\n", "4 1:1\n0 1:1\n", 0);
    assert_near(f.loss, (1.0 + 9.0) / 2);
    assert_near(f.rmse, sqrt(5));
    assert_true(isnan(f.accuracy));
}

/* Of those that are left, as the model sees no others. */
static void without_those_held_out(void **state)
{
    const char *text = "1 1:1\n2 1:1\n3 1:1\n4 1:1\n5 1:1\n6 1:1\n7 1:1\n8 1:1\n9 1:1\n1000 1:1\n";
    struct dp_figures all = constant_of("mlp:2-1,loss=squared", text, "0 1:1\n", 0);
    struct dp_figures kept = constant_of("mlp:2-1,loss=squared", text, "0 1:1\n", 0.9);
    assert_near(all.loss, pow(1045.0 / 10, 2));
    double label = sqrt(kept.loss); /* one example is left */
    assert_true(fabs(label - round(label)) < 1e-6 && label >= 1);
}

static void of_labels_that_are_drawn(void **state)
{
    const char *pairs = "0 1\n1 2\n2 0\n0 3\n3 3\n";
    struct dp_figures f = constant_of("mf:4", pairs, pairs, 0); /* 3 negatives for each */
    assert_near(f.accuracy, 0.75);
    assert_near(f.loss, -(5 * log(5.5 / 21) + 15 * log(15.5 / 21)) / 20);
    f = constant_of("mf:4,loss=bpr", pairs, pairs, 0);
    assert_near(f.loss, log(2));
}

static void one_label_is_seen(void **state)
{
    static const struct {
        const char *model, *text, *one;
    } files[] = {{"logistic", "1 1:1\n1 2:1\n", "1"},
                 {"logistic", "0 1:1\n0 2:1\n", "0 (or -1)"},
                 {"logistic", "1 1:1\n", "1"},
                 {"logistic", "1 1:1\n0 2:1\n", ""},
                 {"mlp:2-3", "2 1:1\n2 2:1\n2 1:1\n", "2"},
                 {"mlp:2-3", "2 1:1\n2 2:1\n1 1:1\n", ""},
                 {"mlp:2-1,loss=squared", "2.5 1:1\n2.5 2:1\n", "2.5"},
                 {"mf:4", "0 1\n1 2\n", ""}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct dp_model model;
        char label[64];
        assert_int_equal(dp_model_open(files[i].model, &model, NULL), DP_OK);
        struct dp_dataset *data = opened(&model, "train", files[i].text, 0, NULL);
        assert_int_equal(dp_baseline_one_label(data, model.labels, label, sizeof label),
                         files[i].one[0] != 0);
        assert_string_equal(label, files[i].one);
        dp_dataset_close(&data);
        dp_model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(of_two_classes),           FILES_TEST(of_weighted_classes),
        FILES_TEST(of_classes_and_numbers),   FILES_TEST(without_those_held_out),
        FILES_TEST(of_labels_that_are_drawn), FILES_TEST(one_label_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
