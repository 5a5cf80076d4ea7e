/* Position: where a restarted worker continues. It needs no file of its own: the servers know which pushes of
 * each epoch they have applied, durably.
 *     find  ->  done(epoch, group)?
 * Promise   A push counts as made when every shard has it; one that reached only some shards is made again.
 *           Epochs before `epoch` are done, later ones have not begun.
 *           A worker that was away and came back (membership.h) takes part from a step of the run on: those
 *           below are done, though it did not make them all. Which ones it made is asked, back to the first
 *           epoch of which it missed anything.
 * Why       A worker's pushes of an epoch reach each shard in ascending order, and an epoch begins when all
 *           pushes of the previous one are answered. So the last push of an epoch shows whether the epoch is
 *           done, and a binary search finds the first one that is not. An epoch whose stream the servers
 *           have forgotten is over: newer ones took its place.
 *           Where all workers take from one list (work_leases.h), an epoch begins when all pushes of the one
 *           before are on all shards, in any worker; all are asked for then (worker 0 of 1, in any order).
 * Thread    Any: plain functions of the answers of `ask`. */
#ifndef DP_HISTORY_POSITION_H
#define DP_HISTORY_POSITION_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Push numbers in one request. */
#define DP_POSITION_PIECE 4096u

struct dp_position_plan {
    uint32_t run, epochs;
    uint32_t worker, workers;
    uint64_t groups; /* pushes of this worker in an epoch */
    bool any_order;  /* pushes are made in any order: an epoch is over when all of them are there */
    uint64_t from; /* it takes part from this step of the run on: group g of epoch e is step e * groups + g */
    uint64_t missed; /* of the steps below `from`: in how many it took no part */
    /* As dp_client_pushed, for DP_POSITION_PIECE numbers at most. */
    enum dp_status (*ask)(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err);
    void *context;
};

struct dp_position {
    uint32_t epoch;  /* the first with pushes left; plan.epochs: none has */
    uint64_t groups; /* in an epoch */
    uint64_t made;   /* how many of those of `epoch` are made */
    uint64_t first;  /* the first of `epoch` that is not done */
    uint64_t *bits;  /* heap; bit g: group g of `epoch` is made; NULL: none is */
    uint64_t from;   /* of the plan */
    /* Epochs below `epoch` in which it may have missed some: bits of as many, the last one first. Heap. */
    uint64_t *gaps;
    uint32_t gap_epochs;
    uint64_t unknown; /* missed in epochs below those, of which the servers have forgotten what was made */
};

DP_MUST_USE
enum dp_status dp_position_find(const struct dp_position_plan *plan, struct dp_position *out,
                                struct dp_error *err);
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

#endif
