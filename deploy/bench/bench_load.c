#include "deploy/bench/bench_load.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#define BEHIND_MS 50u

uint64_t dp_bench_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum dp_status dp_bench_load_run(const struct dp_load *load, uint32_t in_flight, uint32_t duration_ms,
                                 uint64_t *first, double *rows_per_s, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint64_t start = dp_bench_now_ns(), until = start + duration_ms * UINT64_C(1000000);
    uint64_t issued = 0, finished = 0, rows = 0;
    while (st == DP_OK && (issued == 0 || dp_bench_now_ns() < until)) {
        if (issued - finished == in_flight)
            st = load->finish(load->self, (uint32_t)(finished++ % in_flight), err);
        if (st != DP_OK)
            break;
        st = load->issue(load->self, (uint32_t)(issued % in_flight), *first + issued, err);
        rows += load->rows(load->self, *first + issued);
        issued++;
    }
    while (st == DP_OK && finished < issued)
        st = load->finish(load->self, (uint32_t)(finished++ % in_flight), err);
    *first += issued;
    *rows_per_s = (double)rows * 1e9 / (double)(dp_bench_now_ns() - start);
    return st;
}

enum dp_status dp_bench_load_round_trips(const struct dp_load *load, uint32_t n, uint64_t *first,
                                         uint64_t *ns, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < n && st == DP_OK; i++) {
        uint64_t start = dp_bench_now_ns();
        st = load->issue(load->self, 0, (*first)++, err);
        if (st == DP_OK)
            st = load->finish(load->self, 0, err);
        ns[i] = dp_bench_now_ns() - start;
    }
    return st;
}

struct behind {
    const struct dp_load *load;
    uint32_t in_flight;
    atomic_bool stop, runs;
    enum dp_status status;
    struct dp_error error;
};

static void *keep(void *context)
{
    struct behind *behind = context;
    uint64_t number = 0;
    double rate;
    while (behind->status == DP_OK && !atomic_load(&behind->stop)) {
        behind->status =
            dp_bench_load_run(behind->load, behind->in_flight, BEHIND_MS, &number, &rate, &behind->error);
        atomic_store(&behind->runs, true);
    }
    return NULL;
}

enum dp_status dp_bench_load_beside(const struct dp_load *front, const struct dp_load *behind,
                                    uint32_t in_flight, uint32_t max_ms, uint32_t n, uint64_t *ns,
                                    uint32_t *done, struct dp_error *err)
{
    struct behind other = {.load = behind, .in_flight = in_flight};
    enum dp_status st = DP_OK;
    uint64_t number = 0, until = dp_bench_now_ns() + max_ms * UINT64_C(1000000);
    pthread_t thread;
    sigset_t all, before;
    *done = 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, keep, &other);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return dp_fail(err, DP_NOMEM, "cannot start a thread for queued requests");
    for (uint32_t made = 0; st == DP_OK && *done < n && dp_bench_now_ns() < until; made++) {
        st = dp_bench_load_round_trips(front, 1, &number, &ns[*done], err);
        *done += atomic_load(&other.runs); /* counted from where the other is under way */
    }
    atomic_store(&other.stop, true);
    (void)pthread_join(thread, NULL);
    if (st == DP_OK && other.status != DP_OK) {
        st = other.status;
        *err = other.error;
    }
    return st;
}
