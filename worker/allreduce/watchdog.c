#include "worker/allreduce/watchdog.h"

#include "common/base/log.h"

#include <signal.h>
#include <unistd.h>

static void end_process(void *of)
{
    (void)of;
    _exit(2);
}

static void overdue(union sigval of)
{
    struct dp_watchdog *watchdog = of.sival_ptr;
    const char *what = atomic_load(&watchdog->what);
    if (!what)
        return; /* the call returned at the last moment */
    dp_log(DP_LOG_ERROR,
           "gave up waiting for %s: another rank hangs or its machine is gone, and without it none goes on; "
           "look at its log, start the training again, or raise --timeout (training.timeout_ms)",
           what);
    watchdog->bite(watchdog->of);
}

enum dp_status dp_watchdog_start(struct dp_watchdog *watchdog, void (*bite)(void *of), void *of,
                                 struct dp_error *err)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_THREAD, .sigev_value.sival_ptr = watchdog, .sigev_notify_function = overdue};
    watchdog->bite = bite ? bite : end_process;
    watchdog->of = of;
    atomic_init(&watchdog->what, NULL);
    return timer_create(CLOCK_MONOTONIC, &event, &watchdog->timer) == 0
               ? DP_OK
               : dp_fail(err, DP_NOMEM, "no timer for the watchdog: a limit of the system is reached");
}

static void set(const struct dp_watchdog *watchdog, uint64_t limit_ns)
{
    const struct itimerspec limit = {
        .it_value = {.tv_sec = (time_t)(limit_ns / 1000000000), .tv_nsec = (long)(limit_ns % 1000000000)}};
    DP_ASSERT(timer_settime(watchdog->timer, 0, &limit, NULL) == 0);
}

void dp_watchdog_stop(struct dp_watchdog *watchdog)
{
    (void)timer_delete(watchdog->timer);
}

void dp_watchdog_begin(struct dp_watchdog *watchdog, const char *what, uint64_t limit_ns)
{
    DP_ASSERT(!atomic_load(&watchdog->what) && limit_ns > 0);
    atomic_store(&watchdog->what, what);
    set(watchdog, limit_ns);
}

void dp_watchdog_end(struct dp_watchdog *watchdog)
{
    set(watchdog, 0);
    atomic_store(&watchdog->what, NULL);
}
