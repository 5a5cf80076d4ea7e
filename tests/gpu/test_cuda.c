/* CUDA against the CPU, which is the oracle: in every model, with a tolerance of its own (operations alone: test_cuda_ops.c); equal
 * bits when it is done again; failures by name (faults: test_cuda_fault.c). Skipped where there is no GPU; with EMULATED, smaller,
 * on an emulated one (emulator/). */
#include "tests/lib/gpu.h"
#include "tests/lib/test.h"

#include "fixture.h"
#include "worker/compute/device.h"
#include "worker/compute/models/model.h"
#include "worker/compute/pinned.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef EMULATED
#define MANY 40u
#define SOME 20u
#else
#define MANY examples(700, 40)
#define SOME examples(300, 20)

/* Under compute-sanitizer (sanitize.sh), which makes kernels 10 to 1,000 times slower, as few as on the emulated device. */
static uint32_t examples(uint32_t count, uint32_t sanitized)
{
    return getenv("DP_SANITIZED") ? sanitized : count;
}
#endif

static struct dp_backend device(const char *name, const char *precision)
{
    const struct dp_device_options options = {.device = name, .precision = precision, .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    if (dp_device_open(&options, &backend, NULL, &err) != DP_OK)
        fail_msg("%s", err.text);
    return backend;
}

static double worst_of(const float *have, const float *want, size_t n)
{
    double scale = 1e-6, worst = 0;
    for (size_t i = 0; i < n; i++)
        scale = fmax(scale, fabs((double)want[i]));
    for (size_t i = 0; i < n; i++) {
        double off = fabs((double)have[i] - (double)want[i]) / scale;
        if (!(off <= worst))
            worst = isfinite(off) ? off : INFINITY;
    }
    return worst;
}

/* Loss, outputs and gradients of a model on both; returns the worst difference, relative to each array's greatest. */
static double compare(const char *text, const char *precision, uint32_t examples, uint64_t seed)
{
    struct dp_model model;
    struct dp_error err = {0};
    struct fixture cpu, gpu;
    if (dp_model_open(text, &model, &err) != DP_OK)
        fail_msg("%s", err.text);
    fixture_open(&cpu, model.graph, device("cpu", "f32"), examples, 0.5f, seed);
    fixture_open(&gpu, model.graph, device("cuda", precision), examples, 0.5f, seed);
    fixture_run(&cpu);
    fixture_run(&gpu);
    uint32_t width = dp_graph_node(model.graph, dp_graph_output(model.graph))->width;
    double worst =
        fmax(worst_of(&gpu.loss, &cpu.loss, 1), worst_of(gpu.output, cpu.output, (size_t)examples * width));
    float *first[DP_GRAPH_PARAMETERS_MAX];
    for (int p = 0; p < dp_graph_parameters(model.graph); p++) {
        worst = fmax(worst, worst_of(gpu.gradients[p], cpu.gradients[p], cpu.floats[p]));
        assert_non_null(first[p] = malloc((gpu.floats[p] + 1) * sizeof(float)));
        memcpy(first[p], gpu.gradients[p], gpu.floats[p] * sizeof(float));
    }
    fixture_run(&gpu);
    for (int p = 0; p < dp_graph_parameters(model.graph); p++) {
        assert_memory_equal(first[p], gpu.gradients[p], gpu.floats[p] * sizeof(float));
        free(first[p]);
    }
    fixture_close(&gpu);
    fixture_close(&cpu);
    dp_model_close(&model);
    return worst;
}

static void models_agree_with_the_cpu(void **state)
{
    static const struct {
        const char *text;
        double tolerance;
    } cases[] = {{"logistic", 1e-5},
                 {"mlp:64-33-10", 1e-5},
                 {"mlp:64-33-1,loss=squared,activation=tanh", 1e-5},
                 {"mlp:20-300-2,activation=sigmoid", 1e-5},
                 {"fm:5", 1e-5},
                 {"fm:64,loss=squared", 1e-5},
                 {"mf:16", 1e-5},
                 {"mf:70,loss=bpr", 1e-5},
                 {"mf:16,loss=squared", 1e-5},
                 {"neumf:8-16-9", 1e-5},
                 {"wide-deep:8-32-16,fields=26,columns=13,dropout=0.3", 1e-5},
                 {"deepfm:8-32-16,fields=26,columns=13", 1e-5},
                 {"deepfm:8-32-16,fields=6,columns=13,lists=3", 1e-5},
                 {"dlrm:64,bottom=32,top=64,fields=26,columns=13", 1e-5},
                 {"dlrm:16,bottom=32,top=64,fields=5,columns=13,tables=fields", 1e-5},
                 {"skipgram:50", 1e-5},
                 {"lstm:6-8-16,classes=40", 2e-5},
                 {"lstm:6-8-16,classes=40,recompute=1", 2e-5}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double worst = 0;
        for (uint64_t seed = 1; seed <= 3; seed++)
            worst = fmax(worst, compare(cases[i].text, "f32", seed == 3 ? MANY : 5 + (uint32_t)seed, seed));
        print_message("%-60s worst %.2g of %.0g\n", cases[i].text, worst, cases[i].tolerance);
        assert_true(worst <= cases[i].tolerance);
    }
}

/* A step whose weights and gradients are copied while the host goes on. */
struct step {
    struct fixture f;
    const struct dp_backend *pins;
    float *alone[DP_GRAPH_PARAMETERS_MAX]; /* what is right */
    float *weights[DP_GRAPH_PARAMETERS_MAX], *gradients[DP_GRAPH_PARAMETERS_MAX];
};

static float *pinned(const struct dp_backend *backend, size_t floats)
{
    struct dp_error err = {0};
    void *block;
    if (dp_pinned_new(backend, (floats + 1) * sizeof(float), &block, &err) != DP_OK)
        fail_msg("%s", err.text);
    return block;
}

static void step_open(struct step *step, const struct dp_graph *graph, const struct dp_backend *pins,
                      uint64_t seed)
{
    fixture_open(&step->f, graph, device("cuda", "f32"), SOME, 0.5f, seed);
    fixture_run(&step->f);
    step->pins = pins ? pins : &step->f.backend;
    for (int p = 0; p < dp_graph_parameters(graph); p++) {
        size_t bytes = step->f.floats[p] * sizeof(float);
        step->weights[p] = pinned(step->pins, step->f.floats[p]);
        step->gradients[p] = pinned(step->pins, step->f.floats[p]);
        assert_non_null(step->alone[p] = malloc(bytes + 1));
        memcpy(step->weights[p], step->f.weights[p], bytes);
        memcpy(step->alone[p], step->f.gradients[p], bytes);
        memset(step->gradients[p], 0xff, bytes);
    }
}

static void step_close(struct step *step)
{
    for (int p = 0; p < dp_graph_parameters(step->f.graph); p++) {
        void *blocks[] = {step->weights[p], step->gradients[p]};
        dp_pinned_free(step->pins, &blocks[0]);
        dp_pinned_free(step->pins, &blocks[1]);
        free(step->alone[p]);
    }
    fixture_close(&step->f);
}

/* Two steps under way at a time: each with the bits that it has alone, and times of its own. */
static void steps_overlap(const char *text)
{
    struct dp_model model;
    struct dp_error err = {0};
    struct step steps[4];
    int waited = 0;
    if (dp_model_open(text, &model, &err) != DP_OK)
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < 4; i++)
        step_open(&steps[i], model.graph, i > 0 ? &steps[0].f.backend : NULL, 1 + 2 * i);
    struct dp_program *program = steps[0].f.program;
    assert_int_equal(dp_program_depth(program), 2);
    for (int i = 0; i < 5; i++) {
        if (i < 4 && dp_program_start(program, &steps[i].f.batch, (const float *const *)steps[i].weights,
                                      steps[i].gradients, &err) != DP_OK)
            fail_msg("%s", err.text);
        waited += !dp_program_done(program);
        if (i == 0)
            continue;
        const struct step *step = &steps[i - 1];
        struct dp_device_times times;
        float loss;
        if (dp_program_finish(program, &loss, &times, &err) != DP_OK)
            fail_msg("%s", err.text);
        assert_memory_equal(&loss, &step->f.loss, sizeof loss);
        assert_true(times.copy_in > 0 && times.compute > 0 && times.copy_out > 0);
        print_message("%.24s: in %.0f us, compute %.0f us, out %.0f us\n", text, times.copy_in * 1e6,
                      times.compute * 1e6, times.copy_out * 1e6);
        for (int p = 0; p < dp_graph_parameters(model.graph); p++)
            assert_memory_equal(step->alone[p], step->gradients[p], step->f.floats[p] * sizeof(float));
    }
    print_message("%.24s: the host was back before the device %d times of 5\n", text, waited);
    for (int i = 3; i >= 0; i--)
        step_close(&steps[i]);
    dp_model_close(&model);
}

static void overlapping_steps_give_equal_bits(void **state)
{
    steps_overlap("mlp:64-33-10");
    steps_overlap("fm:16");
    steps_overlap("wide-deep:8-32-16,fields=26,columns=13,dropout=0.3");
    steps_overlap("dlrm:64,bottom=32,top=64,fields=26,columns=13");
}

/* Near, but not the same. f32's own bound is what gives the others' a meaning. cuBLAS may take TF32 where bf16 is allowed, and does on
 * an H100 (13.0): its error is between the two. tanh, since a rounding that flips the sign of ReLU's input changes a gradient by all of
 * it. */
static void lower_precision_is_near(void **state)
{
    static const char model[] = "mlp:512-256-10,activation=tanh";
    double f32 = compare(model, "f32", SOME, 1), tf32 = compare(model, "tf32", SOME, 1),
           bf16 = compare(model, "bf16", SOME, 1);
    print_message("f32 %.2g, tf32 %.2g, bf16 %.2g\n", f32, tf32, bf16);
    assert_true(f32 < 1e-5);
    assert_true(tf32 > 2 * f32 && tf32 < 5e-3);
    assert_true(bf16 > tf32 / 2 && bf16 < 5e-2);
}

static void what_is_too_large_is_said(void **state)
{
    struct dp_model model;
    struct dp_program *program = NULL;
    struct dp_error err = {0};
    struct dp_backend backend = device("cuda", "f32");
    const struct dp_batch_shape worst = {.examples = 1u << 20, .width = 64};
    assert_int_equal(dp_model_open("mlp:64-4000000-2", &model, &err), DP_OK);
    assert_int_equal(dp_program_open(model.graph, &backend, &worst, &program, &err), DP_NOMEM);
    assert_non_null(strstr(err.text, "a smaller batch or model needs less"));
    dp_backend_close(&backend);
    dp_model_close(&model);
}

static void no_such_device_is_said(void **state)
{
    const struct dp_device_options options = {.device = "cuda:999", .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    assert_int_equal(dp_device_open(&options, &backend, NULL, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "no CUDA device 999"));
}

/* --look: whether there is a device, and no more; --lacks WHAT: as if this were lacking (sanitize.sh). --only TEST: that test alone
 * (emulator/finds.sh). */
int main(int argc, char **argv)
{
    const struct dp_device_options options = {.device = "cuda", .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    if (argc > 2 && strcmp(argv[1], "--lacks") == 0)
        return dp_gpu_test_lacks(argv[2]);
    if (dp_device_open(&options, &backend, NULL, &err) != DP_OK) {
#ifdef EMULATED /* which is always there */
        (void)printf("the emulated device: %s\n", err.text);
        return 1;
#else
        return dp_gpu_test_lacks(err.text);
#endif
    }
    dp_backend_close(&backend);
    if (argc > 1 && strcmp(argv[1], "--look") == 0)
        return 0;
    if (argc > 2 && strcmp(argv[1], "--only") == 0)
        cmocka_set_test_filter(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_agree_with_the_cpu), cmocka_unit_test(overlapping_steps_give_equal_bits),
        cmocka_unit_test(lower_precision_is_near),   cmocka_unit_test(what_is_too_large_is_said),
        cmocka_unit_test(no_such_device_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
