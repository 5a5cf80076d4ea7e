/* Peers: how far each worker of a run has come and its parts for the others, by notes on the first server:
 *     run/<run>/stage/<worker / 100>/<worker>.  four u32, little endian: for each kind the last epoch reached
 *     run/<run>/<kind>/<worker>                 its part ("part", "test", "trained"): epoch (u32),
 *                                               bytes
 *     open -> reach(kind, epoch, bytes)* , look, fetch, check, wait -> close
 * Promise   When the first server has lost notes of this worker, look and wait put them again: those handed
 *           over first, the stage last. A worker that finds a stage without its note resets the stage
 *           (fetch), so that its owner puts both again. A wait ends when all have reached the epoch, or
 *           when a missing worker has failed, was stopped, or has made no progress (progress.h) for
 *           training.timeout_ms (10 times that while it reads its data). That worker is named. A worker
 *           that is still training may take as long as it needs. A failure that was there before this
 *           process began belongs to an earlier process of that worker, which may have been restarted too:
 *           it has timeout_ms to show so. No wait includes a worker that was removed for its silence
 *           (dp_job_is_gone). It hands nothing over, so the reader makes up for its part. Once all others
 *           have reached the stage, the first server is asked whether it came back. If so, the wait
 *           includes it. With leased work (training.work "leased") others do a missing worker's part: one
 *           that failed, was stopped or gives no sign for so long is absent (dp_job_is_gone) until it shows
 *           that it has reached what is waited for. Worker 0 writes the report: it is waited for.
 * Thread    The client's. */
#ifndef DP_COORDINATE_PEERS_H
#define DP_COORDINATE_PEERS_H

#include "worker/telemetry/progress.h"

enum dp_peers_kind {
    DP_PEERS_ENDED,   /* all pushes of an epoch are answered; nothing is handed over */
    DP_PEERS_PART,    /* a part of the evaluation after an epoch */
    DP_PEERS_TEST,    /* a part of the evaluation at the end, of a test set other than the judged set */
    DP_PEERS_TRAINED, /* the last epoch is over: stats for the report */
    DP_PEERS_KINDS,
};

struct dp_peers_stage {
    uint32_t reached[DP_PEERS_KINDS];
};

struct dp_peers {
    struct dp_job *job;
    struct dp_progress *progress;
    struct dp_peers_stage own, *seen;           /* seen: [workers], by the last look; heap */
    struct dp_shared_note kept[DP_PEERS_KINDS]; /* what this worker handed over last */
    struct dp_peers_sign *sign;                 /* [workers], heap */
    bool *absent; /* [workers], heap: it gave no sign, and is not waited for; NULL: work is not leased */
    struct dp_absence absence; /* of the job, with `absent` */
    uint32_t pause_ms;
};

/* Call before any wait: notes which workers failed or were stopped in an earlier process. */
enum dp_status dp_peers_open(struct dp_peers *peers, struct dp_job *job, struct dp_progress *progress,
                             struct dp_error *err);
void dp_peers_close(struct dp_peers *peers); /* accepts {0} */

/* Announces that this worker has reached `epoch`, which is not below the last one, and hands over `bytes`
 * (copied). */
enum dp_status dp_peers_reach(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                              const void *bytes, size_t size, struct dp_error *err);
/* Removes the notes of this kind of all workers; the first server would keep them as long as it runs. */
enum dp_status dp_peers_drop(struct dp_peers *peers, enum dp_peers_kind kind, struct dp_error *err);
/* Reads all stages. *all: every worker has reached the epoch. */
enum dp_status dp_peers_look(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch, bool *all,
                             struct dp_error *err);
/* After a look: fails when a worker that has not reached the epoch, or worker `also` (UINT32_MAX: none), may
 * no longer be waited for. */
enum dp_status dp_peers_check(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch, uint32_t also,
                              struct dp_error *err);
/* Fetches what all workers handed over for the epoch into notes[workers] of {0}, without the epoch in front.
 * *all: none is missing. Of one that has left a note may be missing: it stays {0}. */
enum dp_status dp_peers_fetch(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                              struct dp_shared_note *notes, bool *all, struct dp_error *err);
/* Polls until all workers have handed it over, and fetches it. */
enum dp_status dp_peers_collect(struct dp_peers *peers, enum dp_peers_kind kind, uint32_t epoch,
                                struct dp_shared_note *notes, struct dp_error *err);
/* Waits until worker 0, which may need this worker's notes, is done, has failed, was stopped, or gives no
 * sign of life for training.timeout_ms. DP_OK in each of these cases, as this worker's own part is done. */
enum dp_status dp_peers_wait_first(struct dp_peers *peers, struct dp_error *err);
void dp_peers_clear(struct dp_shared_note *notes, uint32_t workers);

#endif
