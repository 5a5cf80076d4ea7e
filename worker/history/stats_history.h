/* Stats history: the stats of a training so far, kept so that a restarted worker reports those of its earlier
 * processes too.
 *     open -> begin -> get -> (push)* -> epoch -> tested -> ... -> close
 * They are kept in the step log (step_log.h), if the cluster file names one: the sum over the pushes of the
 * epoch, and the metrics of evaluated sets. A sum is written before its last push is sent: at each of the
 * first 1,024 pushes, then once a second. A sum counts once the servers have all of its pushes. A killed
 * process loses the stats after its last sum. They are also kept as a note on the first server, for workers
 * without such a file, or on another machine:
 *     run/<run>/figures/<worker>.  each worker's own (worker_stats.h), after an epoch
 * (The metrics of the set that is evaluated after each epoch are in the decisions: decision.h.)
 * Promise   Keeping never stops a training: failures are logged, and the report lacks those stats. At an
 *           epoch barrier each worker puts its stats before its stage says that it has ended the epoch. So
 *           when all stages say so, the stats of all workers are there (of the first 1,024 epochs).
 *           Elsewhere put takes 5% of the time at most: the stats of shorter epochs are put with a later
 *           one.
 * Thread    The client's. */
#ifndef DP_HISTORY_STATS_HISTORY_H
#define DP_HISTORY_STATS_HISTORY_H

#include "worker/context/job.h"
#include "worker/history/position.h"
#include "worker/history/step_log.h"
#include "worker/telemetry/report.h"

/* One push. */
struct dp_step {
    uint32_t epoch, examples;
    uint64_t group;
    double loss_sum; /* over its examples */
    double seconds;  /* of training in this epoch so far */
};

struct dp_stats_history {
    uint64_t next_ns;        /* no note before this time */
    struct dp_step_log *log; /* or NULL */
    uint64_t made;           /* earlier pushes that the log knows, of all epochs */
    /* The epoch under way: */
    uint32_t epoch;
    uint64_t pushes, groups; /* pushes in the stats; all are below `groups` */
    uint32_t lines;          /* sums in the log, and when the next is due */
    double due_s;
};

/* What earlier processes of this worker did. */
struct dp_earlier_stats {
    const struct dp_position *position;
    uint64_t found_examples; /* in all pushes that are done */
    struct dp_worker_stats *stats;
    struct dp_tested *tested, *valid; /* [epochs] of worker 0, or NULL */
};

/* DP_IO or DP_ARGUMENT: the file of training.steps cannot be read. */
enum dp_status dp_stats_history_open(struct dp_stats_history *history, struct dp_job *job,
                                     struct dp_error *err);
void dp_stats_history_close(struct dp_stats_history *history); /* accepts {0} */
/* Call before the first push. text: the settings that the pushes are made by (training_settings.h). DP_EXISTS names a
 * setting that differed when the servers' pushes were made. Log entries for pushes that the servers do not
 * have are dropped. DP_IO: the file cannot be created. On a full disk the training continues without it. */
enum dp_status dp_stats_history_begin(struct dp_stats_history *history, const struct dp_job *job,
                                      const struct dp_position *position, const struct dp_step_log_plan *plan,
                                      const char *text, struct dp_error *err);
/* Fills the empty `out` from the note and, where it has more, from the step log. */
void dp_stats_history_get(struct dp_stats_history *history, struct dp_job *job,
                          const struct dp_earlier_stats *out);

/* Call before the push is sent. Adds it to the stats of its epoch. */
void dp_stats_history_push(struct dp_stats_history *history, const struct dp_step *step,
                           struct dp_worker_stats *stats);
/* Call when all pushes of the epoch are answered. */
void dp_stats_history_epoch(struct dp_stats_history *history, uint32_t epoch, struct dp_worker_stats *stats);
/* Call when the training ends within an epoch. */
void dp_stats_history_end(struct dp_stats_history *history, const struct dp_worker_stats *stats);
/* Worker 0: keeps the metrics of a set (DP_STEP_TEST, DP_STEP_VALIDATION) after epoch `epoch`, counted from
 * 1. */
void dp_stats_history_tested(struct dp_stats_history *history, enum dp_step_note kind, uint32_t epoch,
                             const struct dp_tested *tested);

/* Of any worker, into {0}, by its note: its report at the end of its last epoch, if the first server still has that. */
enum dp_status dp_stats_history_of(struct dp_job *job, uint32_t worker, struct dp_worker_stats *stats,
                                   struct dp_error *err);
/* Puts the note. rests: the workers rest after this epoch. */
void dp_stats_history_put(struct dp_stats_history *history, struct dp_job *job,
                          const struct dp_worker_stats *stats, bool rests);

#endif
