/* Goal: the plan's minibatches, in order, each once, then the end; stop at any moment. */
#include "worker/read/reader.h"

#include "tests/lib/test.h"
#include "tests/unit/worker/read/files.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES 103
#define WAIT_MS  20000

struct fixture {
    struct dp_dataset *dataset;
};

static struct dp_reader_plan plan(uint32_t first_epoch, uint32_t epochs, uint32_t offset, uint32_t stride)
{
    return (struct dp_reader_plan){
        .first_epoch = first_epoch, .epochs = epochs, .offset = offset, .stride = stride};
}

static struct dp_reader *start(const struct fixture *f, struct dp_reader_plan of, uint32_t ahead,
                               uint32_t hold)
{
    struct dp_error err = {0};
    struct dp_reader *reader = NULL;
    if (dp_reader_start(f->dataset, &of, ahead, hold, &reader, &err) != DP_OK)
        fail_msg("%s", err.text);
    return reader;
}

static void expect_end(struct dp_reader *reader)
{
    struct dp_batch *batch = NULL;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dp_reader_next(reader, WAIT_MS, &batch), DP_OK);
        assert_null(batch);
    }
}

static void check_plan(const struct fixture *f, struct dp_reader_plan of, uint32_t ahead)
{
    struct dp_reader *reader = start(f, of, ahead, 1);
    struct dp_batch *batch, *own = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_batch_new(f->dataset, &own, &err), DP_OK);
    for (uint32_t e = of.first_epoch; e < of.first_epoch + of.epochs; e++)
        for (uint64_t n = of.offset; n < dp_dataset_batches(f->dataset); n += of.stride) {
            if (of.skip && (of.skip)(of.of, e, n))
                continue;
            assert_int_equal(dp_reader_next(reader, WAIT_MS, &batch), DP_OK);
            assert_true(batch->epoch == e && batch->number == n);
            dp_dataset_fill(f->dataset, e, n, own);
            assert_int_equal(batch->examples, own->examples);
            assert_memory_equal(batch->labels, own->labels, own->examples * sizeof *own->labels);
            assert_int_equal(batch->group[0].distinct, own->group[0].distinct);
            assert_memory_equal(batch->group[0].keys, own->group[0].keys,
                                own->group[0].distinct * sizeof *own->group[0].keys);
            dp_reader_give_back(reader, &batch);
            assert_null(batch);
        }
    expect_end(reader);
    dp_reader_stop(&reader);
    dp_reader_stop(&reader);
    dp_batch_free(&own);
}

/* In the order wanted, whatever that is; also twice, and of other epochs. */
static void what_is_wanted_comes_in_that_order(void **state)
{
    const struct fixture *f = *state;
    const struct dp_reader_plan of = {.stride = 1, .asked = true};
    struct dp_reader *reader = start(f, of, 2, 1);
    struct dp_batch *batch, *own = NULL;
    struct dp_error err = {0};
    uint64_t batches = dp_dataset_batches(f->dataset);
    assert_int_equal(dp_batch_new(f->dataset, &own, &err), DP_OK);
    for (uint32_t i = 0, asked = 0; i < 40; i++) {
        for (; asked < 40 && dp_reader_has_room(reader); asked++)
            dp_reader_want(reader, asked / 7, asked * 13 % batches);
        assert_true(asked > i && asked <= i + 4);
        assert_int_equal(dp_reader_next(reader, WAIT_MS, &batch), DP_OK);
        assert_true(batch->epoch == i / 7 && batch->number == i * 13 % batches);
        dp_dataset_fill(f->dataset, i / 7, i * 13 % batches, own);
        assert_memory_equal(batch->labels, own->labels, own->examples * sizeof *own->labels);
        dp_reader_give_back(reader, &batch);
    }
    assert_int_equal(dp_reader_next(reader, 0, &batch), DP_TIMEOUT);
    dp_reader_want(reader, 0, 0); /* stopped while it is read */
    dp_reader_stop(&reader);
    dp_batch_free(&own);
}

static void plans_in_order(void **state)
{
    for (uint32_t ahead = 1; ahead < 40; ahead += 13)
        for (uint32_t stride = 1; stride <= 30; stride += 7)
            for (uint32_t offset = 0; offset < stride; offset += 3)
                check_plan(*state, plan(1, 3, offset, stride), ahead);
    check_plan(*state, plan(5, 0, 0, 1), 1);
    check_plan(*state, plan(UINT32_MAX - 1, 1, 0, 1), 1);
}

/* What a worker that was started again finds done: all of an epoch but its last, and one between. */
static bool most(const void *of, uint32_t epoch, uint64_t number)
{
    return epoch == *(const uint32_t *)of && number != 4 && number != 20;
}

static bool all_of_it(const void *of, uint32_t epoch, uint64_t number)
{
    return true;
}

static void some_are_skipped(void **state)
{
    const uint32_t epoch = 2;
    struct dp_reader_plan of = plan(2, 3, 0, 4);
    of.skip = most;
    of.of = &epoch;
    for (uint32_t ahead = 1; ahead < 4; ahead++)
        check_plan(*state, of, ahead);
    of.skip = all_of_it;
    check_plan(*state, of, 1);
}

/* Held together: all differ. One more than there are: a wait in vain, until one is given back. */
static void several_held(void **state)
{
    struct dp_batch *held[5], *more = NULL;
    struct dp_reader *reader = start(*state, plan(0, 9, 0, 1), 1, 3);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(dp_reader_next(reader, WAIT_MS, &held[i]), DP_OK);
        assert_int_equal(held[i]->number, i);
    }
    assert_int_equal(dp_reader_next(reader, 0, &more), DP_TIMEOUT);
    assert_int_equal(dp_reader_next(reader, 20, &more), DP_TIMEOUT);
    dp_reader_give_back(reader, &held[2]);
    assert_int_equal(dp_reader_next(reader, WAIT_MS, &more), DP_OK);
    assert_int_equal(more->number, 5);
    dp_reader_give_back(reader, &more);
    for (int i = 0; i < 5; i++)
        if (i != 2)
            dp_reader_give_back(reader, &held[i]);
    dp_reader_stop(&reader);
}

static void stop_at_any_moment(void **state)
{
    for (int taken = 0; taken < 30; taken++) {
        struct dp_reader *reader = start(*state, plan(0, UINT32_MAX, 0, 1), 3, 0);
        for (int i = 0; i < taken; i++) {
            struct dp_batch *batch;
            assert_int_equal(dp_reader_next(reader, WAIT_MS, &batch), DP_OK);
            dp_reader_give_back(reader, &batch);
        }
        dp_reader_stop(&reader);
        assert_null(reader);
    }
}

/* A signal to the process with its main thread's mask shut stays pending: the reader's thread does not take
 * it. */
static void thread_takes_no_signals(void **state)
{
    struct dp_reader *reader = start(*state, plan(0, UINT32_MAX, 0, 1), 1, 0);
    struct dp_batch *batch;
    sigset_t one, before, pending;
    int got = 0;
    /* A batch shows that the thread runs: while it starts, the C library keeps its signals shut. */
    assert_int_equal(dp_reader_next(reader, WAIT_MS, &batch), DP_OK);
    dp_reader_give_back(reader, &batch);
    assert_int_equal(sigemptyset(&one), 0);
    assert_int_equal(sigaddset(&one, SIGUSR1), 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &one, &before), 0);
    assert_false(sigismember(&before, SIGUSR1)); /* the caller's mask is as it was before start */
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    assert_int_equal(sigpending(&pending), 0);
    assert_true(sigismember(&pending, SIGUSR1));
    assert_int_equal(sigwait(&one, &got), 0);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    dp_reader_stop(&reader);
}

static void bad_plans(void **state)
{
    struct fixture *f = *state;
    const struct dp_reader_plan plans[] = {plan(0, 1, 0, 0), plan(0, 1, 2, 2), plan(2, UINT32_MAX, 0, 1)};
    for (size_t i = 0; i < 4; i++) {
        struct dp_error err = {0};
        struct dp_reader *reader = (void *)&err;
        struct dp_reader_plan good = plan(0, 1, 0, 1);
        assert_int_equal(dp_reader_start(f->dataset, i < 3 ? &plans[i] : &good, i < 3, 1, &reader, &err),
                         DP_ARGUMENT);
        assert_null(reader);
        assert_non_null(strstr(err.text, "reader: "));
    }
}

static int setup(void **state)
{
    static struct fixture f;
    char text[EXAMPLES * 32];
    size_t len = 0;
    struct dp_error err = {0};
    for (int i = 0; i < EXAMPLES; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%d %d:1 1000:%d\n", i, i, i);
    (void)files_open(state);
    struct dp_dataset_options options = {.path = write_file("file", text, len),
                                         .form = DP_FORM_SPARSE,
                                         .scale = 1,
                                         .batch = 5,
                                         .shuffle = true};
    if (dp_dataset_open(&options, &f.dataset, &err) != DP_OK)
        fail_msg("%s", err.text);
    *state = &f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    dp_dataset_close(&f->dataset);
    return files_close(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_in_order),     cmocka_unit_test(what_is_wanted_comes_in_that_order),
        cmocka_unit_test(some_are_skipped),   cmocka_unit_test(several_held),
        cmocka_unit_test(stop_at_any_moment), cmocka_unit_test(thread_takes_no_signals),
        cmocka_unit_test(bad_plans)};
    return cmocka_run_group_tests_name("reader", tests, setup, teardown);
}
