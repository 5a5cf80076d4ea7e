/* Waiting for a device: never beyond the deadline, never late by more than an eighth of what it took or a millisecond. */
#include "tests/lib/test.h"

#include "worker/compute/cuda/poll.h"

struct world {
    uint64_t now, done_at;
    unsigned asked, slept;
};

static bool done(void *arg)
{
    struct world *world = arg;
    world->asked++;
    return world->now >= world->done_at;
}

/* Time goes by with each look at it. */
static uint64_t now_ns(void *arg)
{
    return ((struct world *)arg)->now += 100;
}

static void sleep_ns(void *arg, uint64_t ns)
{
    struct world *world = arg;
    assert_true(ns > 0 && ns <= DP_POLL_PAUSE_NS);
    world->slept++;
    world->now += ns;
}

static bool wait_in(struct world *world, uint64_t deadline)
{
    const struct dp_poll poll = {done, now_ns, sleep_ns, world};
    return dp_poll_until(&poll, deadline);
}

static void what_is_done_is_found_soon(void **state)
{
    for (uint64_t takes = 1; takes < 100000000000u; takes *= 3) {
        struct world world = {.now = 1000, .done_at = 1000 + takes};
        assert_true(wait_in(&world, 200000000000u));
        uint64_t late = world.now - world.done_at;
        assert_true(late <= 1000 + takes / 8 && late <= DP_POLL_PAUSE_NS + 1000);
        if (takes < DP_POLL_BUSY_NS / 2)
            assert_int_equal(world.slept, 0);
    }
}

static void what_hangs_ends_at_the_deadline(void **state)
{
    struct world world = {.now = 1000, .done_at = UINT64_MAX};
    assert_false(wait_in(&world, 120000001000u));
    assert_in_range(world.now, 120000001000u, 120000001000u + 1000);
    assert_true(world.slept > 100 && world.asked < 200000);
}

/* A process that was held up beyond the deadline finds what was done meanwhile. */
static void what_is_done_counts_after_the_deadline(void **state)
{
    struct world world = {.now = 5000, .done_at = 0};
    assert_true(wait_in(&world, 10));
    world = (struct world){.now = 5000, .done_at = 100000};
    assert_false(wait_in(&world, 10));
    assert_int_equal(world.asked, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_done_is_found_soon),
        cmocka_unit_test(what_hangs_ends_at_the_deadline),
        cmocka_unit_test(what_is_done_counts_after_the_deadline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
