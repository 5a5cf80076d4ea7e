/* Position: where a worker goes on that was started again. Nothing on this machine tells it: the servers know which
 * pushes of each epoch they have applied, durably.
 *     find  ->  done(epoch, group)?
 * Promise   A push counts as done when every shard has it; one that reached some shards only is made again. Epochs
 *           before `epoch` are done, those behind it have not begun.
 * Why       A worker's pushes of an epoch reach each shard in ascending order, and an epoch begins when all of the one
 *           before are answered. So the last push of an epoch tells whether the epoch is done, and the first epoch
 *           that is not is found by halving. An epoch whose stream the servers have forgotten is over: newer ones
 *           took its place.
 * Thread    Any: plain functions over what `ask` answers. */
#ifndef DP_WORKER_POSITION_H
#define DP_WORKER_POSITION_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers that are asked for at once: as many as one request holds. */
#define DP_POSITION_PIECE 4096u

struct dp_position_plan {
    uint32_t run, epochs;
    uint32_t worker, workers;
    uint64_t groups; /* pushes of this worker in an epoch */
    /* As dp_client_pushed, for DP_POSITION_PIECE numbers at most. */
    enum dp_status (*ask)(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err);
    void *context;
};

struct dp_position {
    uint32_t epoch;  /* the first with something left; plan.epochs: nothing is */
    uint64_t groups; /* of an epoch */
    uint64_t done;   /* of those in `epoch` */
    uint64_t first;  /* of those in `epoch` the first that is not done */
    uint64_t *bits;  /* heap: bit g: group g of `epoch` is done; NULL: none is */
};

DP_MUST_USE
enum dp_status dp_position_find(const struct dp_position_plan *plan, struct dp_position *out,
                                struct dp_error *err);
void dp_position_clear(struct dp_position *position); /* accepts {0} */
bool dp_position_done(const struct dp_position *position, uint32_t epoch, uint64_t group);
/* Whether anything was done before. */
static inline bool dp_position_begun(const struct dp_position *position)
{
    return position->epoch > 0 || position->done > 0;
}

#endif
