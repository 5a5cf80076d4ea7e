#include "worker/allreduce/watchdog.h"

#include "common/base/log.h"
#include "common/env/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct dp_watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stops;
    const char *what;  /* NULL: nothing is watched */
    uint64_t until_ns; /* then */
    void (*bite)(void *of);
    void *of;
};

static void end_process(void *of)
{
    (void)of;
    _exit(2);
}

static void *watch(void *of)
{
    struct dp_watchdog *w = of;
    const struct dp_clock clock = dp_clock_real();
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stops) {
        const struct timespec until = {.tv_sec = (time_t)(w->until_ns / 1000000000),
                                       .tv_nsec = (long)(w->until_ns % 1000000000)};
        if (!w->what) {
            (void)pthread_cond_wait(&w->changed, &w->lock);
        } else if (dp_clock_ns(&clock) < w->until_ns) {
            (void)pthread_cond_timedwait(&w->changed, &w->lock, &until);
        } else {
            dp_log(DP_LOG_ERROR,
                   "gave up waiting for %s: another rank hangs or its machine is gone, and without it none "
                   "goes on; look at its log, start the training again, or raise --timeout "
                   "(training.timeout_ms)",
                   w->what);
            w->what = NULL;
            w->bite(w->of);
        }
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

enum dp_status dp_watchdog_start(void (*bite)(void *of), void *of, struct dp_watchdog **out,
                                 struct dp_error *err)
{
    sigset_t all, before;
    pthread_condattr_t monotonic;
    *out = NULL;
    struct dp_watchdog *w = calloc(1, sizeof *w);
    if (!w)
        return dp_fail(err, DP_NOMEM, "no memory for the watchdog");
    w->bite = bite ? bite : end_process;
    w->of = of;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, NULL, watch, w);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) {
        *out = w;
        return DP_OK;
    }
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
    return dp_fail(err, DP_NOMEM, "no thread for the watchdog: the system's limit of threads is reached");
}

void dp_watchdog_stop(struct dp_watchdog **watchdog)
{
    struct dp_watchdog *w = *watchdog;
    *watchdog = NULL;
    if (!w)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stops = true;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    (void)pthread_cond_destroy(&w->changed);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

void dp_watchdog_begin(struct dp_watchdog *watchdog, const char *what, uint64_t limit_ns)
{
    const struct dp_clock clock = dp_clock_real();
    (void)pthread_mutex_lock(&watchdog->lock);
    DP_ASSERT(!watchdog->what);
    watchdog->what = what;
    watchdog->until_ns = dp_clock_ns(&clock) + limit_ns;
    (void)pthread_cond_signal(&watchdog->changed);
    (void)pthread_mutex_unlock(&watchdog->lock);
}

void dp_watchdog_end(struct dp_watchdog *watchdog)
{
    (void)pthread_mutex_lock(&watchdog->lock);
    watchdog->what = NULL;
    (void)pthread_mutex_unlock(&watchdog->lock);
}
