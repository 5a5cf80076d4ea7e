/* Skipped steps: how a worker continues after steps that the servers committed without it, with backups
 * (sync:B).
 *     hears (what the pull of a step said) -> is (a step below the open one)?
 *     late: begin (the pull of the next step is in flight) -> look, while a minibatch computes -> is it late?
 * A pull hears that a later step is open: the steps before it are skipped. Their minibatches are not
 * computed, and their pushes are empty, since their numbers have to be used up. A minibatch under way is
 * late once every shard has committed its step. A shard answers the pull of a later step only then. So the
 * pull that was issued before this minibatch's push shows it. The minibatch is given up between two
 * operations, or in an injected delay.
 * Holds     The open step never falls.
 * Promise   A look costs a reading of the clock, and once a millisecond what the client does between two
 *           requests.
 * Thread    The client's; `is`: the reader's too.
 * Failure   A pull that fails makes the minibatch late, too, with the status in `failed`. */
#ifndef DP_LOOP_SKIPPED_STEPS_H
#define DP_LOOP_SKIPPED_STEPS_H

#include "worker/context/job.h"

struct dp_skipped {
    _Atomic uint64_t open; /* steps below it are skipped; 0: none is */
    uint64_t told_ns;      /* when the log said so last; 0: never */
};

static inline bool dp_skipped_is(const struct dp_skipped *skipped, uint64_t step)
{
    return step < atomic_load_explicit(&skipped->open, memory_order_relaxed);
}
/* A pull of `step` was answered with rows of step `open` on some shard; 0: not in this mode. The log reports
 * at most every 10 s that steps are skipped. */
void dp_skipped_hears(struct dp_skipped *skipped, uint64_t step, uint64_t open, const struct dp_clock *clock);

struct dp_late {
    struct dp_job *job;
    struct dp_skipped *skipped;
    struct dp_ticket *pull; /* of a later step; NULL: nothing can be heard */
    uint64_t step;          /* of that pull */
    uint64_t looked_ns;
    bool is;
    enum dp_status failed;
    struct dp_error err;
};

/* pull: {0} or NULL where none is in flight. */
void dp_late_begin(struct dp_late *late, struct dp_ticket *pull, uint64_t step);
/* Takes the answer of the pull, if it has come. late: a dp_late. */
bool dp_late_look(void *late);

#endif
