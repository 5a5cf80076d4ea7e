/* Evaluation: the evaluated sets of a training, and the decisions by them. It evaluates the validation set,
 * or else the test set, at the end of each epoch while all workers rest (epoch_barrier.h). A test set in
 * addition to a validation set is evaluated once, at the end, or, where the best epoch is kept, at each barrier.
 *     plan -> begin -> (an epoch -> epoch)* -> end -> tidy -> close
 * Failure   plan: DP_ARGUMENT, DP_DATA or DP_FULL, with the remedy, when the metrics of the rule cannot be
 *           computed on this set.
 * Thread    The client's. */
#ifndef DP_LOOP_EVALUATION_H
#define DP_LOOP_EVALUATION_H

#include "worker/coordinate/epoch_barrier.h"
#include "worker/history/stats_history.h"

struct dp_evaluation {
    struct dp_job *job;
    const char *cluster_file; /* for the checkpoint of the best epoch */
    struct dp_peers *peers;
    struct dp_stats_history *history;
    const struct dp_dataset *test, *valid; /* NULL without one */
    const struct dp_dataset *data;         /* evaluated after each epoch; NULL: none, and no worker rests */
    struct dp_epoch_barrier barrier;       /* with data */
    struct dp_tested *tested, *validated;  /* [epochs] of the sets, heap */
    uint64_t batches;                      /* of the training set, in an epoch */
    uint32_t left;                         /* after end: the epoch whose weights are the result */
};

/* Call before the job's program is made. test, valid: lent. batches: of the training set, in an epoch. */
enum dp_status dp_evaluation_plan(struct dp_evaluation *evaluation, struct dp_job *job,
                                  const char *cluster_file, uint64_t batches, const struct dp_dataset *test,
                                  const struct dp_dataset *valid, struct dp_error *err);
void dp_evaluation_close(struct dp_evaluation *evaluation); /* accepts {0} */
/* Call before the first epoch of this process: reads the decisions of earlier epochs. away: the worker was, and came back; the others may
 * still be in epochs before its own, where it rests and evaluates with them. *stop: the training is
 * over, after the epoch that was judged last. */
enum dp_status dp_evaluation_begin(struct dp_evaluation *evaluation, struct dp_peers *peers,
                                   struct dp_stats_history *history, const struct dp_position *position,
                                   bool away, bool *stop, struct dp_error *err);
/* Call when epoch `epoch`, counted from 1, has ended. *stop: it was the last. */
enum dp_status dp_evaluation_epoch(struct dp_evaluation *evaluation, uint32_t epoch, bool *stop,
                                   struct dp_error *err);
/* Call when the training is over, after `epochs` epochs. */
enum dp_status dp_evaluation_end(struct dp_evaluation *evaluation, uint32_t epochs, struct dp_error *err);
/* Call after "done" was announced, when no worker needs the last parts any more. */
void dp_evaluation_tidy(struct dp_evaluation *evaluation);

#endif
