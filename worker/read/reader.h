/* Reader: a thread that fills minibatches ahead of their consumer.
 *     start  ->  next, give_back, next, ...  ->  stop
 *     start (asked)  ->  want, want, next, give_back, want, next, ...  ->  stop
 * Promise   Batches come in the order of the plan, each once, without those that it skips; then every call
 *           gives NULL. Or, where the plan is asked, in the order in which they were wanted.
 * Thread    next, want and give_back: called by one consumer. One thread inside, which blocks
 *           signals.
 * Memory    `ahead` + 1 + `hold_max` batches (fewer if the plan is shorter), all made at start. A batch is
 *           lent until it is given back. A consumer that holds more than hold_max slows the thread; one that
 *           holds all of them gets DP_TIMEOUT.
 * Failure   start: DP_ARGUMENT, DP_NOMEM; nothing stays allocated. The data set must outlive the reader. */
#ifndef DP_READ_READER_H
#define DP_READ_READER_H

#include "worker/read/dataset.h"

/* The minibatches of one worker: in epochs first_epoch .. first_epoch + epochs - 1, the numbers n with
 * n % stride == offset, ascending. */
struct dp_reader_plan {
    uint32_t first_epoch, epochs;
    uint32_t before; /* epochs of earlier trainings: the order of examples in epoch e is that of before + e */
    uint32_t offset, stride;
    /* Whether to skip a minibatch, which then costs nothing; NULL: none. Called by the reader's thread:
         * `of` must not change until stop. */
    bool (*skip)(const void *of, uint32_t epoch, uint64_t number);
    const void *of;
    bool asked; /* only what is wanted: the rest of the plan is ignored */
};

struct dp_reader;

enum dp_status dp_reader_start(const struct dp_dataset *dataset, const struct dp_reader_plan *plan,
                               uint32_t ahead, uint32_t hold_max, struct dp_reader **out,
                               struct dp_error *err);
/* Ends the thread and frees all batches, which must have been given back. Accepts NULL inside. */
void dp_reader_stop(struct dp_reader **reader);
/* *out: lent; NULL at the end of the plan. DP_TIMEOUT when none is filled in time. */
enum dp_status dp_reader_next(struct dp_reader *reader, uint32_t timeout_ms, struct dp_batch **out);
/* Of an asked plan: whether a batch is free for what is wanted next. */
bool dp_reader_has_room(const struct dp_reader *reader);
/* The minibatch comes after those that were wanted before; there is room. epoch: as the data set counts. */
void dp_reader_want(struct dp_reader *reader, uint32_t epoch, uint64_t number);
void dp_reader_give_back(struct dp_reader *reader, struct dp_batch **batch);

#endif
