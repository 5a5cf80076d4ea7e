/* In flight: the pushes of a worker that are not answered, oldest first, and the stats of their answers.
 *     (wait for a place -> push to the ticket of `next` -> added)* -> wait for all
 * Thread    The client's.
 * Failure   A wait that fails leaves the push that it waited for as the oldest. */
#ifndef DP_LOOP_IN_FLIGHT_H
#define DP_LOOP_IN_FLIGHT_H

#include "worker/context/job.h"
#include "worker/coordinate/work_leases.h"
#include "worker/telemetry/progress.h"
#include "worker/telemetry/worker_stats.h"

#define DP_IN_FLIGHT_MAX 64u

struct dp_in_flight_push {
    struct dp_ticket ticket;
    uint64_t number;
    uint32_t examples; /* of its gradients; 0: it has none */
    uint32_t passed;   /* of its minibatches that were skipped (skipped_steps.h) */
    uint64_t own;      /* pushes of this worker between the pull that it stands on and itself */
};

struct dp_in_flight {
    struct dp_job *job;
    struct dp_progress *progress;
    struct dp_worker_stats *stats;
    bool member; /* it joined before it asked what is done: each push is new to some shard */
    struct dp_in_flight_push push[DP_IN_FLIGHT_MAX]; /* a ring */
    uint32_t first, count;
    const uint32_t *flying;        /* minibatches that a device computes; if any, no takeover; or NULL */
    struct dp_work_leases *leases; /* where work is leased: of each push that every shard has answered */
};

/* Waits until at most `leave` pushes are unanswered. */
enum dp_status dp_in_flight_wait(struct dp_in_flight *pushes, uint32_t leave, struct dp_error *err);
/* The place of the next push: there is one; it counts after dp_in_flight_added. */
struct dp_ticket *dp_in_flight_next(struct dp_in_flight *pushes);
void dp_in_flight_added(struct dp_in_flight *pushes, uint64_t number, uint32_t examples, uint32_t passed,
                        uint64_t own);

#endif
