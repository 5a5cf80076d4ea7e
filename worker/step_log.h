/* Step log: what one worker needs besides the servers' rows to go on exactly where it was: the losses of its pushes, the
 * figures of its epochs, and the state of early stopping. A file beside the store (training.steps), one a worker and run.
 *     open (reads what is there) -> plan -> (add)* -> epoch -> note -> (add)* -> ... -> close
 * Format    Records: checksum u64, kind u32, payload bytes u32, payload; little endian. The first is the head (magic, version,
 *           cluster, run, worker); the checksum of every record is seeded with it, so that another run's records are none.
 * Promise   A record is written whole before add returns, so `kill -9` of this process loses none; nothing is synced: a loss of
 *           power may take the last ones. Reading ends at the first record that is damaged or cut off, and opening cuts the file
 *           there. A finished epoch needs one record: the records of its steps go when the file has enough of them, and a long
 *           epoch's are summed up on the way.
 * Failure   Writing never stops a training: the first failure is logged, what was not written is missing after a restart.
 *           open: DP_IO, DP_NOMEM. A file of another run, cluster or worker is replaced.
 * Thread    One. */
#ifndef DP_WORKER_STEP_LOG_H
#define DP_WORKER_STEP_LOG_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_step_log;

struct dp_step_log_id {
    uint64_t cluster;
    uint32_t run, worker;
};

/* How much this worker has to do, for those who want to know how far it is. */
struct dp_step_log_plan {
    uint32_t epochs;
    uint64_t groups; /* pushes of this worker in an epoch */
};

/* One push. */
struct dp_step {
    uint32_t epoch, examples;
    uint64_t group;
    double loss_sum; /* over its examples */
    double seconds;  /* of this epoch's training so far */
};

/* Pushes 0 .. groups-1 of an epoch, added in this order. */
struct dp_step_sum {
    uint64_t groups, examples;
    double loss_sum, seconds;
    double begun; /* seconds since 1970 */
};

/* What else is kept, as the caller's bytes: of EACH kinds one for each epoch, of the others the last. */
enum dp_step_note {
    DP_STEP_TOTALS,     /* figures that are not of one epoch */
    DP_STEP_STOP,       /* early stopping's state */
    DP_STEP_TEST,       /* each: figures of the test set */
    DP_STEP_VALIDATION, /* each: of the validation set */
    DP_STEP_NOTES,
};

/* For writing, behind what is there. */
DP_MUST_USE
enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err);
/* For reading only, whosever it is. DP_NOT_FOUND: there is none; DP_DATA: it has no head. */
DP_MUST_USE
enum dp_status dp_step_log_read(const char *path, struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err);
void dp_step_log_close(struct dp_step_log **log); /* accepts NULL inside */

/* What its pushes stand for (agreed.h), before the first of them. */
void dp_step_log_set_plan(struct dp_step_log *log, const struct dp_step_log_plan *plan, const char *text);
/* NULL: none was set. Lent. */
const char *dp_step_log_text(const struct dp_step_log *log);
struct dp_step_log_plan dp_step_log_plan_of(const struct dp_step_log *log);

/* Before the push is sent. sum: that of the pushes before it in this epoch. */
void dp_step_log_add(struct dp_step_log *log, const struct dp_step *step, const struct dp_step_sum *sum);
/* Every push of it was answered. */
void dp_step_log_epoch(struct dp_step_log *log, uint32_t epoch, const struct dp_step_sum *sum);
void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                      size_t size);

/* Of what was there at open. The pushes that are summed up already: {0} where none are; an epoch that is over has all. */
struct dp_step_sum dp_step_log_sum(const struct dp_step_log *log, uint32_t epoch);
/* Those of whole epochs below `epochs`, into sums[epochs]; where there is none nothing changes. */
void dp_step_log_sums(const struct dp_step_log *log, struct dp_step_sum *sums, uint32_t epochs);
/* The others of that epoch that `done` says the servers have, ascending by group, each once; *steps is the caller's to free. */
DP_MUST_USE
enum dp_status dp_step_log_steps(const struct dp_step_log *log, uint32_t epoch,
                                 bool (*done)(const void *of, uint32_t epoch, uint64_t group), const void *of,
                                 struct dp_step **steps, size_t *count, struct dp_error *err);
void dp_step_log_visit(const struct dp_step_log *log,
                       void (*visit)(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                                     size_t size),
                       void *context);
/* How far its records go: the last epoch that has any (counted from 0), and how many pushes of it. *group may count pushes
 * that no server has. */
void dp_step_log_last(const struct dp_step_log *log, uint32_t *epoch, uint64_t *groups);

/* PATH-N.log; DP_ARGUMENT: too long. prefix: training.steps. */
DP_MUST_USE
enum dp_status dp_step_log_path(const char *prefix, uint32_t worker, char *out, size_t size,
                                struct dp_error *err);

#endif
