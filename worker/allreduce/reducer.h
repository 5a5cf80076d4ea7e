/* Reducer: how the ranks of an all-reduce training meet and add. A seam: over MPI (mpi_reducer.h), and over threads in tests.
 *     (meet -> sum)*, least, gather: each a call of all ranks, in the same order
 * Promise   After sum and least all ranks have the same bits.
 * Thread    Each rank's own.
 * Failure   DP_TIMEOUT names the ranks that did not come. After any failure the ranks cannot continue: the rank that sees one
 *           ends the job. */
#ifndef DP_ALLREDUCE_REDUCER_H
#define DP_ALLREDUCE_REDUCER_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one rank gave. */
struct dp_gathered {
    void *bytes; /* heap */
    size_t size;
};

struct dp_reducer_ops {
    /* Waits until all ranks have called it, for limit_ns at most. */
    enum dp_status (*meet)(void *self, uint64_t limit_ns, struct dp_error *err);
    /* Each value becomes its sum over all ranks. After a meet, so that it takes the time of the sum alone. */
    enum dp_status (*sum)(void *self, float *values, size_t n, struct dp_error *err);
    /* Each value becomes the least of all ranks. After a meet. */
    enum dp_status (*least)(void *self, uint64_t *values, size_t n, struct dp_error *err);
    /* all: on rank 0 [ranks], of {0}, filled in; NULL on the others. After a meet. */
    enum dp_status (*gather)(void *self, const void *bytes, size_t size, struct dp_gathered *all,
                             struct dp_error *err);
};

struct dp_reducer {
    const struct dp_reducer_ops *ops;
    void *self;
    uint32_t rank, ranks;
    const char *how; /* what adds, for the report */
};

/* *same: whether all ranks gave this value. After a meet. */
static inline enum dp_status dp_reducer_same(const struct dp_reducer *reducer, uint64_t value, bool *same,
                                             struct dp_error *err)
{
    uint64_t ends[2] = {value, ~value}; /* the least, and the complement's least: the greatest */
    enum dp_status st = reducer->ops->least(reducer->self, ends, 2, err);
    *same = st == DP_OK && ends[0] == ~ends[1];
    return st;
}

#endif
