/* Jitter: how late this machine wakes a thread that only sleeps: what no server's turn can be better than.
 *     start -> ... -> stop, which gives the wakings
 * Thread    One of its own, on the serving processor of the pin.                                        */
#ifndef DP_CLI_BENCH_JITTER_H
#define DP_CLI_BENCH_JITTER_H

#include "common/base/status.h"
#include "deploy/cli/bench_pin.h"

#include <stddef.h>

struct dp_jitter;

/* A waking a millisecond, `minutes` of them at most. */
DP_MUST_USE
enum dp_status dp_jitter_start(uint32_t minutes, const struct dp_pin *pin, struct dp_jitter **out,
                               struct dp_error *err);
/* Waits for the thread to end. *late: [n], ns each, the jitter's until free. */
size_t dp_jitter_stop(struct dp_jitter *jitter, uint64_t **late);
void dp_jitter_free(struct dp_jitter **jitter); /* stops; accepts NULL inside, leaves NULL */

#endif
