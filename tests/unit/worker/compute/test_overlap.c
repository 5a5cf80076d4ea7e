/* Goal    steps that are started and finished give the bits of forward and backward, on the CPU and on a device that copies
 *         late; failures leave nothing under way.
 * Method  late_device.h, which ends the program when what was lent changes, or is read, too early. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "late_device.h"
#include "worker/compute/models/model.h"
#include "worker/compute/pinned.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 5

static struct dp_backend cpu(void)
{
    struct dp_backend backend;
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    return backend;
}

/* Batches, and what is right for each. */
static void steps_open(struct fixture *steps, const struct dp_graph *graph, uint64_t seed)
{
    for (int i = 0; i < STEPS; i++) {
        fixture_open(&steps[i], graph, cpu(), 9, 0.5f, seed + 10 * (uint64_t)i);
        fixture_run(&steps[i]);
    }
}

static void steps_close(struct fixture *steps)
{
    for (int i = 0; i < STEPS; i++)
        fixture_close(&steps[i]);
}

struct flying {
    struct dp_program *program;
    struct dp_backend backend;
    struct fixture *steps;
    float *gradients[STEPS][DP_GRAPH_PARAMETERS_MAX];
};

static void flying_open(struct flying *f, struct fixture *steps, struct dp_backend *backend)
{
    *f = (struct flying){.steps = steps, .backend = *backend};
    assert_int_equal(dp_program_open(steps->graph, backend, &steps->worst, &f->program, NULL), DP_OK);
    for (int i = 0; i < STEPS; i++)
        for (int p = 0; p < dp_graph_parameters(steps->graph); p++) {
            void *block;
            assert_int_equal(dp_pinned_new(backend, steps[i].floats[p] * sizeof(float), &block, NULL), DP_OK);
            f->gradients[i][p] = block;
            if (backend->ops->pin)
                assert_int_equal(backend->ops->pin(backend->self, steps[i].weights[p],
                                                   steps[i].floats[p] * sizeof(float), NULL),
                                 DP_OK);
        }
}

static void flying_close(struct flying *f)
{
    dp_program_close(&f->program);
    for (int i = 0; i < STEPS; i++)
        for (int p = 0; p < DP_GRAPH_PARAMETERS_MAX; p++) {
            void *block = f->gradients[i][p];
            if (block && f->backend.ops->unpin)
                f->backend.ops->unpin(f->backend.self, f->steps[i].weights[p]);
            dp_pinned_free(&f->backend, &block);
        }
}

static enum dp_status start(struct flying *f, int i, struct dp_error *err)
{
    return dp_program_start(f->program, &f->steps[i].batch, (const float *const *)f->steps[i].weights,
                            f->gradients[i], err);
}

static void finish(struct flying *f, int i)
{
    float loss = -1;
    while (!dp_program_done(f->program))
        continue;
    assert_int_equal(dp_program_finish(f->program, &loss, NULL, NULL), DP_OK);
    assert_memory_equal(&loss, &f->steps[i].loss, sizeof loss);
    for (int p = 0; p < dp_graph_parameters(f->steps->graph); p++)
        assert_memory_equal(f->gradients[i][p], f->steps[i].gradients[p],
                            f->steps[i].floats[p] * sizeof(float));
}

static void fly(struct flying *f)
{
    int depth = (int)dp_program_depth(f->program);
    for (int i = 0; i < STEPS + depth - 1; i++) {
        if (i < STEPS)
            assert_int_equal(start(f, i, NULL), DP_OK);
        if (i >= depth - 1)
            finish(f, i - depth + 1);
    }
    assert_true(dp_program_done(f->program));
}

static const char *const models[] = {"logistic",
                                     "mlp:12-7-3",
                                     "fm:5",
                                     "mf:4,loss=bpr",
                                     "wide-deep:4-8,fields=3,columns=2,dropout=0.3",
                                     "dlrm:4,bottom=6,top=5,fields=3,columns=2",
                                     "lstm:4-3-5,classes=7,recompute=1"};

static void overlapping_steps_give_equal_bits(void **state)
{
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        struct dp_model model;
        struct dp_error err = {0};
        struct fixture steps[STEPS];
        struct flying f;
        struct late_device late;
        struct dp_backend device, host = cpu();
        if (dp_model_open(models[m], &model, &err) != DP_OK)
            fail_msg("%s: %s", models[m], err.text);
        steps_open(steps, model.graph, m);
        late_device_init(&late, &device);
        flying_open(&f, steps, &device);
        assert_int_equal(dp_program_depth(f.program), 2);
        fly(&f);
        fly(&f);
        assert_int_equal(late.overlapped, 2 * (STEPS - 1));
        assert_int_equal(late.unpinned, 0);
        flying_close(&f);
        assert_int_equal(late.pins, 0);

        flying_open(&f, steps, &host);
        assert_int_equal(dp_program_depth(f.program), 1);
        fly(&f);
        flying_close(&f);
        steps_close(steps);
        dp_model_close(&model);
    }
}

static void passes_that_wait_give_equal_bits(void **state)
{
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        struct dp_model model;
        struct late_device late;
        struct dp_backend device;
        struct fixture want, have;
        assert_int_equal(dp_model_open(models[m], &model, NULL), DP_OK);
        late_device_init(&late, &device);
        fixture_open(&want, model.graph, cpu(), 9, 0.5f, m);
        fixture_open(&have, model.graph, device, 9, 0.5f, m);
        fixture_run(&want);
        for (int i = 0; i < 2; i++) {
            fixture_run(&have);
            assert_memory_equal(&have.loss, &want.loss, sizeof have.loss);
            for (int p = 0; p < dp_graph_parameters(model.graph); p++)
                assert_memory_equal(have.gradients[p], want.gradients[p], want.floats[p] * sizeof(float));
        }
        fixture_close(&have);
        fixture_close(&want);
        dp_model_close(&model);
    }
}

/* Every copy of a step fails once, with another step under way, which stays right. */
static void failures_leave_nothing_under_way(void **state)
{
    struct dp_model model;
    struct fixture steps[STEPS];
    struct flying f;
    struct late_device late;
    struct dp_backend device;
    assert_int_equal(dp_model_open("wide-deep:4-8,fields=3,columns=2", &model, NULL), DP_OK);
    steps_open(steps, model.graph, 3);
    late_device_init(&late, &device);
    flying_open(&f, steps, &device);
    int failed = 0;
    for (;; failed++) {
        struct dp_error err = {0};
        assert_int_equal(start(&f, 0, NULL), DP_OK);
        late.copies = 0;
        late.fail_copy_at = failed + 1;
        enum dp_status st = start(&f, 1, &err);
        late.fail_copy_at = 0;
        if (st == DP_OK)
            break;
        assert_int_equal(st, DP_IO);
        assert_non_null(strstr(err.text, "late copy failed"));
        finish(&f, 0);
    }
    assert_true(failed > 10);
    finish(&f, 0);
    finish(&f, 1);

    struct dp_error err = {0};
    float loss;
    assert_int_equal(start(&f, 0, NULL), DP_OK);
    assert_int_equal(start(&f, 1, NULL), DP_OK);
    late.fail_wait_at = late.waits + 1;
    assert_int_equal(dp_program_finish(f.program, &loss, NULL, &err), DP_IO);
    assert_non_null(strstr(err.text, "late kernel failed"));
    assert_true(dp_program_done(f.program));
    fly(&f);

    /* Closed, or drained, with steps under way. */
    assert_int_equal(start(&f, 0, NULL), DP_OK);
    dp_program_drain(f.program);
    assert_int_equal(late.slot[0].ins + late.slot[1].ins, 0);
    assert_int_equal(start(&f, 0, NULL), DP_OK);
    flying_close(&f);
    assert_int_equal(late.slot[0].ins + late.slot[1].ins, 0);
    steps_close(steps);
    dp_model_close(&model);
}

static enum dp_status no_pin(void *self, void *host, size_t bytes, struct dp_error *err)
{
    return dp_fail(err, DP_NOMEM, "the test pins nothing");
}

static bool ignore(void *self, void *host)
{
    return true;
}

/* A device takes a batch in one copy, however many lists it has: beside it each parameter goes in and out, and the loss out. */
static void a_batch_is_one_copy(void **state)
{
    static const char *const texts[] = {"logistic", "mlp:12-7-3",
                                        "dlrm:4,bottom=6,top=5,fields=9,columns=2,tables=fields"};
    for (size_t m = 0; m < sizeof texts / sizeof texts[0]; m++) {
        struct dp_model model;
        struct fixture steps[STEPS];
        struct flying f;
        struct late_device late;
        struct dp_backend device;
        assert_int_equal(dp_model_open(texts[m], &model, NULL), DP_OK);
        steps_open(steps, model.graph, m);
        late_device_init(&late, &device);
        late.ops.wants_by_slot = m % 2 == 0;
        flying_open(&f, steps, &device);
        fly(&f);
        assert_int_equal(late.copies, STEPS * (1 + 2 * dp_graph_parameters(model.graph) + 1));
        flying_close(&f);
        steps_close(steps);
        dp_model_close(&model);
    }
}

static void pinned_memory(void **state)
{
    struct late_device late;
    struct dp_backend device;
    void *block = NULL;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page + page / 4;
    late_device_init(&late, &device);
    assert_int_equal(dp_pinned_new(&device, bytes, &block, NULL), DP_OK);
    assert_int_equal(late.pins, 1);
    assert_int_equal((uintptr_t)block % page, 0);
    assert_int_equal(late.pinned[0].bytes, 2 * page); /* its pages are nobody else's */
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((char *)block)[i], 0);
    dp_pinned_free(&device, &block);
    assert_null(block);
    assert_int_equal(late.pins, 0);

    /* What a lost device may still write to stays memory of its own. */
    assert_int_equal(dp_pinned_new(&device, bytes, &block, NULL), DP_OK);
    void *left = block;
    late.lost = true;
    dp_pinned_free(&device, &block);
    assert_null(block);
    memset(left, 1, bytes);
    free(left);
    late.lost = false;

    late.ops.pin = no_pin;
    late.ops.unpin = ignore;
    assert_int_equal(dp_pinned_new(&device, 10, &block, NULL), DP_OK);
    dp_pinned_free(&device, &block);
    assert_int_equal(dp_pinned_new(&device, SIZE_MAX - 5, &block, NULL), DP_NOMEM);
    assert_int_equal(dp_pinned_new(NULL, 10, &block, NULL), DP_OK);
    dp_pinned_free(NULL, &block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlapping_steps_give_equal_bits),
        cmocka_unit_test(passes_that_wait_give_equal_bits),
        cmocka_unit_test(failures_leave_nothing_under_way),
        cmocka_unit_test(a_batch_is_one_copy),
        cmocka_unit_test(pinned_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
