/* The pace, on a clock that only its own waits turn. */
#include "server/checkpoint/pace.h"
#include "tests/lib/test.h"

#define SECOND UINT64_C(1000000000)

struct turned {
    uint64_t now_ns, waited_ns, waits;
    atomic_bool cancelled;
    uint64_t cancel_at; /* this many waits */
};

static uint64_t now_ns(void *self)
{
    return ((struct turned *)self)->now_ns;
}

static void wait_ns(void *context, uint64_t ns)
{
    struct turned *t = context;
    t->now_ns += ns;
    t->waited_ns += ns;
    if (++t->waits == t->cancel_at)
        atomic_store(&t->cancelled, true);
}

static struct dp_pace pace_of(struct turned *t, uint64_t rate)
{
    return (struct dp_pace){.clock = {now_ns, t},
                            .rate_bytes = rate,
                            .cancelled = &t->cancelled,
                            .wait = wait_ns,
                            .wait_context = t};
}

static void it_keeps_to_the_rate(void **state)
{
    struct turned t = {.now_ns = 50 * SECOND};
    struct dp_pace pace = pace_of(&t, 1000000);
    _Atomic uint64_t done = 0;
    pace.done_bytes = &done;
    for (int i = 0; i < 100; i++)
        assert_int_equal(dp_pace_step(&pace, 100000, NULL), DP_OK);
    assert_in_range(t.waited_ns, 99 * SECOND / 10, 10 * SECOND);
    assert_int_equal(atomic_load(&done), 10000000);
    t.now_ns += 1000 * SECOND; /* what was not used is not made up for */
    t.waited_ns = 0;
    for (int i = 0; i < 10; i++)
        assert_int_equal(dp_pace_step(&pace, 100000, NULL), DP_OK);
    assert_in_range(t.waited_ns, 9 * SECOND / 10, SECOND);
}

static void without_a_rate_nobody_waits(void **state)
{
    struct turned t = {0};
    struct dp_pace pace = pace_of(&t, 0);
    assert_int_equal(dp_pace_step(&pace, UINT64_MAX, NULL), DP_OK);
    assert_int_equal(t.waits, 0);
    assert_int_equal(dp_pace_step(NULL, 5, NULL), DP_OK);
}

static void a_cancel_ends_the_wait(void **state)
{
    struct turned t = {.cancel_at = 3};
    struct dp_pace pace = pace_of(&t, 1);
    struct dp_error err = {0};
    assert_int_equal(dp_pace_step(&pace, 1000000, &err), DP_STOPPING);
    assert_int_equal(t.waits, 3);
    assert_true(t.waited_ns <= SECOND / 10);
    assert_int_equal(dp_pace_step(&pace, 0, &err), DP_STOPPING);
}

/* A copy that takes 10 ms of its processor a step, beside threads that take `others_ns` meanwhile. */
struct shared {
    struct turned t;
    struct dp_pace_cpu cpu;
    uint64_t others_ns;
};

static struct dp_pace_cpu cpu_of(void *context)
{
    return ((struct shared *)context)->cpu;
}

static void work(struct shared *s, struct dp_pace *pace, int steps)
{
    for (int i = 0; i < steps; i++) {
        s->t.now_ns += SECOND / 100;
        s->cpu.thread_ns += SECOND / 100;
        s->cpu.process_ns += SECOND / 100 + s->others_ns;
        assert_int_equal(dp_pace_step(pace, 1000, NULL), DP_OK);
    }
}

static void it_gives_way_to_busy_threads(void **state)
{
    struct shared s = {.t = {.now_ns = SECOND}, .others_ns = SECOND / 100};
    struct dp_pace pace = pace_of(&s.t, 0);
    pace.cpu = cpu_of;
    pace.cpu_context = &s;
    pace.share_percent = 25;
    work(&s, &pace, 101);
    assert_int_equal(s.t.waited_ns, 100 * 3 * (SECOND / 100)); /* the first step was not looked at */
    s.others_ns = SECOND / 500;                                /* a fifth of a processor */
    s.t.waited_ns = 0;
    work(&s, &pace, 100);
    assert_int_equal(s.t.waited_ns, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_keeps_to_the_rate),
        cmocka_unit_test(without_a_rate_nobody_waits),
        cmocka_unit_test(a_cancel_ends_the_wait),
        cmocka_unit_test(it_gives_way_to_busy_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
