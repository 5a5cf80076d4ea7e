/* Watchdog: ends the process if a call that cannot be given a deadline does not return.
 *     start -> (begin (what, limit) -> the call -> end)* -> stop
 * Why       MPI's blocking calls wait without a limit for a rank that hangs. If a process ends without
 *           MPI_Finalize, mpirun ends the complete job.
 * Promise   Past the limit it logs what was waited for, with the remedy, and calls `bite`: by default _exit(2).
 * Thread    bite: one of the timer's, which makes no MPI call; begin and end: the caller's.
 * Failure   start: DP_NOMEM: no timer. */
#ifndef DP_ALLREDUCE_WATCHDOG_H
#define DP_ALLREDUCE_WATCHDOG_H

#include "common/base/status.h"

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

struct dp_watchdog {
    timer_t timer;
    _Atomic(const char *) what; /* NULL: nothing is watched */
    void (*bite)(void *of);
    void *of;
};

/* bite: a seam; NULL: the default. watchdog: it stays where it is until stop. */
enum dp_status dp_watchdog_start(struct dp_watchdog *watchdog, void (*bite)(void *of), void *of,
                                 struct dp_error *err);
void dp_watchdog_stop(struct dp_watchdog *watchdog);
/* what: a literal. limit_ns: of the monotonic clock, from now on. */
void dp_watchdog_begin(struct dp_watchdog *watchdog, const char *what, uint64_t limit_ns);
void dp_watchdog_end(struct dp_watchdog *watchdog);

#endif
