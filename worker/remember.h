/* Remember: what a training was like so far, kept so that a worker that is started again reports what it had seen before.
 *     open -> begin -> get -> (push)* -> epoch -> judged -> ... -> close
 * In the step log (step_log.h), where the cluster file names one: the loss of every push, before it is sent; the figures of
 * epochs and evaluated sets; early stopping's state. Of the pushes those count that the servers have, summed up in the order
 * of an undisturbed training, so that the figures are the same, bit for bit.
 * And as notes on the first server, for workers that have no such file, or another machine's:
 *     run/<run>/figures/<worker>   each worker's own (figures.h), after an epoch
 *     run/<run>/tested/0           worker 0: figures of the test set by epoch, a JSON array
 * Promise   Keeping never stops a training: what cannot be put or read is logged, and the figures are missing in the report.
 *           Where workers rest at the end of an epoch, each puts its own before it says that it has ended it: whoever knows that all
 *           have ended it finds all figures of it (of the first 1,024 epochs). Otherwise put takes 5% of the time at most: epochs
 *           that are over sooner than that are put with a later one.
 * Thread    The client's. */
#ifndef DP_WORKER_REMEMBER_H
#define DP_WORKER_REMEMBER_H

#include "worker/job.h"
#include "worker/position.h"
#include "worker/report.h"
#include "worker/step_log.h"
#include "worker/stop.h"

struct dp_remember {
    uint64_t next_ns;        /* no note before */
    struct dp_step_log *log; /* or NULL */
    /* Of the epoch in which this process began, pushes done before that are not in its sums yet, ascending. */
    struct dp_step *found;
    size_t found_len, found_next;
    uint32_t epoch; /* the epoch under way, and how many pushes are in its sums */
    uint64_t groups;
};

/* What was at work before this process, where anything was. */
struct dp_remembered {
    const struct dp_position *position;
    uint64_t found_examples; /* in all that was done */
    struct dp_worker_figures *figures;
    struct dp_tested *tested, *valid; /* [epochs] of worker 0, or NULL */
    struct dp_stop *stop;
};

/* DP_IO, DP_ARGUMENT: training.steps is no place for a file. On a full disk the training goes on without. */
DP_MUST_USE
enum dp_status dp_remember_open(struct dp_remember *remember, struct dp_job *job, struct dp_error *err);
void dp_remember_close(struct dp_remember *remember); /* accepts {0} */
/* Before the first push. text: what the pushes stand for (agreed.h). begun: some are there: DP_EXISTS naming what was
 * otherwise when they were made. */
DP_MUST_USE
enum dp_status dp_remember_begin(struct dp_remember *remember, const struct dp_job *job,
                                 const struct dp_step_log_plan *plan, const char *text, bool begun,
                                 struct dp_error *err);
/* Into what has nothing yet: notes, and what the step log knows better. */
void dp_remember_get(struct dp_remember *remember, struct dp_job *job, const struct dp_remembered *out);

/* Adds to the figures of its epoch; before it is sent. */
void dp_remember_push(struct dp_remember *remember, const struct dp_step *step,
                      struct dp_worker_figures *figures);
/* All pushes of it were answered. */
void dp_remember_epoch(struct dp_remember *remember, uint32_t epoch, struct dp_worker_figures *figures);
/* The training ends within an epoch. */
void dp_remember_end(struct dp_remember *remember, const struct dp_worker_figures *figures);
/* Worker 0: the figures of a set (DP_STEP_TEST, DP_STEP_VALIDATION) after epoch `epoch`, counted from 1; then what follows from
 * them for the training, or NULL. */
void dp_remember_judged(struct dp_remember *remember, enum dp_step_note kind, uint32_t epoch,
                        const struct dp_tested *tested, const struct dp_stop *stop);

void dp_remember_put(struct dp_remember *remember, struct dp_job *job,
                     const struct dp_worker_figures *figures, bool rests);
/* Worker 0: the figures of the set, whatever time it takes; put again where the first server loses them. */
void dp_remember_tested(struct dp_job *job, const struct dp_tested *tested, uint32_t epochs);

/* JSON text, malloc'd, or NULL; and back, false: it is none of these. */
char *dp_remember_tested_pack(const struct dp_tested *tested, uint32_t epochs);
bool dp_remember_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested);

#endif
