/* Progress: a worker's progress, put as the note run/<run>/progress/<worker>. on the first server at most
 * twice a second:
 *     {"state":"training","first_epoch":0,"epoch":2,"epochs":10,"examples":..,"examples_total":..,"loss":..,
 *      "loss_examples":..,"examples_per_s":..,"staleness_mean":..,"dropped":..,"beat":17,"process":..}
 * epoch and epochs count those of this run, first_epoch those of earlier runs on the same store. examples
 * are this worker's, dropped those of them that no server used (sync:B). loss is the mean over loss_examples
 * of the epoch so far, as the report has it at the end. diverged: the epoch, counted as `epoch`, in which
 * the worker ended since a loss, gradient or output was not finite; else left out. awaited: the worker or
 * server that it waits for, in words, once that takes 2 s; else left out, as are awaited_reason ("STEP") and
 * awaited_worker, whom it waits for by that rule. step: its pushes. spent_s: {"read":1.5,...}, seconds of its
 * steps by phase (step_timer.h); both of this process. left: true where the note is the worker's last and it
 * needs no server any more, with code, the worker's exit code; else left out.
 * The rate is the mean since the previous note. How old a note is, the first server says.
 * `beat` counts the notes, so a waiting worker sees that this one is alive. `process` differs from that of
 * every earlier process of the worker.
 * Promise   A failed note never stops the training: it is logged, and the next one is tried later.
 * Thread    The client's. */
#ifndef DP_TELEMETRY_PROGRESS_H
#define DP_TELEMETRY_PROGRESS_H

#include "worker/context/job.h"
#include "worker/telemetry/worker_stats.h"

struct dp_progress {
    struct dp_job *job;
    const char *state;
    uint32_t epoch, epochs; /* counted from 1 */
    uint64_t examples, examples_total;
    uint64_t dropped; /* of `examples` */
    double staleness_mean;
    double loss_sum; /* in the epoch so far, over: */
    uint64_t loss_examples;
    uint64_t fresh; /* examples since the last note */
    uint64_t reported_ns, next_ns, beat;
    uint64_t look_ns;                    /* for another worker's failure: the next time */
    int code;                            /* with left: the worker's exit code */
    bool left;                           /* this note is the last: the worker needs no server any more */
    uint32_t diverged;                   /* 0: it has not */
    const struct dp_worker_stats *stats; /* NULL: it trains nothing yet */
    struct dp_wait awaited_for;          /* with `awaited` */
    char awaited[256];                   /* what it has waited for 2 s and more; "": nothing */
    uint64_t awaited_ns;                 /* when a line in the log last said so */
};

void dp_progress_init(struct dp_progress *progress, struct dp_job *job, uint64_t examples_total);
/* Changes the state (a literal) and puts a note at once. */
void dp_progress_enter(struct dp_progress *progress, const char *state);
/* The same for what ends each epoch, and may last a moment only: put when the next note is due. Put at once,
 * it would be all that is seen of short epochs. */
void dp_progress_pass(struct dp_progress *progress, const char *state);
/* The worker now trains `epoch`, counted from 1, in which an earlier process computed this loss over so many
 * examples. */
void dp_progress_epoch(struct dp_progress *progress, uint32_t epoch, double loss_sum, uint64_t examples);
void dp_progress_add(struct dp_progress *progress, double loss, uint32_t examples);
/* Puts the last note, "done". */
void dp_progress_leave(struct dp_progress *progress);
/* Puts a note if one is due. */
void dp_progress_tick(struct dp_progress *progress);

/* The worker ends without having finished: puts the state "stopped" or "failed" for workers that may wait
 * for it, unless `why` says that the servers cannot be reached or that another process took its place, and
 * closes the client, so that the buffers of an unanswered pull may be freed. Without a progress (NULL) it
 * only closes. */
void dp_progress_end(struct dp_progress *progress, struct dp_job *job, enum dp_status why);

/* Before it: dp_run_failure_settle, unless another process has put this worker's note since, or the client is
 * closed. */
enum dp_status dp_progress_settle(struct dp_job *job, enum dp_status why, struct dp_error *err);
/* The epoch, counted from 1, in which the training diverged, if this worker ends for that (`why`) or
 * another one says in its note that it did; 0: none does. One try, a second at most. */
uint32_t dp_progress_diverged(struct dp_progress *progress, enum dp_status why);

/* The content of any worker's note. */
struct dp_progress_seen {
    char state[16];         /* "training", ...; "none": there is no note */
    uint64_t process;       /* 0: there is no note */
    bool done, ended_early; /* ended_early: failed or was stopped */
    bool left;
};
void dp_progress_read(const struct dp_shared_note *note, struct dp_progress_seen *out);

/* The struct as JSON text, malloc'd, or NULL for lack of memory. */
char *dp_progress_text(const struct dp_progress *progress, double seconds);

#endif
