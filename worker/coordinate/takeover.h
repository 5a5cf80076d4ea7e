/* Stand-in: removal and takeover. A member that is silent for longer than training.worker_timeout is
 * removed, so that the others continue without it.
 *     (this worker waits for others) -> ask the first server who is silent -> nobody at three looks in a row: back to the wait
 *     -> the register shows that it has left: nobody waits for it any more
 *     -> else the lowest live rank stands in, over a client of its own:
 *        join in its place (its process, if it lives, hears DP_REPLACED) -> its position -> pushes that some shard has are made again,
 *        from their minibatches and under their ids, so that every shard has them -> leave at the first step that no shard has
 * Promise   Of its pushes each is on all shards or on none. Its minibatches stay undone until it comes back
 *           (membership.h), and the report says how many. A member that came back is waited for again: it is
 *           seen here, and asked for (dp_job_recheck_gone) where none may be overlooked, as before an
 *           evaluation. While the first server is away nothing is decided. A process that comes back in its
 *           place before it has left keeps the place: the takeover is given up. A takeover that dies is
 *           followed by the next, which finds the position again. Two that stand in at once (the silences
 *           that they heard differ) are two processes in one place: the first one gets DP_REPLACED and gives
 *           up. A process that stood still itself hears here that it was let leave (DP_REPLACED), where it
 *           waits at a barrier and pulls nothing.
 * Why three Where all workers were suspended and the first server was not, all are silent at the first look,
 * which may come before their
 *           first heartbeats; these are no further apart than two looks.
 * But       Worker 0 does not leave: it writes the report and leaves the best weights. A worker that has not
 *           joined yet is waited for, too.
 * sync:B    A shard may have closed a step without this member, so there its unfinished pushes are ended by empty ones.
 * Thread    The client's.
 * Failure   Of open: DP_ARGUMENT of the check, DP_NOMEM. */
#ifndef DP_COORDINATE_TAKEOVER_H
#define DP_COORDINATE_TAKEOVER_H

#include "worker/context/job.h"
#include "worker/schedule/shares.h"
#include "worker/telemetry/worker_stats.h"

struct dp_gone {
    bool is;
    uint64_t until;  /* it took part in the steps of the run below, */
    uint64_t missed; /* but for so many in which it was away before */
};

struct dp_takeover {
    struct dp_job *job;        /* NULL: nobody leaves */
    struct dp_absence absence; /* of the job */
    const struct dp_dataset *data;
    struct dp_rounds rounds;
    uint64_t timeout_ms, due_ns;
    uint64_t looked_ns;
    uint64_t *silent_ms;  /* [rounds.members], heap */
    uint32_t *in_a_row;   /* [rounds.members], heap: looks at which it was silent */
    struct dp_gone *gone; /* [rounds.members], heap */
    uint32_t epochs;      /* trained: after early stopping fewer than in the settings */
    bool ended;           /* this worker leaves by itself, or has */
    bool told;            /* that worker 0 is silent */
};

/* DP_ARGUMENT names what is too many, and the remedy: a worker without minibatches is no member and cannot do without one that has left; and
 * the push numbers of one that has left stay missing, so those of an epoch must not pass the servers' window. */
DP_MUST_USE
enum dp_status dp_takeover_check(const struct dp_cluster_training *training, const struct dp_rounds *rounds,
                                 struct dp_error *err);
/* Sets the job's `absence`, if the run has members and a timeout; the client heartbeats from its next joining on. */
DP_MUST_USE
enum dp_status dp_takeover_open(struct dp_takeover *stand_in, struct dp_job *job,
                                const struct dp_dataset *data, const struct dp_rounds *rounds,
                                struct dp_error *err);
void dp_takeover_close(struct dp_takeover *stand_in); /* accepts {0} */
/* Call when the training has ended, before leaving. Accepts {0}. */
static inline void dp_takeover_ends(struct dp_takeover *stand_in, uint32_t epochs)
{
    stand_in->epochs = epochs;
    stand_in->ended = true;
}
/* Into the stats of a worker that is gone: what it left undone, also when it was away before. Nothing for {0}. */
DP_MUST_USE
enum dp_status dp_takeover_say(const struct dp_takeover *stand_in, uint32_t worker,
                               struct dp_worker_stats *stats, struct dp_error *err);
/* How many minibatches of a worker that took part in the steps below `until` were left undone in `epochs` epochs. */
uint64_t dp_takeover_undone(const struct dp_rounds *rounds, uint64_t until, uint32_t epochs);

#endif
