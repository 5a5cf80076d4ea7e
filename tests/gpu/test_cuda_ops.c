/* Goal    each operation of backend.h, alone: CUDA against the CPU, which is the oracle, with a tolerance of its own; 0 where both compute
 *         each element by the same roundings.
 * Method  equal inputs out of one seed; what is to be set holds NaN before. Differences are relative to an array's greatest
 *         value. Without a GPU: on an emulated one (emulator/), and with DEVICE "cpu", which shows that this file itself is right. */
#include "tests/lib/gpu.h"
#include "tests/lib/test.h"

#include "worker/compute/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DEVICE
#define DEVICE "cuda"
#endif

#define SUM  1e-5 /* sums in another order, matrix products among them */
#define FEW  1e-6 /* a few roundings, or another e^x */
#define NONE 0.0
#define OUTS 3

struct run {
    struct dp_backend backend;
    uint64_t random;
    uint32_t examples, width;
    bool add;
    void *block[32];
    int blocks;
    struct {
        float *device, *host;
        size_t n;
    } out[OUTS];
    int outs;
    struct dp_entries entries;
};

static void right(enum dp_status st, const struct dp_error *err)
{
    if (st != DP_OK)
        fail_msg("%s", err->text);
}

static struct dp_backend device(const char *name)
{
    const struct dp_device_options options = {.device = name, .precision = "f32", .threads = 1};
    struct dp_backend backend;
    struct dp_error err = {0};
    right(dp_device_open(&options, &backend, NULL, &err), &err);
    return backend;
}

static uint64_t draw(struct run *run)
{
    uint64_t z = run->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Memory of the device with these bytes; each call waits. */
static void *bring(struct run *run, const void *host, size_t bytes)
{
    const struct dp_backend_ops *ops = run->backend.ops;
    struct dp_error err = {0};
    void *block = NULL;
    assert_in_range(run->blocks, 0, 31);
    right(ops->alloc(run->backend.self, bytes, &block, &err), &err);
    run->block[run->blocks++] = block;
    if (bytes > 0)
        right(ops->copy_in(run->backend.self, block, host, bytes, &err), &err);
    right(ops->finish(run->backend.self, &err), &err);
    return block;
}

static float *drawn(struct run *run, size_t n)
{
    float *host = malloc((n + 1) * sizeof *host);
    assert_non_null(host);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)(int32_t)(draw(run) >> 32) / 2147483648.0f;
    float *block = bring(run, host, n * sizeof *host);
    free(host);
    return block;
}

/* What is compared: of n floats, which hold NaN, or numbers where they are added to (or not all are written). */
static float *result_of(struct run *run, size_t n, bool filled)
{
    float *host = malloc((n + 1) * sizeof *host);
    assert_non_null(host);
    assert_in_range(run->outs, 0, OUTS - 1);
    for (size_t i = 0; i < n; i++)
        host[i] = (float)NAN;
    float *block = filled ? drawn(run, n) : bring(run, host, n * sizeof *host);
    run->out[run->outs].device = block;
    run->out[run->outs].host = host;
    run->out[run->outs++].n = n;
    return block;
}

static float *result(struct run *run, size_t n)
{
    return result_of(run, n, run->add);
}

static uint32_t *numbers(uint32_t count)
{
    uint32_t *out = calloc((size_t)count + 1, sizeof *out);
    assert_non_null(out);
    return out;
}

/* `each` entries an example, or 0 .. 7 where that is 0; half of them are of slot 0. Slots without entries occur. */
static const struct dp_entries *entries_of(struct run *run, uint32_t each)
{
    uint32_t most = run->examples * (each ? each : 7), distinct = 1 + run->examples / 2, count = 0;
    uint32_t *offsets = numbers(run->examples + 1), *slots = numbers(most), *example_of = numbers(most);
    uint32_t *by_slot = numbers(most), *slot_offsets = numbers(distinct + 1);
    for (uint32_t i = 0; i < run->examples; i++) {
        uint32_t n = each ? each : (uint32_t)(draw(run) % 8);
        for (uint32_t j = 0; j < n; j++, count++) {
            slots[count] = draw(run) % 2 ? 0 : (uint32_t)(draw(run) % distinct);
            example_of[count] = i;
        }
        offsets[i + 1] = count;
    }
    uint32_t at = 0;
    for (uint32_t s = 0; s < distinct; s++) {
        for (uint32_t j = 0; j < count; j++)
            if (slots[j] == s)
                by_slot[at++] = j;
        slot_offsets[s + 1] = at;
    }
    run->entries = (struct dp_entries){
        .examples = run->examples,
        .distinct = distinct,
        .count = count,
        .offsets = bring(run, offsets, ((size_t)run->examples + 1) * sizeof *offsets),
        .slots = bring(run, slots, count * sizeof *slots),
        .example_of = bring(run, example_of, count * sizeof *example_of),
        .by_slot = bring(run, by_slot, count * sizeof *by_slot),
        .slot_offsets = bring(run, slot_offsets, ((size_t)distinct + 1) * sizeof *slot_offsets),
        .values = drawn(run, count),
    };
    free(offsets);
    free(slots);
    free(example_of);
    free(by_slot);
    free(slot_offsets);
    return &run->entries;
}

/* ---- the operations: each draws its inputs, and is called once */

#define OPS  (run->backend.ops)
#define SELF (run->backend.self)

static size_t matrix(const struct run *run)
{
    return (size_t)run->examples * run->width;
}

static void gather_sum_of(struct run *run, bool mean)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *p = drawn(run, (size_t)e->distinct * run->width);
    OPS->gather_sum(SELF, e, p, run->width, mean, result(run, matrix(run)));
}

static void gather_sum(struct run *run)
{
    gather_sum_of(run, false);
}

static void gather_mean(struct run *run)
{
    gather_sum_of(run, true);
}

static void gather_sum_back_of(struct run *run, bool mean)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *dout = drawn(run, matrix(run));
    OPS->gather_sum_back(SELF, e, dout, run->width, mean, result(run, (size_t)e->distinct * run->width),
                         run->add);
}

static void gather_sum_back(struct run *run)
{
    gather_sum_back_of(run, false);
}

static void gather_mean_back(struct run *run)
{
    gather_sum_back_of(run, true);
}

static void gather(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 3);
    float *p = drawn(run, (size_t)e->distinct * run->width);
    OPS->gather(SELF, e, p, run->width, result(run, (size_t)e->count * run->width));
}

static void gather_back(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 3);
    float *dout = drawn(run, (size_t)e->count * run->width);
    OPS->gather_back(SELF, e, dout, run->width, result(run, (size_t)e->distinct * run->width), run->add);
}

static void interactions(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *p = drawn(run, (size_t)e->distinct * run->width), *sums = result(run, matrix(run));
    OPS->interactions(SELF, e, p, run->width, sums, result(run, run->examples));
}

static void interactions_back(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *p = drawn(run, (size_t)e->distinct * run->width), *sums = drawn(run, matrix(run));
    float *dout = drawn(run, run->examples);
    OPS->interactions_back(SELF, e, p, sums, dout, run->width, result(run, (size_t)e->distinct * run->width),
                           run->add);
}

static void near(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *x = drawn(run, matrix(run)), *p = drawn(run, (size_t)e->distinct * run->width);
    float *saved = result(run, e->count);
    OPS->near(SELF, e, x, p, run->width, saved, result(run, run->examples));
}

static void near_back_x(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *p = drawn(run, (size_t)e->distinct * run->width), *saved = drawn(run, e->count);
    float *dout = drawn(run, run->examples);
    OPS->near_back_x(SELF, e, p, saved, dout, run->width, result(run, matrix(run)), run->add);
}

static void near_back_p(struct run *run)
{
    const struct dp_entries *e = entries_of(run, 0);
    float *x = drawn(run, matrix(run)), *saved = drawn(run, e->count), *dout = drawn(run, run->examples);
    OPS->near_back_p(SELF, e, x, saved, dout, run->width, result(run, (size_t)e->distinct * run->width),
                     run->add);
}

static void matmul(struct run *run)
{
    uint32_t k = run->width + 3;
    float *x = drawn(run, (size_t)run->examples * k), *p = drawn(run, (size_t)k * run->width);
    OPS->matmul(SELF, x, p, run->examples, k, run->width, result(run, matrix(run)));
}

static void matmul_back_x(struct run *run)
{
    uint32_t k = run->width + 3;
    float *p = drawn(run, (size_t)k * run->width), *dout = drawn(run, matrix(run));
    OPS->matmul_back_x(SELF, p, dout, run->examples, k, run->width, result(run, (size_t)run->examples * k),
                       run->add);
}

static void matmul_back_p(struct run *run)
{
    uint32_t k = run->width + 3;
    float *x = drawn(run, (size_t)run->examples * k), *dout = drawn(run, matrix(run));
    OPS->matmul_back_p(SELF, x, dout, run->examples, k, run->width, result(run, (size_t)k * run->width),
                       run->add);
}

static void bias(struct run *run)
{
    float *x = drawn(run, matrix(run)), *p = drawn(run, run->width);
    OPS->bias(SELF, x, p, run->examples, run->width, result(run, matrix(run)));
}

static void bias_back_p(struct run *run)
{
    float *dout = drawn(run, matrix(run));
    OPS->bias_back_p(SELF, dout, run->examples, run->width, result(run, run->width), run->add);
}

#define UNARY(name, back)                                                                                    \
    static void name(struct run *run)                                                                        \
    {                                                                                                        \
        float *x = drawn(run, matrix(run));                                                                  \
        OPS->name(SELF, x, matrix(run), result(run, matrix(run)));                                           \
    }                                                                                                        \
    static void back(struct run *run)                                                                        \
    {                                                                                                        \
        float *out = drawn(run, matrix(run)), *dout = drawn(run, matrix(run));                               \
        OPS->back(SELF, out, dout, matrix(run), result(run, matrix(run)), run->add);                         \
    }
UNARY(relu, relu_back)
UNARY(sigmoid, sigmoid_back)
UNARY(tanh_, tanh_back)

static void dropout(struct run *run)
{
    float *x = drawn(run, matrix(run));
    OPS->dropout(SELF, x, matrix(run), 77, 0.3f, result(run, matrix(run)), run->add);
}

static void columns(struct run *run)
{
    const struct dp_column_copy columns = {run->width + 4, 1, run->width + 7, 2, run->width};
    float *x = drawn(run, (size_t)run->examples * columns.from_width);
    OPS->columns(SELF, x, &columns, run->examples,
                 result_of(run, (size_t)run->examples * columns.to_width, true), run->add);
}

static void sum(struct run *run)
{
    float *x = drawn(run, matrix(run)), *y = drawn(run, matrix(run));
    OPS->sum(SELF, x, y, matrix(run), result(run, matrix(run)));
}

static void copy_back(struct run *run)
{
    float *dout = drawn(run, matrix(run));
    OPS->copy_back(SELF, dout, matrix(run), result(run, matrix(run)), run->add);
}

static void multiply(struct run *run)
{
    float *x = drawn(run, matrix(run)), *y = drawn(run, matrix(run));
    OPS->multiply(SELF, x, y, matrix(run), result(run, matrix(run)));
}

static void multiply_back(struct run *run)
{
    float *y = drawn(run, matrix(run)), *dout = drawn(run, matrix(run));
    OPS->multiply_back(SELF, y, dout, matrix(run), result(run, matrix(run)), run->add);
}

static void dot(struct run *run)
{
    float *x = drawn(run, matrix(run)), *y = drawn(run, matrix(run));
    OPS->dot(SELF, x, y, run->examples, run->width, result(run, run->examples));
}

static void dot_back(struct run *run)
{
    float *y = drawn(run, matrix(run)), *dout = drawn(run, run->examples);
    OPS->dot_back(SELF, y, dout, run->examples, run->width, result(run, matrix(run)), run->add);
}

#define VECTORS 5u

static void pairs(struct run *run)
{
    float *x = drawn(run, VECTORS * matrix(run));
    OPS->pairs(SELF, x, run->examples, VECTORS, run->width,
               result(run, (size_t)run->examples * (VECTORS * (VECTORS - 1) / 2)));
}

static void pairs_back(struct run *run)
{
    float *x = drawn(run, VECTORS * matrix(run));
    float *dout = drawn(run, (size_t)run->examples * (VECTORS * (VECTORS - 1) / 2));
    OPS->pairs_back(SELF, x, dout, run->examples, VECTORS, run->width, result(run, VECTORS * matrix(run)),
                    run->add);
}

/* Whole numbers below `classes`. */
static float *labels_of(struct run *run, uint32_t classes)
{
    float *host = calloc(run->examples, sizeof *host);
    assert_non_null(host);
    for (uint32_t i = 0; i < run->examples; i++)
        host[i] = (float)(draw(run) % classes);
    float *block = bring(run, host, run->examples * sizeof *host);
    free(host);
    return block;
}

/* Of examples; in half of the runs. */
static const float *weights_of(struct run *run)
{
    return draw(run) % 2 ? labels_of(run, 5) : NULL;
}

static void softmax_loss(struct run *run)
{
    float *x = drawn(run, matrix(run)), *labels = labels_of(run, run->width), *loss = result(run, 1);
    OPS->softmax_loss(SELF, x, labels, weights_of(run), run->examples, run->width, loss,
                      result(run, matrix(run)));
}

static void logistic_loss(struct run *run)
{
    float *x = drawn(run, run->examples), *labels = labels_of(run, 2), *loss = result(run, 1);
    OPS->logistic_loss(SELF, x, labels, weights_of(run), run->examples, loss, result(run, run->examples));
}

static void squared_loss(struct run *run)
{
    float *x = drawn(run, run->examples), *labels = drawn(run, run->examples), *loss = result(run, 1);
    OPS->squared_loss(SELF, x, labels, weights_of(run), run->examples, loss, result(run, run->examples));
}

static void mean_loss(struct run *run)
{
    float *x = drawn(run, run->examples), *loss = result(run, 1);
    OPS->mean_loss(SELF, x, run->examples, loss, result(run, run->examples));
}

static void bpr_loss(struct run *run)
{
    float *x = drawn(run, run->examples), *y = drawn(run, run->examples), *dx = result(run, run->examples);
    float *dy = result(run, run->examples);
    OPS->bpr_loss(SELF, x, y, run->examples, result(run, 1), dx, dy);
}

/* `adds`: it has the form that adds to what is there. */
static const struct {
    const char *name;
    void (*call)(struct run *run);
    bool adds;
    double tolerance;
} cases[] = {
    {"gather_sum", gather_sum, false, FEW},
    {"gather_sum, mean", gather_mean, false, FEW},
    {"gather_sum_back", gather_sum_back, true, SUM},
    {"gather_sum_back, mean", gather_mean_back, true, SUM},
    {"gather", gather, false, NONE},
    {"gather_back", gather_back, true, SUM},
    {"interactions", interactions, false, SUM},
    {"interactions_back", interactions_back, true, SUM},
    {"near", near, false, SUM},
    {"near_back_x", near_back_x, true, SUM},
    {"near_back_p", near_back_p, true, SUM},
    {"matmul", matmul, false, SUM},
    {"matmul_back_x", matmul_back_x, true, SUM},
    {"matmul_back_p", matmul_back_p, true, SUM},
    {"bias", bias, false, NONE},
    {"bias_back_p", bias_back_p, true, SUM},
    {"relu", relu, false, NONE},
    {"relu_back", relu_back, true, NONE},
    {"sigmoid", sigmoid, false, FEW},
    {"sigmoid_back", sigmoid_back, true, NONE},
    {"tanh", tanh_, false, FEW},
    {"tanh_back", tanh_back, true, NONE},
    {"dropout", dropout, true, NONE},
    {"columns", columns, true, NONE},
    {"sum", sum, false, NONE},
    {"copy_back", copy_back, true, NONE},
    {"multiply", multiply, false, NONE},
    {"multiply_back", multiply_back, true, NONE},
    {"dot", dot, false, SUM},
    {"dot_back", dot_back, true, NONE},
    {"pairs", pairs, false, SUM},
    {"pairs_back", pairs_back, true, SUM},
    {"softmax_loss", softmax_loss, false, FEW},
    {"logistic_loss", logistic_loss, false, FEW},
    {"squared_loss", squared_loss, false, FEW},
    {"mean_loss", mean_loss, false, FEW},
    {"bpr_loss", bpr_loss, false, FEW},
};

/* ---- both, compared */

static void call(struct run *run, struct dp_backend *backend, size_t at, const uint32_t *shape, bool add)
{
    struct dp_error err = {0};
    *run = (struct run){.backend = *backend,
                        .random = 1 + 100 * at + (add ? 50 : 0),
                        .examples = shape[0],
                        .width = shape[1],
                        .add = add};
    cases[at].call(run);
    right(backend->ops->finish(backend->self, &err), &err);
    for (int i = 0; i < run->outs; i++)
        if (run->out[i].n > 0)
            right(backend->ops->copy_out(backend->self, run->out[i].host, run->out[i].device,
                                         run->out[i].n * sizeof(float), &err),
                  &err);
    right(backend->ops->finish(backend->self, &err), &err);
    for (int i = 0; i < run->blocks; i++)
        backend->ops->release(backend->self, run->block[i]);
}

static double worst_of(const struct run *have, const struct run *want)
{
    double worst = 0;
    assert_int_equal(have->outs, want->outs);
    assert_true(want->outs > 0);
    for (int o = 0; o < want->outs; o++) {
        double greatest = 1e-30;
        for (size_t i = 0; i < want->out[o].n; i++)
            greatest = fmax(greatest, fabs((double)want->out[o].host[i]));
        for (size_t i = 0; i < want->out[o].n; i++) {
            double off = fabs((double)have->out[o].host[i] - (double)want->out[o].host[i]) / greatest;
            if (!(off <= worst))
                worst = isfinite(off) ? off : INFINITY;
        }
    }
    return worst;
}

static void close_run(struct run *run)
{
    for (int i = 0; i < run->outs; i++)
        free(run->out[i].host);
}

static void operations_agree_with_the_cpu(void **state)
{
    static const uint32_t shapes[][2] = {{1, 1},   {5, 3},   {64, 1},    {37, 33},
                                         {300, 8}, {700, 1}, {1000, 20}, {130, 130}};
    struct dp_backend cpu = device("cpu"), gpu = device(DEVICE);
    for (size_t at = 0; at < sizeof cases / sizeof cases[0]; at++) {
        double worst = 0;
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
            for (int add = 0; add <= (cases[at].adds ? 1 : 0); add++) {
                struct run want, have;
                call(&want, &cpu, at, shapes[s], add == 1);
                call(&have, &gpu, at, shapes[s], add == 1);
                worst = fmax(worst, worst_of(&have, &want));
                close_run(&have);
                close_run(&want);
            }
        print_message("%-24s worst %.2g of %.0g\n", cases[at].name, worst, cases[at].tolerance);
        if (!(worst <= cases[at].tolerance))
            fail_msg("%s: %g is more than %g", cases[at].name, worst, cases[at].tolerance);
    }
    dp_backend_close(&gpu);
    dp_backend_close(&cpu);
}

/* One entry an example has nothing to interact with: 0, not what a fused multiplication leaves of it, which Adagrad would make as
 * large as any other gradient. */
static void what_is_zero_is_zero(void **state)
{
    struct dp_backend backends[] = {device("cpu"), device(DEVICE)};
    for (int b = 0; b < 2; b++) {
        struct run shape = {.backend = backends[b], .random = 5, .examples = 200, .width = 19};
        struct run *run = &shape;
        struct dp_error err = {0};
        const struct dp_entries *e = entries_of(run, 1);
        float *p = drawn(run, (size_t)e->distinct * run->width), *sums = drawn(run, matrix(run));
        float *dout = drawn(run, run->examples);
        OPS->interactions(SELF, e, p, run->width, sums, result(run, run->examples));
        OPS->interactions_back(SELF, e, p, sums, dout, run->width,
                               result(run, (size_t)e->distinct * run->width), false);
        right(OPS->finish(SELF, &err), &err);
        for (int o = 0; o < 2; o++)
            right(OPS->copy_out(SELF, run->out[o].host, run->out[o].device, run->out[o].n * sizeof(float),
                                &err),
                  &err);
        right(OPS->finish(SELF, &err), &err);
        for (int o = 0; o < 2; o++)
            for (size_t i = 0; i < run->out[o].n; i++)
                assert_true(run->out[o].host[i] == 0);
        for (int i = 0; i < run->blocks; i++)
            OPS->release(SELF, run->block[i]);
        close_run(run);
        dp_backend_close(&backends[b]);
    }
}

/* --look: whether there is a device, and no more; --lacks WHAT: as if this were lacking (sanitize.sh). */
int main(int argc, char **argv)
{
    const struct dp_device_options options = {.device = DEVICE, .precision = "f32", .threads = 1};
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_agree_with_the_cpu),
        cmocka_unit_test(what_is_zero_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
