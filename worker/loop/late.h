/* Late: a minibatch that is computed for a step which every shard has closed without this worker (sync:B).
 * No shard takes its gradients, so it is given up: between two operations, or in an injected delay.
 *     begin (the pull of the next step is on its way) -> looks, while it computes -> is it late?
 * Why       A shard answers the pull of a later step once it has closed the one at hand. That all have,
 *           before this worker has pushed, says that none waits for its push.
 * Promise   A look costs a reading of the clock, and once a millisecond what the client does between two
 *           requests.
 * Thread    The client's.
 * Failure   A pull that fails makes it late, too, with the status in `failed`. */
#ifndef DP_LOOP_LATE_H
#define DP_LOOP_LATE_H

#include "worker/context/job.h"
#include "worker/loop/behind.h"

struct dp_late {
    struct dp_job *job;
    struct dp_behind *behind;
    struct dp_ticket *pull; /* of a later step; NULL: nothing can be heard */
    uint64_t step;          /* of that pull */
    uint64_t looked_ns;
    bool is;
    enum dp_status failed;
    struct dp_error err;
};

/* pull: {0} or NULL where none is on its way. */
void dp_late_begin(struct dp_late *late, struct dp_ticket *pull, uint64_t step);
/* Takes the answer of the pull, if it has come. late: a dp_late. */
bool dp_late_look(void *late);

#endif
