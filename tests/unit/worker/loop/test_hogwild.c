/* Goal    threads that share a fetch leave nothing out: the sum that is pushed has the gradient of each
 *         minibatch; one thread gives the bits of none; a loss that is not finite and a signal stop all threads.
 * Method  random minibatches with many common keys; the pull is played by the test. Under DP_SANITIZE=thread
 *         the same tests show that nothing races. */
#include "tests/unit/worker/context/graph_fixture.h"
#include "worker/loop/hogwild.h"

#include "common/model/mix.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES  24u
#define EXAMPLES 8u
#define EACH     5u /* entries of an example */
#define KEYS     64u

struct shared {
    atomic_int stop;
    struct dp_job job;
    struct dp_weights *weights;
    struct dp_batch *batch[BATCHES];
    uint64_t random;
};

static uint32_t random_below(struct shared *s, uint32_t n)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 33) % n;
}

static float uniform(struct shared *s)
{
    return (float)random_below(s, 2001) / 1000 - 1;
}

/* Keys 1 .. KEYS stand for mixed ones. */
static void batch_fill(struct shared *s, struct dp_batch *batch, uint64_t number)
{
    uint32_t slot_of[KEYS + 1];
    bool has[KEYS + 1] = {false};
    uint64_t key[EXAMPLES * EACH];
    batch->number = number;
    batch->examples = EXAMPLES;
    for (uint32_t j = 0; j < EXAMPLES * EACH; j++) {
        key[j] = 1 + random_below(s, KEYS);
        has[key[j]] = true;
        batch->list[0].values[j] = uniform(s);
    }
    batch->list[0].slots = batch->group[0].slots;
    batch->group[0].distinct = 0;
    for (uint32_t k = 1; k <= KEYS; k++)
        if (has[k]) {
            slot_of[k] = batch->group[0].distinct;
            batch->group[0].keys[batch->group[0].distinct++] = k;
        }
    for (uint32_t j = 0; j < EXAMPLES * EACH; j++)
        batch->list[0].slots[j] = slot_of[key[j]];
    for (uint32_t i = 0; i <= EXAMPLES; i++)
        batch->list[0].offsets[i] = i * EACH;
    for (uint32_t i = 0; i < EXAMPLES; i++)
        batch->labels[i] = (float)random_below(s, 2);
}

static struct dp_weights *weights_new(const struct shared *s)
{
    const struct dp_weights_options options = {.graph = s->job.model.graph,
                                               .tables = s->job.table,
                                               .shards = s->job.shards,
                                               .worst = &s->job.worst,
                                               .batches_max = BATCHES};
    struct dp_weights *weights;
    assert_int_equal(dp_weights_new(&options, &weights, NULL), DP_OK);
    return weights;
}

static size_t floats_of(const struct dp_weights *weights, const struct shared *s, int p)
{
    const struct dp_parameter *parameter = dp_graph_parameter(s->job.model.graph, p);
    size_t n;
    (void)dp_weights_keys(weights, 0, &n);
    return parameter->sparse ? n * parameter->table.dim : dp_parameter_floats(parameter);
}

/* Equal for equal counts. */
static void pull(const struct shared *s, struct dp_weights *weights, uint32_t count)
{
    assert_int_equal(dp_weights_take(weights, s->batch, count, NULL), DP_OK);
    for (int p = 0; p < FIX_PARAMETERS; p++)
        for (size_t i = 0; i < floats_of(weights, s, p); i++)
            dp_weights_local(weights, p)[i] = (float)(dp_mix(i + 7) % 1000) / 1000 - 0.5f;
}

static void open_shared(struct shared *s, uint64_t seed)
{
    *s = (struct shared){.random = seed};
    s->job.stop = &s->stop;
    s->job.shards = 2;
    s->job.model.graph = fixture_graph();
    s->job.worst = fixture_worst(EXAMPLES * EACH);
    assert_int_equal(dp_backend_cpu(1, &s->job.backend, NULL), DP_OK);
    assert_int_equal(
        dp_program_open(s->job.model.graph, &s->job.backend, &s->job.worst, &s->job.program, NULL), DP_OK);
    s->weights = weights_new(s);
    for (uint32_t b = 0; b < BATCHES; b++) {
        assert_int_equal(dp_batch_reserve(&s->job.worst, &s->batch[b], NULL), DP_OK);
        batch_fill(s, s->batch[b], b);
    }
}

static void close_shared(struct shared *s)
{
    for (uint32_t b = 0; b < BATCHES; b++)
        dp_batch_free(&s->batch[b]);
    dp_weights_free(&s->weights);
    dp_program_close(&s->job.program);
    dp_backend_close(&s->job.backend);
    dp_graph_free(&s->job.model.graph);
}

static struct dp_hogwild *pool_open(const struct shared *s, uint32_t threads)
{
    const struct dp_hogwild_options options = {.job = &s->job, .threads = threads, .batches_max = BATCHES};
    struct dp_hogwild *pool;
    struct dp_error err = {0};
    if (dp_hogwild_open(&options, &pool, &err) != DP_OK)
        fail_msg("%s", err.text);
    return pool;
}

static enum dp_status run(struct shared *s, struct dp_hogwild *pool, uint32_t count, float rate,
                          struct dp_hogwild_round *round, struct dp_error *err)
{
    pull(s, s->weights, count);
    for (uint32_t i = 0; i < count; i++)
        dp_hogwild_rates(pool)[i] = rate;
    dp_hogwild_start(pool, s->weights, s->batch, count);
    return dp_hogwild_finish(pool, round, err);
}

/* What a worker without threads computes: the sum over the union's keys, in the order of the minibatches. */
struct plain {
    struct dp_weights *weights;
    float losses[BATCHES];
    float *sum[FIX_PARAMETERS], *sizes[FIX_PARAMETERS]; /* sizes: of the terms, absolute */
};

static void plain_add(struct plain *plain, const struct shared *s, const struct dp_batch *batch,
                      float *const *gradients)
{
    size_t n;
    const uint64_t *united = dp_weights_keys(plain->weights, 0, &n);
    for (int p = 0; p < FIX_PARAMETERS; p++) {
        const struct dp_parameter *parameter = dp_graph_parameter(s->job.model.graph, p);
        size_t width = parameter->table.dim, at = 0;
        for (uint32_t k = 0; parameter->sparse && k < batch->group[0].distinct; k++) {
            while (united[at] != batch->group[0].keys[k])
                at++;
            for (size_t c = 0; c < width; c++) {
                plain->sum[p][at * width + c] += gradients[p][k * width + c];
                plain->sizes[p][at * width + c] += fabsf(gradients[p][k * width + c]);
            }
        }
        for (size_t i = 0; !parameter->sparse && i < dp_parameter_floats(parameter); i++) {
            plain->sum[p][i] += gradients[p][i];
            plain->sizes[p][i] += fabsf(gradients[p][i]);
        }
    }
}

static void plain_run(struct plain *plain, struct shared *s, uint32_t count, float rate)
{
    float *gradients[FIX_PARAMETERS];
    plain->weights = weights_new(s);
    pull(s, plain->weights, count);
    for (int p = 0; p < FIX_PARAMETERS; p++) {
        size_t n = floats_of(plain->weights, s, p) + EXAMPLES * EACH * 4;
        plain->sum[p] = calloc(n, sizeof(float));
        plain->sizes[p] = calloc(n, sizeof(float));
        gradients[p] = calloc(n, sizeof(float));
        assert_true(plain->sum[p] && plain->sizes[p] && gradients[p]);
    }
    for (uint32_t i = 0; i < count; i++) {
        const float *const *rows = dp_weights_of(plain->weights, i);
        assert_int_equal(dp_program_start(s->job.program, s->batch[i], rows, gradients, NULL), DP_OK);
        assert_int_equal(dp_program_finish(s->job.program, &plain->losses[i], NULL, NULL), DP_OK);
        dp_weights_step(plain->weights, rate, gradients);
        plain_add(plain, s, s->batch[i], gradients);
    }
    for (int p = 0; p < FIX_PARAMETERS; p++)
        free(gradients[p]);
}

static void plain_clear(struct plain *plain)
{
    for (int p = 0; p < FIX_PARAMETERS; p++) {
        free(plain->sum[p]);
        free(plain->sizes[p]);
    }
    dp_weights_free(&plain->weights);
}

static void one_thread_has_the_bits_of_none(void **state)
{
    struct shared s;
    open_shared(&s, 1);
    struct dp_hogwild *pool = pool_open(&s, 1);
    for (uint32_t count = BATCHES; count > 0; count -= 7) {
        struct plain plain;
        struct dp_hogwild_round out;
        plain_run(&plain, &s, count, 0.3f);
        assert_int_equal(run(&s, pool, count, 0.3f, &out, NULL), DP_OK);
        assert_int_equal(out.at, count - 1);
        assert_memory_equal(out.losses, plain.losses, count * sizeof(float));
        for (int p = 0; p < FIX_PARAMETERS; p++) {
            size_t bytes = floats_of(s.weights, &s, p) * sizeof(float);
            assert_memory_equal(dp_gradients_sum(out.sum, p), plain.sum[p], bytes);
            assert_memory_equal(dp_weights_local(s.weights, p), dp_weights_local(plain.weights, p), bytes);
        }
        size_t n, m;
        assert_ptr_equal(dp_gradients_keys(out.sum, 0, &n), dp_weights_keys(s.weights, 0, &m));
        assert_int_equal(n, m);
        plain_clear(&plain);
        if (count < 7)
            break;
    }
    dp_hogwild_close(&pool);
    close_shared(&s);
}

/* With a rate of 0 a minibatch's gradient does not depend on which thread computes it, and when. */
static void the_sum_has_every_gradient(void **state)
{
    static const uint32_t threads[] = {2, 3, 8};
    struct shared s;
    open_shared(&s, 2);
    for (size_t t = 0; t < sizeof threads / sizeof threads[0]; t++) {
        struct dp_hogwild *pool = pool_open(&s, threads[t]);
        for (uint32_t round = 0; round < 60; round++) {
            uint32_t count = 1 + random_below(&s, BATCHES);
            struct dp_hogwild_round out;
            struct plain plain;
            plain_run(&plain, &s, count, 0);
            assert_int_equal(run(&s, pool, count, 0, &out, NULL), DP_OK);
            assert_memory_equal(out.losses, plain.losses, count * sizeof(float));
            for (int p = 0; p < FIX_PARAMETERS; p++)
                for (size_t i = 0; i < floats_of(s.weights, &s, p); i++) {
                    float off = dp_gradients_sum(out.sum, p)[i] - plain.sum[p][i];
                    assert_true(fabsf(off) <= 1e-5f * plain.sizes[p][i]);
                }
            plain_clear(&plain);
        }
        dp_hogwild_close(&pool);
    }
    close_shared(&s);
}

/* All minibatches are the same one: if threads did not see each other's steps, every loss were near the
 * first. */
static void threads_move_one_local_copy(void **state)
{
    struct shared s;
    open_shared(&s, 3);
    struct dp_batch *batch[BATCHES];
    for (uint32_t b = 0; b < BATCHES; b++)
        batch[b] = s.batch[0];
    struct dp_hogwild *pool = pool_open(&s, 4);
    struct dp_hogwild_round out;
    pull(&s, s.weights, 1);
    float first = 0, last = 0;
    for (uint32_t round = 0; round < 200; round++) {
        assert_int_equal(dp_weights_take(s.weights, batch, BATCHES, NULL), DP_OK);
        for (uint32_t i = 0; i < BATCHES; i++)
            dp_hogwild_rates(pool)[i] = 0.1f;
        dp_hogwild_start(pool, s.weights, batch, BATCHES);
        assert_int_equal(dp_hogwild_finish(pool, &out, NULL), DP_OK);
        first = round == 0 ? out.losses[0] : first;
        last = out.losses[BATCHES - 1];
    }
    assert_true(last < first / 10);
    dp_hogwild_close(&pool);
    close_shared(&s);
}

static void a_loss_that_is_not_finite_stops(void **state)
{
    struct shared s;
    struct dp_error err = {0};
    struct dp_hogwild_round out;
    open_shared(&s, 4);
    struct dp_hogwild *pool = pool_open(&s, 2);
    s.batch[9]->list[0].values[0] = NAN;
    assert_int_equal(run(&s, pool, BATCHES, 0.1f, &out, &err), DP_NOT_FINITE);
    assert_int_equal(out.at, 9);
    assert_non_null(strstr(err.text, "the loss is"));
    /* A fetch that is sound trains. */
    s.batch[9]->list[0].values[0] = 1;
    assert_int_equal(run(&s, pool, BATCHES, 0.1f, &out, &err), DP_OK);
    dp_hogwild_close(&pool);
    close_shared(&s);
}

static void a_signal_stops(void **state)
{
    struct shared s;
    struct dp_hogwild_round out;
    open_shared(&s, 6);
    struct dp_hogwild *pool = pool_open(&s, 2);
    atomic_store(&s.stop, SIGTERM);
    assert_int_equal(run(&s, pool, BATCHES, 0.1f, &out, NULL), DP_STOPPING);
    atomic_store(&s.stop, 0);
    assert_int_equal(run(&s, pool, BATCHES, 0.1f, &out, NULL), DP_OK);
    dp_hogwild_close(&pool);
    close_shared(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_has_the_bits_of_none),
        cmocka_unit_test(the_sum_has_every_gradient),
        cmocka_unit_test(threads_move_one_local_copy),
        cmocka_unit_test(a_loss_that_is_not_finite_stops),
        cmocka_unit_test(a_signal_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
