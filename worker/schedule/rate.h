/* Rate: the learning rate of a minibatch, a pure function of its place in the training: step = epoch *
 * batches + number. All workers agree on it without communication, and a minibatch that is computed again
 * gets the same rate.
 *     warm-up        rate (step + 1) / warmup                                        while step < warmup
 *     none           rate
 *     linear         rate + (rate_end - rate) t,  t = (step - warmup) / (steps - warmup)
 *     cosine         rate_end + (rate - rate_end) (1 + cos(pi t)) / 2 (Loshchilov, Hutter 2017)
 *     inverse sqrt   rate sqrt(h / (h + step - warmup)),  h = max(warmup, 1)         (Vaswani et al. 2017) */
#ifndef DP_SCHEDULE_RATE_H
#define DP_SCHEDULE_RATE_H

#include "common/config/cluster.h"

struct dp_rate {
    enum dp_decay decay;
    double rate, rate_end;
    uint64_t warmup, steps;
    uint64_t before; /* steps of earlier runs that count (training.schedule "continue"); part of steps */
};

/* steps: minibatches of all epochs of this run, all workers. */
struct dp_rate dp_rate_of(const struct dp_cluster_training *training, uint64_t steps);
/* Always > 0, as a push wants it. */
float dp_rate_at(const struct dp_rate *rate, uint64_t step);

#endif
