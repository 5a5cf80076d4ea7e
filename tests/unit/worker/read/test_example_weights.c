/* Goal: a weight is as many examples, in loss and gradients; which weights there may be, and for which files.
 * Method: each model on a file with whole weights, and on one with each row as often as that. */
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/compute/models/model.h"
#include "worker/compute/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS 12

/* What a program gives for a complete file as one minibatch. */
struct step {
    float loss;
    float *gradient[DP_GRAPH_PARAMETERS_MAX];
    size_t floats[DP_GRAPH_PARAMETERS_MAX];
};

static struct step step_of(const struct dp_model *model, const struct dp_dataset *dataset)
{
    struct dp_backend backend;
    struct dp_program *program = NULL;
    struct dp_error err = {0};
    struct step step = {0};
    float *weights[DP_GRAPH_PARAMETERS_MAX];
    const struct dp_batch *batch = formats_filled(dataset, 0, 0);
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    if (dp_program_open(model->graph, &backend, dp_dataset_shape(dataset), &program, &err) != DP_OK)
        fail_msg("%s", err.text);
    const int parameters = dp_graph_parameters(model->graph);
    for (int p = 0; p < parameters; p++) {
        const struct dp_parameter *of = dp_graph_parameter(model->graph, p);
        size_t n =
            of->sparse ? (size_t)batch->group[of->group].distinct * of->width : dp_parameter_floats(of);
        step.floats[p] = n;
        assert_non_null(weights[p] = malloc((n + 1) * sizeof(float)));
        assert_non_null(step.gradient[p] = malloc((n + 1) * sizeof(float)));
        for (size_t i = 0; i < n; i++)
            weights[p][i] = sinf((float)(i + 7 * (size_t)p));
    }
    assert_int_equal(dp_program_start(program, batch, (const float *const *)weights, step.gradient, &err),
                     DP_OK);
    assert_int_equal(dp_program_finish(program, &step.loss, NULL, &err), DP_OK);
    dp_program_close(&program);
    for (int p = 0; p < parameters; p++)
        free(weights[p]);
    dp_backend_close(&backend);
    return step;
}

static const uint32_t repeats[ROWS] = {1, 3, 0, 2, 1, 1, 7, 2, 0, 4, 1, 5};

/* The file, with a column of weights; or with each row as often. */
static const char *rows_of(const char *name, bool weighted, bool numbers, uint32_t classes)
{
    char text[4096];
    size_t len =
        (size_t)snprintf(text, sizeof text, "y,a%s,b%s\n", numbers ? "" : ",c", weighted ? ",w" : "");
    for (uint32_t i = 0; i < ROWS; i++)
        for (uint32_t n = 0; n < (weighted ? 1 : repeats[i]); n++) {
            len +=
                (size_t)snprintf(text + len, sizeof text - len, "%u,%.3f%s,%.3f", i % classes, sin(i + 1.0),
                                 numbers ? "" : (const char *[]){",x", ",y", ",z"}[i % 3], cos(2.0 * i));
            len += (size_t)(weighted ? snprintf(text + len, sizeof text - len, ",%u\n", repeats[i])
                                     : snprintf(text + len, sizeof text - len, "\n"));
        }
    return write_text(name, text);
}

static void a_weight_is_as_many_examples(void **state)
{
    static const struct {
        const char *model;
        bool numbers;
        uint32_t classes;
    } kinds[] = {{"logistic", false, 2},
                 {"fm:3", false, 2},
                 {"fm:3,loss=squared", false, 7},
                 {"mlp:2-4-3", true, 3},
                 {"mlp:2-4-1,loss=logistic", true, 2},
                 {"deepfm:3-4,columns=2,fields=1", false, 2},
                 {"wide-deep:3-4,columns=2,fields=1", false, 2},
                 {"dlrm:3,columns=2,fields=1", false, 2}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct dp_model model;
        struct dp_error err = {0};
        if (dp_model_open(kinds[k].model, &model, &err) != DP_OK)
            fail_msg("%s", err.text);
        struct dp_dataset_options options = {.form = model.form,
                                             .labels = model.labels,
                                             .classes = model.classes,
                                             .width = model.width,
                                             .fields = model.fields,
                                             .label = "y",
                                             .weighs = true,
                                             .batch = 100};
        options.path = rows_of("repeated", false, kinds[k].numbers, kinds[k].classes);
        const struct dp_dataset *repeated = formats_open(&options);
        options.weight = "w";
        options.path = rows_of("weighted", true, kinds[k].numbers, kinds[k].classes);
        const struct dp_dataset *weighted = formats_open(&options);
        struct step a = step_of(&model, weighted), b = step_of(&model, repeated);
        if (fabsf(a.loss - b.loss) > 1e-5f * b.loss)
            fail_msg("%s: loss %g, not %g", kinds[k].model, (double)a.loss, (double)b.loss);
        for (int p = 0; p < dp_graph_parameters(model.graph); p++) {
            float most = 1e-3f;
            assert_int_equal(a.floats[p], b.floats[p]);
            for (size_t i = 0; i < a.floats[p]; i++)
                most = fmaxf(most, fabsf(b.gradient[p][i]));
            for (size_t i = 0; i < a.floats[p]; i++)
                if (!(fabsf(a.gradient[p][i] - b.gradient[p][i]) <= 2e-6f * most))
                    fail_msg("%s: gradient %zu of '%s' is %g, not %g", kinds[k].model, i,
                             dp_graph_parameter(model.graph, p)->table.name, (double)a.gradient[p][i],
                             (double)b.gradient[p][i]);
            free(a.gradient[p]);
            free(b.gradient[p]);
        }
        dp_model_close(&model);
    }
}

static struct dp_dataset_options options_of(void)
{
    return (struct dp_dataset_options){.form = DP_FORM_SPARSE,
                                       .labels = DP_LABELS_BINARY,
                                       .label = "y",
                                       .weight = "w",
                                       .weighs = true,
                                       .batch = 3};
}

/* Weights of all examples, in the order of the file. */
static void weights_are(const struct dp_dataset_options *options, const float *expected, const char *line)
{
    struct dp_understood u;
    const struct dp_dataset *dataset = formats_open(options);
    for (uint64_t i = 0; i < dp_dataset_examples(dataset); i++) {
        const struct dp_batch *b = formats_filled(dataset, 0, i / options->batch);
        assert_true(b->weighted);
        assert_true(fabsf(b->weights[i % options->batch] - expected[i]) < 1e-6f * expected[i]);
    }
    dp_dataset_understood(dataset, options, &u);
    assert_string_equal(u.line[u.lines - 1], line);
}

/* Divided by their mean; of columns and classes together; out of the cache, too. */
static void weights_have_a_mean_of_one(void **state)
{
    static const float column[] = {0.5f, 2.5f, 0.5f, 0.5f}, balanced[] = {2, 2 / 3.f, 2 / 3.f, 2 / 3.f},
                       both[] = {1.2f, 2, 0.4f, 0.4f};
    struct dp_dataset_options options = options_of();
    char cache[160];
    (void)snprintf(cache, sizeof cache, "%s/cache", files_dir);
    options.path = write_text("t", "a,w,y\n1,2,yes\n2,10,no\n3,2,no\n4,2,no\n");
    for (int n = 0; n < 2; n++) {
        weights_are(&options, column, "weight: w (2 to 10)");
        options.cache = cache;
    }
    options.weight = "2"; /* the number of the column */
    options.class_weight = "no = 1, YES=3";
    weights_are(&options, both, "weight: w (2 to 10); class weights: no 1, yes 3");
    options.weight = NULL;
    options.class_weight = "balanced";
    weights_are(&options, balanced, "class weights: no 0.667, yes 2");
    options.label = options.cache = NULL;
    options.path = write_text("libsvm", "1 1:2\n-1 1:3\n-1 2:3\n-1 2:4\n");
    weights_are(&options, balanced, "class weights: -1 0.667, 1 2");
    options.class_weight = "-1=1,1=3";
    weights_are(&options, balanced, "class weights: -1 1, 1 3");
}

static void bad_weights_are_refused(void **state)
{
    static const char *const cells[] = {"-1", "", "NaN", "NA", "x", "1e99", "-0.5"};
    struct dp_dataset_options options = options_of();
    char text[128];
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        (void)snprintf(text, sizeof text, "y,a,w\n0,1,1\n1,2,%s\n", cells[i]);
        formats_refused(options, text, 3, DP_DATA, "column 'w': expected a weight (a number of 0 or more)");
    }
    formats_refused(options, "y,a,w\n0,1,0\n1,2,0\n", 0, DP_DATA,
                    "column 'w': the weights of all examples are 0");
    formats_refused(options, "y,a,b\n0,1,0\n", 1, DP_DATA,
                    "--weight (data.weight) is 'w', which is no column");
    formats_refused(options, "y,w\n0,1\n", 1, DP_DATA, "no column is left to train on");
    options.weight = "4";
    formats_refused(options, "y,a,b\n0,1,0\n", 1, DP_DATA,
                    "--weight (data.weight) is '4', which is no column");
    options.weight = "y";
    formats_refused(options, "y,a\n0,1\n", 1, DP_DATA,
                    "column 'y' is the label and cannot be the weight too");
    options.weight = options.id = "b";
    formats_refused(options, "y,a,b\n0,1,1\n", 1, DP_DATA,
                    "column 'b' is the id and cannot be the weight too");
    options.id = NULL;
    options.ignore = "b";
    formats_refused(options, "y,a,b\n0,1,1\n", 1, DP_DATA,
                    "column 'b' is the weight and cannot be ignored too");
    options = options_of();
    options.label = NULL;
    formats_refused(options, "1 1:2\n", 0, DP_ARGUMENT, "format libsvm has no names of columns: leave");
}

static void bad_class_weights_are_refused(void **state)
{
    static const struct {
        const char *weights, *words;
    } bad[] = {{"maybe=2", "label 'maybe': expected one of the training file's: 'no', 'yes'"},
               {"yes=-1", "--class-weight (data.class_weight): weight: '-1' is not a number from 0 to"},
               {"yes=", "weight: '' is not a number"},
               {"yes", "'yes': expected 'balanced', or classes with their weights"},
               {"yes=nan", "weight: 'nan' is not a number"},
               {"yes=5,no=2,Yes=1", "class 'Yes' has two weights, 5 and 1: leave one"},
               {"yes=0,no=0", "--class-weight (data.class_weight): the weights of all examples are 0"}};
    struct dp_dataset_options options = options_of();
    options.weight = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        options.class_weight = bad[i].weights;
        formats_refused(options, "y,a\nyes,1\nno,2\n", 0, DP_ARGUMENT, bad[i].words);
    }
    options.class_weight = "3=1";
    formats_refused(options, "y,a\n1,1\n0,2\n", 0, DP_ARGUMENT, "label 3: expected 0 or 1");
    options.class_weight = "-1=1";
    formats_refused(options, "y,a\n1,1\n0,2\n", 0, DP_ARGUMENT, "label -1: the file's labels are 0 and 1");
    options.class_weight = "0=1";
    formats_refused(options, "y,a\n1,1\n-1,2\n", 0, DP_ARGUMENT, "label 0: the file's labels are -1 and 1");
    options.class_weight = "yes=1";
    formats_refused(options, "y,a\n1,1\n0,2\n", 0, DP_ARGUMENT, "label: 'yes' is not a number");
    options.labels = DP_LABELS_ANY;
    formats_refused(options, "y,a\n1,1\n0,2\n", 0, DP_ARGUMENT, "these labels are no classes");
}

/* The schema has the column: a further file needs it, whatever its place; a test file does not. */
static void further_files_need_the_column(void **state)
{
    static const float expected[] = {1.5f, 0.5f};
    struct dp_dataset_options options = options_of();
    options.path = write_text("first", "w,y,a\n1,0,1\n2,1,2\n");
    const struct dp_schema *schema = dp_dataset_schema(formats_open(&options));
    options = options_of();
    options.like = schema;
    options.missing_empty = true;
    formats_refused(options, "y,a\n0,1\n1,2\n", 1, DP_DATA,
                    "the column 'w' of weights (--weight, data.weight) is missing");
    for (int named = 0; named < 3; named++) {
        options.weight = (const char *[]){NULL, "w", "1"}[named];
        options.path = write_text("further", "y,a,w\n0,1,6\n1,2,2\n");
        weights_are(&options, expected, "weight: w (2 to 6)");
    }
    for (int other = 0; other < 3; other++) { /* by number: of the first file */
        options.weight = (const char *[]){"a", "3", "9"}[other];
        formats_refused(options, "y,a,w\n0,1,6\n", 0, DP_ARGUMENT,
                        "column 'w' is not a weight, but it was a weight");
    }
    options.weight = NULL;
    options.weighs = false;
    options.path = write_text("test", "y,a\n0,1\n1,2\n");
    assert_false(formats_filled(formats_open(&options), 0, 0)->weighted);
    options.path = write_text("bad", "y,a,w\n0,1,x\n1,2,-1\n");
    assert_false(formats_filled(formats_open(&options), 0, 0)->weighted);
    options = options_of();
    options.weight = NULL;
    options.path = write_text("plain", "y,a\n0,1\n1,2\n");
    options.like = dp_dataset_schema(formats_open(&options));
    options.weight = "w";
    formats_refused(options, "y,a,w\n0,1,6\n", 0, DP_ARGUMENT, "the model was trained without weights");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(a_weight_is_as_many_examples),  FILES_TEST(weights_have_a_mean_of_one),
        FILES_TEST(bad_weights_are_refused),       FILES_TEST(bad_class_weights_are_refused),
        FILES_TEST(further_files_need_the_column),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
