/* Peers: what the workers of a run tell each other through notes on the first server, one a worker:
 *     run/<run>/<what>/<worker>        what: "trained", "progress", "check" (eval_note.h), ...; "again": notes were put again
 * Promise   A wait ends: all notes are there, or a worker whose note is missing has given no new sign of
 *           progress (progress.h) for training.timeout_ms (10 times that while it reads its data), has failed or was stopped: it is named. A worker
 *           that is still training may take as long as it needs. That a worker had failed or been stopped before this one began is of an earlier
 *           process of it, which may have been started again too: it has timeout_ms to say so. A first server that was started again has no
 *           notes: those that were kept are put again while this worker waits. */
#ifndef DP_WORKER_PEERS_H
#define DP_WORKER_PEERS_H

#include "worker/progress.h"

struct dp_note {
    void *bytes; /* heap; NULL: not there yet */
    size_t size;
};

DP_MUST_USE
enum dp_status dp_peers_put(struct dp_job *job, const char *what, uint32_t worker, const void *bytes,
                            size_t size, struct dp_error *err);
/* One worker's note into {0}; no bytes: it is not there. */
DP_MUST_USE
enum dp_status dp_peers_one(struct dp_job *job, const char *what, uint32_t worker, struct dp_note *out,
                            struct dp_error *err);
/* Fetches those of notes[workers] that are missing; *missing: how many still are. */
DP_MUST_USE
enum dp_status dp_peers_look(struct dp_job *job, const char *what, struct dp_note *notes, uint32_t *missing,
                             struct dp_error *err);
/* Until none is missing; tells progress meanwhile. For others than worker 0 it is over too when one whose note is missing is
 * done: nobody needs this worker any more. */
DP_MUST_USE
enum dp_status dp_peers_wait(struct dp_job *job, struct dp_progress *progress, const char *what,
                             struct dp_note *notes, struct dp_error *err);
/* What is waited for, of workers 0 .. count - 1. */
struct dp_wish {
    const char *what;
    uint32_t count;
    bool (*ready)(void *context, const struct dp_note *note);    /* of a note that is there; NULL: it is */
    void (*sign)(void *context, const struct dp_note *progress); /* of one whose note is missing; or NULL */
    bool (*enough)(void *context); /* the wait is over though notes are missing; or NULL */
    void *context;
};
/* Until all notes are ready, or it is enough; notes: [count]. */
DP_MUST_USE
enum dp_status dp_peers_wait_for(struct dp_job *job, struct dp_progress *progress, const struct dp_wish *wish,
                                 struct dp_note *notes, struct dp_error *err);
/* Puts a note and keeps a copy, which takes the place of an earlier one of that name: when the first server has lost it,
 * waits here put it again. */
DP_MUST_USE
enum dp_status dp_peers_keep(struct dp_job *job, const char *what, const void *bytes, size_t size,
                             struct dp_error *err);
/* So kept, it is put again too where an older one lies in its place: one that an earlier process of this worker, which had stood still,
 * put late. older: whether `there` says less than `kept`. */
DP_MUST_USE
enum dp_status dp_peers_keep_newest(struct dp_job *job, const char *what, const void *bytes, size_t size,
                                    bool (*older)(const struct dp_note *there, const struct dp_note *kept),
                                    struct dp_error *err);
void dp_peers_forget(struct dp_job *job); /* the copies, and what begin found */
/* Before anything is waited for: finds which workers have failed or been stopped in an earlier process. */
DP_MUST_USE
enum dp_status dp_peers_begin(struct dp_job *job, struct dp_error *err);
/* Until worker 0 has written the report, has failed, was stopped, or gives no sign for training.timeout_ms: it may need
 * this worker's notes, which go with the first server. DP_OK in each of these cases, as this worker's own part is done. */
DP_MUST_USE
enum dp_status dp_peers_wait_first(struct dp_job *job, struct dp_progress *progress, struct dp_error *err);
/* What a worker's progress note says it is at ("training", "done"); "none" without one. */
void dp_peers_state(const struct dp_note *progress, char *out, size_t size);
bool dp_peers_is_done(const struct dp_note *progress);
bool dp_peers_ended_early(const struct dp_note *progress); /* it has failed or was stopped */
uint64_t dp_peers_process(const struct dp_note *progress); /* 0: there is no note */
uint32_t dp_peers_epoch(const struct dp_note *progress);   /* that it has begun, or 1; 0: there is no note */
void dp_peers_clear(struct dp_note *notes, uint32_t workers);

#endif
