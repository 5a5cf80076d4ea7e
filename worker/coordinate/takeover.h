/* Takeover: removes a member that is silent for longer than training.worker_timeout, so that the others
 * continue without it.
 *     (this worker waits for others) -> ask the first server for the silences, at three looks in a row
 *     -> the register shows that it has left: the others stop waiting for it
 *     -> else the live member of the lowest rank takes over, through a client of its own:
 *        join in its place (its process, if it lives, gets DP_REPLACED) -> find its position -> make the
 *        pushes that only some shards have again, from their minibatches and under their ids -> leave at the
 *        first step that no shard has
 * Promise   Each push of a removed member is on all shards or on none. Its minibatches stay undone until it
 *           comes back (membership.h), and the report says how many. A member that is back is waited for
 *           again: a look sees it, and dp_job_recheck_gone asks for it where none may be overlooked, as
 *           before an evaluation. While the first server is away nothing is decided. A process that comes
 *           back before its place has left keeps it: the takeover is given up. A takeover that dies is
 *           followed by the next one. If two takeovers run at once (they measured different silences), the
 *           first gets DP_REPLACED and gives up. A process that was suspended and removed gets DP_REPLACED
 *           here, where it waits at a barrier and pulls nothing.
 * Why three If all workers were suspended but the first server was not, all seem silent at the first look,
 *           which may come before their first heartbeats. Heartbeats are no further apart than two looks.
 * But       Worker 0 is never removed: it writes the report and has the best weights saved. A worker
 *           that has not joined yet is waited for, too.
 * sync:B    A shard may have committed a step without this member: its unfinished pushes are completed by
 *           empty ones.
 * Thread    The client's.
 * Failure   open: DP_ARGUMENT of the check, DP_NOMEM. */
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
    struct dp_job *job;        /* NULL: no worker leaves */
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

/* DP_ARGUMENT names what is too many, and the remedy: a worker without minibatches is no member and cannot do
 * without one that has left; and the push numbers of one that has left stay missing, so those of an epoch
 * must not pass the servers' window. */
enum dp_status dp_takeover_check(const struct dp_cluster_training *training, const struct dp_rounds *rounds,
                                 struct dp_error *err);
/* Sets the job's `absence`, if the run has members and a timeout; the client heartbeats from its next joining
 * on. */
enum dp_status dp_takeover_open(struct dp_takeover *takeover, struct dp_job *job,
                                const struct dp_dataset *data, const struct dp_rounds *rounds,
                                struct dp_error *err);
void dp_takeover_close(struct dp_takeover *takeover); /* accepts {0} */
/* Call when the training has ended, before leaving. Accepts {0}. */
static inline void dp_takeover_ends(struct dp_takeover *takeover, uint32_t epochs)
{
    takeover->epochs = epochs;
    takeover->ended = true;
}
/* Into the stats of a worker that left: its unfinished work, also when it was away before. Nothing for
 * {0}. */
enum dp_status dp_takeover_say(const struct dp_takeover *takeover, uint32_t worker,
                               struct dp_worker_stats *stats, struct dp_error *err);
/* How many minibatches of a worker that took part in the steps below `until` were left undone in `epochs`
 * epochs. */
uint64_t dp_takeover_undone(const struct dp_rounds *rounds, uint64_t until, uint32_t epochs);

#endif
