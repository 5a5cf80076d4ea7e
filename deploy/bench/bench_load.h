/* Load: keeps requests of any kind in flight for a while, and counts the completed ones.
 * Promise   The same loop drives everything that is compared, so that only the requests differ. */
#ifndef DP_BENCH_BENCH_LOAD_H
#define DP_BENCH_BENCH_LOAD_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_BENCH_IN_FLIGHT_MAX 16u
#define DP_BENCH_WAIT_MS       30000u /* for one answer */

struct dp_load {
    /* Issues request number n, in slot n % in_flight. */
    enum dp_status (*issue)(void *self, uint32_t slot, uint64_t n, struct dp_error *err);
    /* Waits for the slot's answer, at most DP_BENCH_WAIT_MS. */
    enum dp_status (*finish)(void *self, uint32_t slot, struct dp_error *err);
    /* The number of rows of request n. */
    uint64_t (*rows)(const void *self, uint64_t n);
    void *self;
};

uint64_t dp_bench_now_ns(void);

/* Runs for duration_ms, and until the last request is answered. *first: number of the first request;
 * advanced. */
enum dp_status dp_bench_load_run(const struct dp_load *load, uint32_t in_flight, uint32_t duration_ms,
                                 uint64_t *first, double *rows_per_s, struct dp_error *err);
/* Measures n requests, one at a time. */
enum dp_status dp_bench_load_round_trips(const struct dp_load *load, uint32_t n, uint64_t *first,
                                         uint64_t *ns, struct dp_error *err);
/* Measures at most n round trips of `front` while a second thread keeps `behind` in flight; *done: how many
 * completed in max_ms. The two loads share nothing. */
enum dp_status dp_bench_load_beside(const struct dp_load *front, const struct dp_load *behind,
                                    uint32_t in_flight, uint32_t max_ms, uint32_t n, uint64_t *ns,
                                    uint32_t *done, struct dp_error *err);

#endif
