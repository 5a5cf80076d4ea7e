/* Goal    the first step that open takes on a backend that loads operations at their first use: it is as large as the worst batch,
 *         copies from and to pinned memory alone, leaves nothing behind, and its failure is open's.
 * Method  the late device, told to load late, beside itself where it does not: equal bits of all that follows. Each of its copies fails
 *         once. The emulated GPU: tests/gpu/emulator/test_emulated_first_step.c. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "late_device.h"
#include "worker/compute/models/model.h"

#include <string.h>

#define STEPS 5u

static const char *const models[] = {"mlp:4-6-3", "deepfm:4-8-4,dropout=0.5",
                                     "dlrm:4,bottom=8,top=8,tables=fields", "mf:4", "lstm:4-5-6,classes=7"};
#define MODELS (sizeof models / sizeof models[0])

static void open_model(const char *text, struct dp_model *model)
{
    struct dp_error err = {0};
    if (dp_model_open(text, model, &err) != DP_OK)
        fail_msg("%s", err.text);
}

/* The losses of a few steps by start and finish, and the last one's gradients, which stay in f. */
static void losses_of(const struct dp_model *model, struct late_device *late, bool first, struct fixture *f,
                      float *losses)
{
    struct dp_backend backend;
    struct dp_error err = {0};
    late_device_init(late, &backend);
    late->ops.loads_at_first_use = first;
    fixture_open(f, model->graph, backend, 6, 0.5f, 3);
    assert_int_equal(late->unpinned, 0);
    assert_int_equal(late->waits, first);
    assert_int_equal(late->pins, 1); /* the program's own */
    for (uint32_t s = 0; s < STEPS; s++) {
        f->batch.number = s;
        if (dp_program_start(f->program, &f->batch, (const float *const *)f->weights, f->gradients, &err) !=
                DP_OK ||
            dp_program_finish(f->program, &losses[s], NULL, &err) != DP_OK)
            fail_msg("%s", err.text);
        assert_int_equal(late->at, s % DP_BACKEND_SLOTS);
    }
}

static void it_leaves_no_trace(void **state)
{
    for (size_t m = 0; m < MODELS; m++) {
        static struct late_device late[2];
        struct dp_model model;
        struct fixture f[2];
        float losses[2][STEPS];
        open_model(models[m], &model);
        for (int first = 0; first < 2; first++)
            losses_of(&model, &late[first], first, &f[first], losses[first]);
        assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
        for (int p = 0; p < dp_graph_parameters(model.graph); p++)
            assert_memory_equal(f[0].gradients[p], f[1].gradients[p], f[0].floats[p] * sizeof(float));
        for (int first = 0; first < 2; first++)
            fixture_close(&f[first]);
        dp_model_close(&model);
    }
}

/* The worst batch of a model, or that of a data set with fewer examples than a minibatch has. */
static struct dp_batch_shape shape_of(const struct dp_graph *graph, uint32_t examples, uint32_t entries)
{
    struct dp_batch_shape shape = {.examples = examples,
                                   .groups = (uint32_t)dp_graph_groups(graph),
                                   .lists = (uint32_t)dp_graph_lists(graph)};
    for (uint32_t l = 0; l < shape.lists; l++) {
        struct dp_graph_list list = dp_graph_list_at(graph, (int)l);
        shape.list[l] = (struct dp_list_shape){
            .group = list.group, .entries = (list.each ? list.each : 3) * entries, .each = list.each};
    }
    return shape;
}

static void what_fails_in_it_fails_open(void **state)
{
    static struct late_device late;
    struct dp_model model;
    struct dp_backend backend;
    struct dp_program *program;
    struct dp_error err = {0};
    int failed = 0;
    open_model(models[1], &model);
    const struct dp_batch_shape worst = shape_of(model.graph, 8, 8);
    for (bool more = true; more; failed += more) {
        late_device_init(&late, &backend);
        late.ops.loads_at_first_use = true;
        late.fail_copy_at = failed + 1;
        enum dp_status st = dp_program_open(model.graph, &backend, &worst, &program, &err);
        more = st != DP_OK;
        assert_true(more == (program == NULL));
        if (more && strcmp(err.text, "the first step, of zeros, on the device: late copy failed") != 0)
            fail_msg("'%s'", err.text);
        dp_program_close(&program);
        assert_int_equal(late.pins, 0);
    }
    assert_true(failed > 3);
    late_device_init(&late, &backend);
    late.ops.loads_at_first_use = true;
    late.fail_wait_at = 1;
    assert_int_equal(dp_program_open(model.graph, &backend, &worst, &program, &err), DP_IO);
    assert_string_equal(err.text, "the first step, of zeros, on the device: late kernel failed");
    dp_model_close(&model);
}

static void data_smaller_than_a_batch_are_no_error(void **state)
{
    for (size_t m = 0; m < MODELS; m++)
        for (uint32_t entries = 0; entries < 9; entries += 4) {
            static struct late_device late;
            struct dp_model model;
            struct dp_backend backend;
            struct dp_program *program;
            struct dp_error err = {0};
            open_model(models[m], &model);
            late_device_init(&late, &backend);
            late.ops.loads_at_first_use = true;
            const struct dp_batch_shape worst = shape_of(model.graph, 8, entries);
            if (dp_program_open(model.graph, &backend, &worst, &program, &err) != DP_OK)
                fail_msg("%s, %u entries: %s", models[m], (unsigned)entries, err.text);
            dp_program_close(&program);
            dp_model_close(&model);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_leaves_no_trace),
        cmocka_unit_test(what_fails_in_it_fails_open),
        cmocka_unit_test(data_smaller_than_a_batch_are_no_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
