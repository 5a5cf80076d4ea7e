#include "deploy/cli/bench_load.h"

#include <time.h>

uint64_t dp_bench_now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

enum dp_status dp_load_run(const struct dp_load *load, uint32_t in_flight, uint32_t duration_ms,
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

enum dp_status dp_load_round_trips(const struct dp_load *load, uint32_t n, uint64_t *first, uint64_t *ns,
                                   struct dp_error *err)
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
