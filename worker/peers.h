/* Peers: what the workers of a run tell each other through notes on the first server, one a worker:
 *     run/<run>/<what>/<worker>        what: "trained", "progress", "eval/..." (eval_note.h)
 * Promise   A wait ends: all notes are there, or a worker whose note is missing has given no new sign of
 *           progress (progress.h) for training.timeout_ms, has failed or was stopped: it is named. A worker
 *           that is still training may take as long as it needs.                                         */
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
/* Until none is missing; tells progress meanwhile. */
DP_MUST_USE
enum dp_status dp_peers_wait(struct dp_job *job, struct dp_progress *progress, const char *what,
                             struct dp_note *notes, struct dp_error *err);
void dp_peers_clear(struct dp_note *notes, uint32_t workers);

#endif
