/* Position: where a restarted worker continues. It needs no file of its own: the servers know which pushes of
 * each epoch they have applied, durably.
 *     find  ->  done(epoch, group)?
 * Promise   A push counts as made when every shard has it. A push that reached only some shards is made
 *           again. Epochs before `epoch` are done, later ones have not begun. A worker that left and came
 *           back (membership.h) takes part from some step of the run on. The steps below are done, although
 *           it did not make all of them. The servers are asked which ones it made, back to the first epoch
 *           with a missed push.
 * Why       A worker's pushes of an epoch reach each shard in ascending order, and an epoch begins when all
 *           pushes of the previous one are answered. So the last push of an epoch shows whether the epoch is
 *           done, and a binary search finds the first one that is not. An epoch whose stream the servers
 *           have forgotten is over: newer ones took its place.
 *           With leased work (work_leases.h) an epoch begins when all pushes of the previous epoch are on
 *           all shards, from any worker. Then the servers are asked about all pushes (as worker 0 of 1, in
 *           any order).
 * Exact     If the servers have forgotten an epoch, the tally counts it as complete, with all of its
 *           minibatches.
 * Thread    find: the client's. The functions on a position: any. */
#ifndef DP_HISTORY_POSITION_H
#define DP_HISTORY_POSITION_H

#include "common/base/text.h"
#include "worker/context/job.h"
#include "worker/schedule/shares.h"

struct dp_position {
    uint32_t epoch;  /* the first with pushes left; training.epochs: none has */
    uint64_t groups; /* in an epoch */
    uint64_t made;   /* how many of those of `epoch` are made */
    uint64_t first;  /* the first of `epoch` that is not done */
    uint64_t *bits;  /* heap; bit g: group g of `epoch` is made; NULL: none is */
    uint64_t from;   /* of the seat */
    /* Epochs below `epoch` in which it may have missed some: bits of as many, the last one first. Heap. */
    uint64_t *gaps;
    uint32_t gap_epochs;
    uint64_t unknown; /* missed in epochs below those, as the servers forgot their pushes */
};

/* Asks for the pushes of the worker of `rounds`. seat: as of its membership. */
enum dp_status dp_position_find(struct dp_job *job, const struct dp_rounds *rounds, struct dp_seat seat,
                                struct dp_position *out, struct dp_error *err);
void dp_position_clear(struct dp_position *position); /* accepts {0} */
/* It is not to be made any more. */
bool dp_position_done(const struct dp_position *position, uint32_t epoch, uint64_t group);
/* It was made; that is less where the worker was away. Of an epoch that the servers have forgotten: all. */
bool dp_position_made(const struct dp_position *position, uint32_t epoch, uint64_t group);
/* Whether anything was done before. */
static inline bool dp_position_begun(const struct dp_position *position)
{
    return position->epoch > 0 || position->made > 0 || position->from > 0;
}
static inline bool dp_position_same(const struct dp_position *a, const struct dp_position *b)
{
    return a->epoch == b->epoch && a->made == b->made && a->from == b->from;
}

/* How much of a worker's share its pushes have, and how much it missed because it was away. */
struct dp_amount {
    uint64_t steps; /* with minibatches */
    uint64_t minibatches, examples;
};
struct dp_tally {
    struct dp_amount before; /* made in the epochs before the one under way, */
    struct dp_amount here;   /* and in this one */
    struct dp_amount missed; /* done without it */
};

/* examples, batch: as of dp_share_examples. */
struct dp_tally dp_position_tally(const struct dp_position *position, const struct dp_rounds *rounds,
                                  uint64_t examples, uint32_t batch);
static inline uint64_t dp_tally_examples(const struct dp_tally *tally)
{
    return tally->before.examples + tally->here.examples;
}

/* Logs where a restarted worker continues. */
void dp_position_tell(const struct dp_position *position, const struct dp_cluster_training *training,
                      const struct dp_rounds *rounds);

#endif
