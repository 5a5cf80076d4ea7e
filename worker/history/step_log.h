/* Step log: a text file of JSON lines next to the store (training.steps). A restarted worker takes the
 * losses and metrics of its earlier processes from it, and commands see how far the worker is. Each worker has
 * one for each run.
 *     open (reads) -> begin (writes what counts again) -> (sum | end | note)* -> close
 * Format    The first line says whose log it is: {"step_log": 2, "cluster": "1f..", "run": 3, "worker": 1,
 *           "epochs": 10, "groups": 90, "settings": ".."}. Each other line has a place, "at": [epochs that are
 *           over, pushes of the next one], and one of
 *             "sum": {"pushes", "examples", "loss", "begun", "seconds"} over the pushes of this epoch below
 *                 the place; at [e, 0] over all pushes of the epoch before it
 *             "test", "validation": metrics (tested.h)
 *             "totals": stats of the complete training (worker_stats.h)
 * Promise   A line is written completely before its call returns, so `kill -9` of this process loses none.
 *           Nothing is synced: a power failure may take the last ones. Reading ends at the first line that is
 *           truncated or is none of these. begin keeps the lines whose place the servers have reached, so that
 *           nothing counts twice. An epoch that is over needs one sum: its others are removed when there are
 *           enough of them and a later epoch has ended.
 * Failure   Writing never stops a training: the first failure is logged and ends the log. open: DP_IO,
 *           DP_NOMEM. begin: DP_IO, DP_FULL; the lines that were read stay readable. A file of another run,
 *           cluster, worker or version counts as empty, which is logged.
 * Thread    One. */
#ifndef DP_HISTORY_STEP_LOG_H
#define DP_HISTORY_STEP_LOG_H

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

/* Of a worker's run: so many epochs are over, and so many pushes of the next one are made. */
struct dp_step_place {
    uint32_t epoch;
    uint64_t groups;
};

/* The sum over pushes of one epoch. */
struct dp_step_sum {
    uint32_t epoch;
    uint64_t groups; /* they are below this number of the epoch; 0: they are all of it */
    uint64_t pushes, examples;
    double loss_sum;
    double begun, seconds; /* since 1970; of training */
};

enum dp_step_note { DP_STEP_TOTALS, DP_STEP_TEST, DP_STEP_VALIDATION };

enum dp_status dp_step_log_open(const char *path, const struct dp_step_log_id *id, struct dp_step_log **out,
                                struct dp_error *err);
void dp_step_log_close(struct dp_step_log **log); /* accepts NULL inside */

/* The settings that the pushes were made by; NULL: nothing is known. Lent. */
const char *dp_step_log_settings(const struct dp_step_log *log);

/* What the servers have of this worker's pushes. */
struct dp_step_log_cut {
    struct dp_step_place place; /* the first push that they lack */
    uint64_t made;              /* how many below it in its epoch this worker made */
};
/* Call before the first push, when nothing else is left to be checked. Drops the lines beyond the cut.
 * settings: as training_settings.h. */
enum dp_status dp_step_log_begin(struct dp_step_log *log, const struct dp_step_log_cut *cut,
                                 const struct dp_step_log_plan *plan, const char *settings,
                                 struct dp_error *err);
struct dp_step_log_visitor {
    void (*sum)(void *context, const struct dp_step_sum *sum);
    void (*note)(void *context, enum dp_step_note kind, uint32_t epoch, const char *text);
    void *context;
};
/* What was read and is not beyond the cut: of each epoch one sum, ascending; metrics; the last totals. */
void dp_step_log_visit(const struct dp_step_log *log, const struct dp_step_log_visitor *visitor);

/* Of an epoch under way. */
void dp_step_log_sum(struct dp_step_log *log, const struct dp_step_sum *sum);
/* Of an epoch whose pushes are all answered. */
void dp_step_log_end(struct dp_step_log *log, const struct dp_step_sum *sum);
/* text: JSON. */
void dp_step_log_note(struct dp_step_log *log, enum dp_step_note kind, struct dp_step_place place,
                      const char *text);

/* How far a worker is by its log, for any process. Some of the last pushes may have reached no server.
 * DP_NOT_FOUND: there is no log; DP_DATA: it is not of this worker, run and version. */
enum dp_status dp_step_log_place(const char *path, const struct dp_step_log_id *id,
                                 struct dp_step_log_plan *plan, struct dp_step_place *place,
                                 struct dp_error *err);

#endif
