/* Program: what surrounds the arithmetic: short batches, one backward a forward, refusal of batches that do
 * not fit, no allocation in a step, equal bits in repetition and on a backend whose memory is its own. */
#include "tests/lib/test.h"

#include "fake_device.h"
#include "fixture.h"
#include "worker/compute/models/model.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Counted by the linker's --wrap. The counter is a global since malloc has no other way to be told. */
static size_t allocations;
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    allocations++;
    return __real_realloc(block, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    allocations++;
    return __real_aligned_alloc(alignment, size);
}

static struct dp_backend cpu(void)
{
    struct dp_backend backend;
    assert_int_equal(dp_backend_cpu(1, &backend, NULL), DP_OK);
    return backend;
}

static struct dp_model model(const char *text)
{
    struct dp_model out;
    struct dp_error err = {0};
    if (dp_model_open(text, &out, &err) != DP_OK)
        fail_msg("%s", err.text);
    return out;
}

/* Sparse and dense, a weight and a node twice, every kind of buffer. */
static struct dp_graph *mixed(void)
{
    struct dp_init_spec zero = {.kind = DP_INIT_ZERO};
    struct dp_graph *g;
    assert_int_equal(dp_graph_new(&g, NULL), DP_OK);
    int words = dp_graph_group(g), list = dp_graph_list(g, words, 0);
    int wide = dp_graph_sparse(g, words, "wide", 5, zero), w = dp_graph_dense(g, "w", 5, 5, zero);
    int x = dp_graph_bias(g, dp_graph_input(g, 5), dp_graph_dense(g, "b", 1, 5, zero));
    x = dp_graph_add(g, dp_graph_unary(g, DP_OP_TANH, dp_graph_matmul(g, x, w)),
                     dp_graph_gather_sum(g, wide, list));
    x = dp_graph_add(g, dp_graph_unary(g, DP_OP_RELU, dp_graph_matmul(g, x, w)), x);
    int big = dp_graph_dense(g, "big", 5, 70, zero), last = dp_graph_dense(g, "last", 70, 1, zero);
    x = dp_graph_matmul(g, dp_graph_add(g, x, dp_graph_gather_sum(g, wide, list)), big);
    dp_graph_loss(g, DP_OP_LOGISTIC_LOSS, dp_graph_matmul(g, dp_graph_unary(g, DP_OP_SIGMOID, x), last));
    return g;
}

static void same_gradients(const struct fixture *a, const struct fixture *b)
{
    assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
    for (int p = 0; p < dp_graph_parameters(a->graph); p++) {
        assert_int_equal(a->floats[p], b->floats[p]);
        assert_memory_equal(a->gradients[p], b->gradients[p], a->floats[p] * sizeof(float));
    }
}

static void other_memory_gives_equal_bits(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct dp_graph *g = mixed();
        struct fake_device fake;
        struct dp_backend device;
        struct fixture here, there;
        fake_device_init(&fake, &device);
        fixture_open(&here, g, cpu(), 1 + (uint32_t)seed, 1, seed);
        fixture_open(&there, g, device, 1 + (uint32_t)seed, 1, seed);
        for (int round = 0; round < 2; round++) {
            fixture_run(&here);
            fixture_run(&there);
            same_gradients(&here, &there);
            assert_memory_equal(here.output, there.output, here.batch.examples * sizeof(float));
        }
        assert_int_equal(fake.allocs, 1);
        assert_true(dp_program_bytes(there.program) > dp_program_bytes(here.program));
        fixture_close(&here);
        fixture_close(&there);
        dp_graph_free(&g);
    }
}

/* Every copy in turn, then the kernels: said, nothing crashes, and the next pass is right again. */
static void failures_of_a_device_are_said(void **state)
{
    struct dp_graph *g = mixed();
    struct fake_device fake;
    struct dp_backend device;
    struct fixture f, want;
    struct dp_error err = {0};
    fake_device_init(&fake, &device);
    fixture_open(&f, g, device, 6, 1, 3);
    fixture_open(&want, g, cpu(), 6, 1, 3);
    fixture_run(&want);
    int at = 1;
    for (;; at++) {
        fake.copies = 0;
        fake.fail_copy_at = at;
        const float *const *weights = (const float *const *)f.weights;
        enum dp_status st = dp_program_forward(f.program, &f.batch, weights, &f.loss, f.output, &err);
        if (st == DP_OK)
            st = dp_program_start(f.program, &f.batch, weights, f.gradients, &err);
        if (st == DP_OK)
            st = dp_program_finish(f.program, &f.loss, NULL, &err);
        if (st == DP_OK)
            break;
        assert_int_equal(st, DP_IO);
        assert_non_null(strstr(err.text, "fake copy failed"));
    }
    assert_true(at > 12);
    same_gradients(&want, &f);
    fake.fail_finish = true;
    assert_int_equal(
        dp_program_forward(f.program, &f.batch, (const float *const *)f.weights, &f.loss, NULL, &err), DP_IO);
    fixture_close(&f);
    fixture_close(&want);

    struct dp_program *none;
    struct dp_batch_shape worst = {.examples = 4, .groups = 1, .lists = 1, .list[0] = {.entries = 4}};
    fake.fail_alloc = true;
    assert_int_equal(dp_program_open(g, &device, &worst, &none, &err), DP_NOMEM);
    assert_null(none);
    dp_graph_free(&g);
}

static void steps_allocate_nothing_and_repeat_bit_for_bit(void **state)
{
    static const char *const texts[] = {"logistic", "mlp:30-64-300-10", "mlp:9-4-1,loss=squared"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct dp_model m = model(texts[i]);
        struct fixture a, b;
        fixture_open(&a, m.graph, cpu(), 16, 1, 9);
        fixture_open(&b, m.graph, cpu(), 16, 1, 9);
        fixture_run(&a);
        fixture_run(&b);
        size_t before = allocations;
        for (int step = 0; step < 10; step++) {
            fixture_run(&b);
            same_gradients(&a, &b);
        }
        assert_int_equal(allocations, before);
        fixture_close(&a);
        fixture_close(&b);
        dp_model_close(&m);
    }
}

/* The mean over a batch is the weighted mean over its two parts, the second of them short. */
static void short_batch_is_a_batch(void **state)
{
    struct dp_graph *g = mixed();
    struct fixture whole, part;
    fixture_open(&whole, g, cpu(), 13, 1, 4);
    fixture_open(&part, g, cpu(), 13, 1, 4);
    fixture_run(&whole);
    double loss = 0;
    double *sums[DP_GRAPH_PARAMETERS_MAX];
    for (int p = 0; p < dp_graph_parameters(g); p++)
        assert_non_null(sums[p] = calloc(whole.floats[p], sizeof(double)));
    struct dp_batch batch = part.batch;
    uint32_t offsets[14];
    for (uint32_t from = 0, count = 10; from < 13; from += count, count = 3) {
        uint32_t entry = batch.list[0].offsets[from];
        for (uint32_t i = 0; i <= count; i++)
            offsets[i] = batch.list[0].offsets[from + i] - entry;
        part.batch.examples = count;
        part.batch.labels = batch.labels + from;
        part.batch.dense = batch.dense + (size_t)from * batch.width;
        part.batch.list[0].offsets = offsets;
        part.batch.list[0].slots = batch.list[0].slots + entry;
        part.batch.list[0].values = batch.list[0].values + entry;
        fixture_run(&part);
        loss += (double)part.loss * count / 13;
        for (int p = 0; p < dp_graph_parameters(g); p++)
            for (size_t i = 0; i < part.floats[p]; i++)
                sums[p][i] += (double)part.gradients[p][i] * count / 13;
    }
    part.batch = batch;
    assert_true(fabs(loss - (double)whole.loss) < 1e-6);
    for (int p = 0; p < dp_graph_parameters(g); p++) {
        for (size_t i = 0; i < whole.floats[p]; i++)
            assert_true(fabs(sums[p][i] - (double)whole.gradients[p][i]) < 2e-6);
        free(sums[p]);
    }
    fixture_close(&whole);
    fixture_close(&part);
    dp_graph_free(&g);
}

/* An assertion ends the child. */
static void stops(struct fixture *f)
{
    struct dp_error err = {0};
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(STDERR_FILENO);
        _exit(dp_program_forward(f->program, &f->batch, (const float *const *)f->weights, &f->loss, NULL,
                                 &err) == DP_OK);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

/* What would index memory wrongly. */
static void batches_that_do_not_fit_stop_the_program(void **state)
{
    struct dp_graph *g = mixed();
    struct fixture f;
    fixture_open(&f, g, cpu(), 6, 1, 2);
    struct dp_batch good = f.batch;
    f.batch.examples = 13;
    stops(&f);
    f.batch = good;
    f.batch.width = 6;
    stops(&f);
    f.batch = good;
    f.batch.group[0].distinct = 12 * 7 + 1;
    stops(&f);
    f.batch = good;
    good.list[0].slots[1] = good.group[0].distinct;
    stops(&f);
    good.list[0].slots[1] = 0;
    uint32_t kept = good.list[0].offsets[2];
    good.list[0].offsets[2] = UINT32_MAX;
    stops(&f);
    good.list[0].offsets[2] = kept;
    good.labels[3] = (float)NAN;
    stops(&f);
    good.labels[3] = 1;
    fixture_run(&f);
    fixture_close(&f);
    dp_graph_free(&g);
    struct dp_model m = model("mlp:3-4");
    fixture_open(&f, m.graph, cpu(), 5, 1, 2);
    f.batch.labels[4] = 4;
    stops(&f);
    fixture_close(&f);
    dp_model_close(&m);
}

static void each_gradient_needs_a_buffer(void **state)
{
    struct dp_model m = model("mlp:3-4-2,activation=tanh");
    struct fixture f;
    struct dp_error err = {0};
    fixture_open(&f, m.graph, cpu(), 5, 1, 2);
    float *kept = f.gradients[2];
    f.gradients[2] = NULL;
    assert_int_equal(
        dp_program_start(f.program, &f.batch, (const float *const *)f.weights, f.gradients, &err),
        DP_ARGUMENT);
    assert_non_null(strstr(err.text, "mlp.w2"));
    f.gradients[2] = kept;
    fixture_run(&f);
    fixture_close(&f);
    dp_model_close(&m);
}

/* A NaN weight in the first layer, under each activation, reaches the loss. */
static void nan_is_seen_in_the_loss(void **state)
{
    static const char *const texts[] = {"mlp:3-4-2", "mlp:3-4-2,activation=sigmoid",
                                        "mlp:3-4-1,activation=tanh,loss=squared", "logistic"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct dp_model m = model(texts[i]);
        struct fixture f;
        fixture_open(&f, m.graph, cpu(), 5, 1, 2);
        for (size_t w = 0; w < f.floats[0]; w++)
            f.weights[0][w] = (float)NAN;
        fixture_run(&f);
        assert_true(isnan(f.loss));
        fixture_close(&f);
        dp_model_close(&m);
    }
}

static void batch_without_entries_is_computed(void **state)
{
    struct dp_model m = model("logistic");
    struct fixture f;
    fixture_open(&f, m.graph, cpu(), 4, 1, 2);
    f.batch.group[0].distinct = 0;
    f.floats[0] = 0;
    memset(f.batch.list[0].offsets, 0, 5 * sizeof *f.batch.list[0].offsets);
    fixture_run(&f);
    for (int i = 0; i < 4; i++)
        assert_true(f.output[i] == f.weights[1][0]);
    fixture_close(&f);
    dp_model_close(&m);
}

static void sizes_beyond_memory_are_said(void **state)
{
    struct dp_model m = model("mlp:100-16000000-2");
    struct fake_device fake;
    struct dp_backend backend;
    struct dp_program *program = NULL;
    struct dp_error err = {0};
    struct dp_batch_shape worst = {.examples = 1u << 24}; /* 2^24 x 16e6 floats: a petabyte */
    fake_device_init(&fake, &backend);
    fake.fail_alloc = true;
    assert_int_equal(dp_program_open(m.graph, &backend, &worst, &program, &err), DP_NOMEM);
    assert_null(program);
    assert_non_null(strstr(err.text, "16777216 examples"));
    assert_true(fake.bytes > (size_t)1 << 49);
    worst.examples = 1u << 25;
    assert_int_equal(dp_program_open(m.graph, &backend, &worst, &program, &err), DP_ARGUMENT);
    worst.examples = 0;
    assert_int_equal(dp_program_open(m.graph, &backend, &worst, &program, &err), DP_ARGUMENT);
    assert_int_equal(dp_backend_cpu(0, &backend, &err), DP_ARGUMENT);
    assert_int_equal(dp_backend_cpu(1025, &backend, &err), DP_ARGUMENT);
    dp_model_close(&m);
}

static bool after(void *left)
{
    uint32_t *operations = left;
    return (*operations)-- == 0;
}

/* Given up before each of its operations, it ends there, and the next step has the bits of one before it. Planted: what is given up is
 * under way; the backward pass does not ask. */
static void a_step_that_is_given_up_leaves_nothing(void **state)
{
    struct dp_model m = model("mlp:7-5-3");
    struct fixture f;
    float before[8], loss;
    uint32_t ends = 0;
    fixture_open(&f, m.graph, cpu(), 9, 0.5f, 3);
    fixture_run(&f);
    memcpy(before, f.gradients[0], sizeof before);
    for (enum dp_status st = DP_STOPPING; st == DP_STOPPING; ends++) {
        uint32_t left = ends;
        dp_program_gives_up(f.program, after, &left);
        st = dp_program_start(f.program, &f.batch, (const float *const *)f.weights, f.gradients, NULL);
        dp_program_gives_up(f.program, NULL, NULL);
        if (st == DP_OK)
            assert_int_equal(dp_program_finish(f.program, &loss, NULL, NULL), DP_OK);
        assert_true(st == DP_OK || st == DP_STOPPING);
    }
    assert_true(ends > (uint32_t)dp_graph_nodes(m.graph) + 4); /* in both passes */
    assert_true(loss == f.loss && memcmp(before, f.gradients[0], sizeof before) == 0);
    fixture_close(&f);
    dp_model_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_memory_gives_equal_bits),
        cmocka_unit_test(failures_of_a_device_are_said),
        cmocka_unit_test(steps_allocate_nothing_and_repeat_bit_for_bit),
        cmocka_unit_test(short_batch_is_a_batch),
        cmocka_unit_test(batches_that_do_not_fit_stop_the_program),
        cmocka_unit_test(each_gradient_needs_a_buffer),
        cmocka_unit_test(nan_is_seen_in_the_loss),
        cmocka_unit_test(batch_without_entries_is_computed),
        cmocka_unit_test(sizes_beyond_memory_are_said),
        cmocka_unit_test(a_step_that_is_given_up_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
