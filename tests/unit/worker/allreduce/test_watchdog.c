/* Goal    the watchdog bites once the limit of what is watched has passed, and never else. */
#include "tests/lib/test.h"
#include "worker/allreduce/watchdog.h"

#include "common/env/clock.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define HOUR_NS UINT64_C(3600000000000)

#define LIMIT_NS UINT64_C(20000000)

static sem_t bitten;
static uint64_t bitten_ns;

static uint64_t now_ns(void)
{
    const struct dp_clock clock = dp_clock_real();
    return dp_clock_ns(&clock);
}

static void bite(void *of)
{
    ++*(int *)of;
    bitten_ns = now_ns();
    (void)sem_post(&bitten);
}

static void await_bite(void)
{
    struct timespec until;
    int failed;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    do
        failed = sem_timedwait(&bitten, &until);
    while (failed && errno == EINTR);
    assert_int_equal(failed, 0);
}

/* Planted: no look at the time; the limit of the first call kept for all. */
static void it_bites_past_the_limit_alone(void **state)
{
    struct dp_watchdog watchdog;
    struct dp_error err = {0};
    int bites = 0;
    assert_int_equal(sem_init(&bitten, 0, 0), 0);
    assert_int_equal(dp_watchdog_start(&watchdog, bite, &bites, &err), DP_OK);
    dp_watchdog_begin(&watchdog, "what comes at once", HOUR_NS);
    dp_watchdog_end(&watchdog);
    uint64_t begun_ns = now_ns();
    dp_watchdog_begin(&watchdog, "what never comes", LIMIT_NS);
    await_bite();
    assert_true(bitten_ns >= begun_ns + LIMIT_NS);
    dp_watchdog_end(&watchdog);
    dp_watchdog_begin(&watchdog, "what comes later", HOUR_NS); /* it stops while it watches */
    dp_watchdog_stop(&watchdog);
    assert_int_equal(bites, 1);
    (void)sem_destroy(&bitten);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(it_bites_past_the_limit_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
