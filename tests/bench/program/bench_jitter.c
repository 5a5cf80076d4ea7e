#include "tests/bench/program/bench_jitter.h"

#include "deploy/bench/bench_load.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#define STEP_NS UINT64_C(1000000)

struct dp_jitter {
    pthread_t thread;
    bool runs;
    atomic_bool stop;
    struct dp_pin pin;
    size_t n, room;
    uint64_t *late;
};

static void *sleep_on(void *context)
{
    struct dp_jitter *jitter = context;
    dp_pin_serving(&jitter->pin);
    uint64_t due = dp_bench_now_ns();
    while (!atomic_load(&jitter->stop) && jitter->n < jitter->room) {
        due += STEP_NS;
        struct timespec until = {.tv_sec = (time_t)(due / 1000000000u), .tv_nsec = (long)(due % 1000000000u)};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        uint64_t now = dp_bench_now_ns();
        jitter->late[jitter->n++] = now > due ? now - due : 0;
        due = now > due + STEP_NS ? now : due; /* one long wait is one, not many */
    }
    return NULL;
}

enum dp_status dp_jitter_start(uint32_t minutes, const struct dp_pin *pin, struct dp_jitter **out,
                               struct dp_error *err)
{
    struct dp_jitter *jitter = calloc(1, sizeof *jitter);
    *out = NULL;
    if (jitter) {
        jitter->pin = *pin;
        jitter->room = (size_t)minutes * 60000u;
        jitter->late = malloc(jitter->room * sizeof *jitter->late);
    }
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    if (jitter && jitter->late)
        jitter->runs = pthread_create(&jitter->thread, NULL, sleep_on, jitter) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!jitter || !jitter->runs) {
        dp_jitter_free(&jitter);
        return dp_fail(err, DP_NOMEM, "no memory or thread for a timer");
    }
    *out = jitter;
    return DP_OK;
}

size_t dp_jitter_stop(struct dp_jitter *jitter, uint64_t **late)
{
    atomic_store(&jitter->stop, true);
    if (jitter->runs)
        (void)pthread_join(jitter->thread, NULL);
    jitter->runs = false;
    *late = jitter->late;
    return jitter->n;
}

void dp_jitter_free(struct dp_jitter **jitter)
{
    uint64_t *late;
    if (!*jitter)
        return;
    (void)dp_jitter_stop(*jitter, &late);
    free((*jitter)->late);
    free(*jitter);
    *jitter = NULL;
}
