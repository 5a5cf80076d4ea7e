/* Step log: a file beside the store (training.steps) with the losses of a worker's pushes and the metrics of
 * its epochs, so that a restarted worker reports them too. Each worker has one for each run.
 *     open (reads what is there) -> plan -> (add)* -> epoch -> note -> (add)* -> ... -> close
 * Format    Records: checksum u64, kind u32, payload bytes u32, payload; little endian. The first record is
 *           the head (magic, version, cluster, run, worker). It seeds the checksum of every record, so that
 *           records of another run are not valid here.
 *           Behind the first push of an epoch stands a sum of no pushes, which says when the epoch began.
 * Promise   A record is written completely before add returns, so `kill -9` of this process loses none.
 *           Nothing is synced: a power failure may take the last ones. Reading ends at the first record that
 *           is damaged or truncated, and opening cuts the file there. A finished epoch needs one record: the
 *           records of its steps are removed when there are enough of them and a later epoch has ended, and those
 *           of a long epoch are summed up on the way.
 * Failure   Writing never stops a training: the first failure is logged, and unwritten records are missing
 *           after a restart. open: DP_IO, DP_NOMEM. A file of another run, cluster or worker is replaced.
 * Thread    One. */
#ifndef DP_LOOP_STEP_LOG_H
#define DP_LOOP_STEP_LOG_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_step_log;

struct dp_step_log_id {
    uint64_t cluster;
    uint32_t run, worker;
};

/* How much work this worker has, for commands that show how far it is. */
struct dp_step_log_plan {
    uint32_t epochs;
    uint64_t groups; /* pushes of this worker in an epoch */
};

/* One push. */
struct dp_step {
    uint32_t epoch, examples;
    uint64_t group;
    double loss_sum; /* over its examples */
    double seconds;  /* of training in this epoch so far */
};

/* Pushes 0 .. groups-1 of an epoch, added in this order. */
struct dp_step_sum {
    uint64_t groups, examples;
    double loss_sum, seconds;
    double begun; /* seconds since 1970 */
};

/* Other records, as the caller's bytes. Kind 1 was early stopping's state, which is in the register now: it
 * is skipped. */
enum dp_step_note {
    DP_STEP_TOTALS = 0,     /* stats of the whole training; the last note counts */
    DP_STEP_TEST = 2,       /* metrics of the test set after each epoch */
    DP_STEP_VALIDATION = 3, /* metrics of the validation set after each epoch */
};

/* Opens for appending. */
DP_MUST_USE
enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err);
/* Opens for reading, whichever worker wrote it. DP_NOT_FOUND: there is none; DP_DATA: it has no head. */
DP_MUST_USE
enum dp_status dp_step_log_read(const char *path, struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err);
void dp_step_log_close(struct dp_step_log **log); /* accepts NULL inside */

/* Call before the first push. text: the settings that the pushes are made by (agreed.h). */
void dp_step_log_set_plan(struct dp_step_log *log, const struct dp_step_log_plan *plan, const char *text);
/* NULL when none was set. Lent. */
const char *dp_step_log_text(const struct dp_step_log *log);
struct dp_step_log_plan dp_step_log_plan_of(const struct dp_step_log *log);

/* What the servers have of this worker's pushes. */
struct dp_step_log_cut {
    uint32_t epoch;       /* the first that is not over, counted from 0 */
    uint64_t made, first; /* of it: how many pushes they have, and the first that they lack */
    bool (*done)(const void *of, uint32_t epoch, uint64_t group);
    const void *of;
};
/* Call once after open. Where the servers were restored to before what is logged, the rest is forgotten, as it is trained again. The
 * losses of single pushes are known back to the begin of the epoch that had ended last. */
DP_MUST_USE
enum dp_status dp_step_log_cut(struct dp_step_log *log, const struct dp_step_log_cut *cut,
                               struct dp_error *err);

/* Call before the push is sent. sum: of the pushes before it in this epoch. */
void dp_step_log_add(struct dp_step_log *log, const struct dp_step *step, const struct dp_step_sum *sum);
/* Call when every push of the epoch is answered. */
void dp_step_log_epoch(struct dp_step_log *log, uint32_t epoch, const struct dp_step_sum *sum);
void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                      size_t size);

/* Reads what was there at open: the sum record of an epoch, or {0}. A finished epoch's has all its pushes. */
struct dp_step_sum dp_step_log_sum(const struct dp_step_log *log, uint32_t epoch);
/* The sums of the finished epochs below `epochs`, into sums[epochs]; others are left unchanged. */
void dp_step_log_sums(const struct dp_step_log *log, struct dp_step_sum *sums, uint32_t epochs);
/* The pushes of the epoch that are not in its sum and that the servers have according to `done`, ascending by
 * group, each once. The caller frees *steps. */
DP_MUST_USE
enum dp_status dp_step_log_steps(const struct dp_step_log *log, uint32_t epoch,
                                 bool (*done)(const void *of, uint32_t epoch, uint64_t group), const void *of,
                                 struct dp_step **steps, size_t *count, struct dp_error *err);
void dp_step_log_visit(const struct dp_step_log *log,
                       void (*visit)(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                                     size_t size),
                       void *context);
/* How far the records go: the last epoch that has any (counted from 0), and how many of its pushes. Some of
 * these pushes may have reached no server. */
void dp_step_log_last(const struct dp_step_log *log, uint32_t *epoch, uint64_t *groups);

/* Writes PREFIX-N.log. prefix: training.steps. DP_ARGUMENT: too long. */
DP_MUST_USE
enum dp_status dp_step_log_path(const char *prefix, uint32_t worker, char *out, size_t size,
                                struct dp_error *err);

#endif
