/* Jitter: how late this machine wakes a thread that only sleeps, a lower bound for the turns of a server.
 *     start -> ... -> stop, which returns the delays
 * Thread    One of its own, on the serving processor of the pin. */
#ifndef DP_TESTS_BENCH_PROGRAM_BENCH_JITTER_H
#define DP_TESTS_BENCH_PROGRAM_BENCH_JITTER_H

#include "common/base/status.h"
#include "deploy/bench/bench_pin.h"

#include <stddef.h>

struct dp_jitter;

/* Wakes every millisecond, for at most `minutes`. */
enum dp_status dp_jitter_start(uint32_t minutes, const struct dp_pin *pin, struct dp_jitter **out,
                               struct dp_error *err);
/* Waits for the thread to end, and returns n. *late: [n] delays in ns, owned by the jitter until free. */
size_t dp_jitter_stop(struct dp_jitter *jitter, uint64_t **late);
void dp_jitter_free(struct dp_jitter **jitter); /* stops; accepts NULL inside, leaves NULL */

#endif
