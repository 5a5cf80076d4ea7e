/* Goal    what a GPU lacks for its first kernels, or what faults in one, is said when a program is opened, with cause and remedy.
 * Method  the emulated device: launches of the first step, more and more apart, are refused for want of memory, or fault; then the steps that
 *         follow a first step are compared with those without one, bit by bit. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "tests/gpu/emulator/emulator.h"
#include "tests/gpu/emulator/errors.h"
#include "worker/compute/device.h"
#include "worker/compute/models/model.h"

#include <dlfcn.h>
#include <string.h>

#define STEPS 4u

static struct emulator *device;

static const char *const models[] = {"mlp:4-6-3", "deepfm:4-8-4,dropout=0.5", "dlrm:4,bottom=8,top=8",
                                     "lstm:3-4-5,classes=6"};
#define MODELS (sizeof models / sizeof models[0])

static int find_device(void **state)
{
    void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    device = library ? dlsym(library, "emulator") : NULL;
    return device ? 0 : -1;
}

static void opened(const char *text, struct dp_model *model, struct dp_backend *backend)
{
    const struct dp_device_options options = {.device = "cuda", .precision = "f32", .threads = 1};
    struct dp_error err = {0};
    if (dp_model_open(text, model, &err) != DP_OK || dp_device_open(&options, backend, NULL, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static struct dp_batch_shape shape_of(const struct dp_graph *graph)
{
    struct dp_batch_shape shape = {
        .examples = 9, .groups = (uint32_t)dp_graph_groups(graph), .lists = (uint32_t)dp_graph_lists(graph)};
    for (uint32_t l = 0; l < shape.lists; l++) {
        struct dp_graph_list list = dp_graph_list_at(graph, (int)l);
        shape.list[l] = (struct dp_list_shape){
            .group = list.group, .entries = 9 * (list.each ? list.each : 3), .each = list.each};
    }
    return shape;
}

static void says(const struct dp_error *err, const char *what)
{
    if (!strstr(err->text, what))
        fail_msg("'%s' does not say '%s'", err->text, what);
}

/* Opens a program while the launch with number n from now on fails. */
static enum dp_status open_with(const char *text, uint64_t n, bool faults, struct dp_error *err)
{
    struct dp_model model;
    struct dp_backend backend;
    struct dp_program *program;
    size_t used = device->used;
    opened(text, &model, &backend);
    const struct dp_batch_shape worst = shape_of(model.graph);
    device->refused_at = faults ? 0 : device->launches + n;
    device->refused_code = cudaErrorMemoryAllocation;
    device->fault_at = faults ? device->launches + n : 0;
    enum dp_status st = dp_program_open(model.graph, &backend, &worst, &program, err);
    assert_true((st == DP_OK) == (program != NULL));
    dp_program_close(&program);
    dp_backend_close(&backend);
    dp_model_close(&model);
    assert_int_equal(device->used, used);
    device->refused_at = device->fault_at = 0;
    device->faulty = false;
    return st;
}

static void a_kernel_that_finds_no_memory_fails_open(void **state)
{
    for (size_t m = 0; m < MODELS; m++) {
        struct dp_error err = {0};
        uint64_t n = 1;
        for (enum dp_status st; (st = open_with(models[m], n, false, &err)) != DP_OK; n += 1 + n / 4) {
            assert_int_equal(st, DP_NOMEM);
            says(&err, "the first step, of zeros, on the device: out of device memory");
            says(&err,
                 "end other programs that use the device (nvidia-smi), or use a smaller batch or model");
        }
        assert_true(n > 5);
    }
}

static void a_kernel_that_faults_fails_open(void **state)
{
    for (size_t m = 0; m < MODELS; m++) {
        struct dp_error err = {0};
        uint64_t n = 1;
        for (enum dp_status st; (st = open_with(models[m], n, true, &err)) != DP_OK; n += 1 + n / 4) {
            assert_int_equal(st, DP_IO);
            says(&err, "the first step, of zeros, on the device: CUDA, a fault on the device, seen in ");
            says(&err, "restart it");
        }
        assert_true(n > 5);
    }
}

/* Two steps under way at a time, each with its own gradients, then a forward and backward; device memory is full of other numbers at
 * open (emulator), so what a step reads without having written it differs. */
static void train(struct fixture *f, float *losses)
{
    struct dp_error err = {0};
    const float *const *weights = (const float *const *)f->weights;
    float *gradients[2][DP_GRAPH_PARAMETERS_MAX];
    for (int p = 0; p < dp_graph_parameters(f->graph); p++)
        for (int s = 0; s < 2; s++)
            gradients[s][p] = s == 0 ? f->gradients[p] : test_calloc(f->floats[p] + 1, sizeof(float));
    for (uint32_t s = 0; s < STEPS + 2; s++) {
        f->batch.number = s;
        if ((s >= 2 && dp_program_finish(f->program, &losses[s - 2], NULL, &err) != DP_OK) ||
            (s < STEPS && dp_program_start(f->program, &f->batch, weights, gradients[s % 2], &err) != DP_OK))
            fail_msg("%s", err.text);
    }
    for (int p = 0; p < dp_graph_parameters(f->graph); p++)
        test_free(gradients[1][p]);
    fixture_run(f);
    losses[STEPS] = f->loss;
}

static void it_leaves_no_trace(void **state)
{
    for (size_t m = 0; m < MODELS; m++) {
        struct dp_model model;
        struct dp_backend backend[2];
        struct dp_backend_ops plain;
        struct fixture f[2];
        float losses[2][STEPS + 1];
        uint64_t launches[2];
        for (int first = 0; first < 2; first++) {
            opened(models[m], &model, &backend[first]);
            if (!first) {
                plain = *backend[first].ops;
                plain.loads_at_first_use = false;
                backend[first].ops = &plain;
            }
            fixture_open(&f[first], model.graph, backend[first], 7, 0.5f, 11);
            launches[first] = device->launches;
            train(&f[first], losses[first]);
            launches[first] = device->launches - launches[first];
            if (!first)
                continue;
            assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
            for (int p = 0; p < dp_graph_parameters(model.graph); p++)
                assert_memory_equal(f[0].gradients[p], f[1].gradients[p], f[0].floats[p] * sizeof(float));
        }
        assert_int_equal(launches[0], launches[1]);
        for (int first = 0; first < 2; first++)
            fixture_close(&f[first]);
        dp_model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_finds_no_memory_fails_open),
        cmocka_unit_test(a_kernel_that_faults_fails_open),
        cmocka_unit_test(it_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, find_device, NULL);
}
