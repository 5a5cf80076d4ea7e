/* Pace: how fast a copy goes, how far it has come, and whether it shall stop.
 * Promise   Over any time the bytes that were stepped are at most rate_bytes a second, plus a tenth of a second's. While the
 *           process's other threads are busy, the copying one takes share_percent of a processor at most.
 *           A copy that was cancelled stops at its next step, within some milliseconds also where it waits.
 * Thread    step: the copying one. done and cancelled: any. */
#ifndef DP_CHECKPOINT_PACE_H
#define DP_CHECKPOINT_PACE_H

#include "common/base/status.h"
#include "common/env/clock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Processor time, of the calling thread and of its process. */
struct dp_pace_cpu {
    uint64_t thread_ns, process_ns;
};

struct dp_pace {
    struct dp_clock clock;
    uint64_t rate_bytes;          /* a second; 0: no limit */
    uint32_t share_percent;       /* 0: no limit */
    _Atomic uint64_t *done_bytes; /* NULL: not reported */
    const atomic_bool *cancelled; /* NULL: never */
    /* Lets so much time pass; dp_pace_real's sleeps. */
    void (*wait)(void *context, uint64_t ns);
    void *wait_context;
    void (*between)(
        void
            *context); /* called at each step, and while one waits: what cannot wait so long. NULL: nothing */
    void *between_context;
    struct dp_pace_cpu (*cpu)(void *context); /* dp_pace_real's: the system's */
    void *cpu_context;
    uint64_t due_ns; /* when all that was stepped may have been */
    struct {         /* at the last step that was looked at; wall_ns 0: there was none */
        uint64_t wall_ns;
        struct dp_pace_cpu cpu;
    } last;
};

/* With the real clock, without limits. */
struct dp_pace dp_pace_real(void);
/* So many bytes were read. pace NULL: nothing. DP_STOPPING: cancelled. */
enum dp_status dp_pace_step(struct dp_pace *pace, uint64_t bytes, struct dp_error *err);

#endif
