/* Watchdog: ends the process if a call that cannot be given a deadline does not return.
 *     start -> (begin (what, limit) -> the call -> end)* -> stop
 * Why       MPI's blocking calls wait without a limit for a rank that hangs. A process that ends without MPI_Finalize ends the whole
 *           job: mpirun sees to that.
 * Promise   Past the limit it logs what was waited for, with the remedy, and calls `bite`: by default _exit(2).
 * Thread    One of its own, which makes no MPI call; begin and end: the caller's.
 * Failure   start: DP_NOMEM: no thread. */
#ifndef DP_ALLREDUCE_WATCHDOG_H
#define DP_ALLREDUCE_WATCHDOG_H

#include "common/base/status.h"

#include <stdint.h>

struct dp_watchdog;

/* bite: a seam; NULL: the default. */
DP_MUST_USE
enum dp_status dp_watchdog_start(void (*bite)(void *of), void *of, struct dp_watchdog **out,
                                 struct dp_error *err);
/* Accepts NULL inside. */
void dp_watchdog_stop(struct dp_watchdog **watchdog);
/* what: a literal. limit_ns: of the monotonic clock, from now on. */
void dp_watchdog_begin(struct dp_watchdog *watchdog, const char *what, uint64_t limit_ns);
void dp_watchdog_end(struct dp_watchdog *watchdog);

#endif
