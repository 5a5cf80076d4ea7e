/* Load: requests kept in flight for a while, whatever they are, and how many were done.
 * Promise   The same loop drives every kind that is compared, so that only what a request is differs.     */
#ifndef DP_CLI_BENCH_LOAD_H
#define DP_CLI_BENCH_LOAD_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_BENCH_IN_FLIGHT_MAX 16u
#define DP_BENCH_WAIT_MS       30000u /* for one answer */

struct dp_load {
    /* Request number n, in slot n % in_flight. */
    enum dp_status (*issue)(void *self, uint32_t slot, uint64_t n, struct dp_error *err);
    /* Waits for the slot's answer, DP_BENCH_WAIT_MS at most. */
    enum dp_status (*finish)(void *self, uint32_t slot, struct dp_error *err);
    /* Rows that request n asks for. */
    uint64_t (*rows)(const void *self, uint64_t n);
    void *self;
};

uint64_t dp_bench_now_ns(void);

/* For duration_ms, and until the last is answered. first: number of the first request, moved on. */
DP_MUST_USE
enum dp_status dp_load_run(const struct dp_load *load, uint32_t in_flight, uint32_t duration_ms,
                           uint64_t *first, double *rows_per_s, struct dp_error *err);
/* n requests, one at a time: how long each took. */
DP_MUST_USE
enum dp_status dp_load_round_trips(const struct dp_load *load, uint32_t n, uint64_t *first, uint64_t *ns,
                                   struct dp_error *err);
/* Round trips of `front`, n at most, while a second thread keeps `behind` in flight; done: how many there were in max_ms.
 * The two loads share nothing. */
DP_MUST_USE
enum dp_status dp_load_beside(const struct dp_load *front, const struct dp_load *behind, uint32_t in_flight,
                              uint32_t max_ms, uint32_t n, uint64_t *ns, uint32_t *done,
                              struct dp_error *err);

#endif
