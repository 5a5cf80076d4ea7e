/* Hogwild!: threads of one worker that share the local copy of one fetch without locks (Niu, Recht, Re and
 * Wright 2011, "Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent").
 *     each thread, while there are any:  next minibatch -> copy its rows -> compute -> step the local copy
 *                                        -> add to its own sum
 *     then                               the sums of all threads, in their order, are one push
 * Promise   Every minibatch is computed once, and its complete gradient is in the sum, even if the local
 *           copy loses steps (weights.h). One thread gives the bits of a worker without threads.
 * Why       Each thread has a program of its own, and BLAS one thread: if an example has few features, a
 *           minibatch is too little work to be divided, and two minibatches seldom change the same weight.
 * Thread    The client's, which computes too; options.threads - 1 others inside, between start and finish.
 *           Until finish no other thread touches the weights and batches of the work.
 * Failure   DP_NOT_FINITE: a loss is NaN or infinite. DP_STOPPING: a signal came, and some minibatches were
 *           not computed. Threads then take no further minibatch, and the sum is not to be pushed. */
#ifndef DP_LOOP_HOGWILD_H
#define DP_LOOP_HOGWILD_H

#include "worker/context/job.h"
#include "worker/context/weights.h"
#include "worker/loop/delays.h"
#include "worker/loop/gradients.h"

struct dp_hogwild;

struct dp_hogwild_options {
    const struct dp_job *job;       /* with a program, which the calling thread uses, on the CPU */
    uint32_t threads, batches_max;  /* of a fetch: above 1 */
    const struct dp_delays *delays; /* or NULL: of injected delays, each thread waits for its minibatches */
};

enum dp_status dp_hogwild_open(const struct dp_hogwild_options *options, struct dp_hogwild **out,
                               struct dp_error *err);
void dp_hogwild_close(struct dp_hogwild **hogwild);

/* The rates of the steps on the local copy, [batches_max]: set them before start. */
float *dp_hogwild_rates(struct dp_hogwild *hogwild);
/* The other threads begin with `count` minibatches that `weights` has taken and whose rows have arrived. */
void dp_hogwild_start(struct dp_hogwild *hogwild, struct dp_weights *weights, struct dp_batch *const *batches,
                      uint32_t count);
/* What a round has computed; lent until the next start. */
struct dp_hogwild_round {
    uint32_t at;              /* the first minibatch that failed, else the last that this thread computed */
    uint64_t injected_ns;     /* that the calling thread waited for injected delays */
    const float *losses;      /* [minibatches] */
    struct dp_gradients *sum; /* of all threads, to be pushed */
};
/* Computes too, and returns when all threads have ended. Call it once after each start. */
enum dp_status dp_hogwild_finish(struct dp_hogwild *hogwild, struct dp_hogwild_round *out,
                                 struct dp_error *err);

#endif
