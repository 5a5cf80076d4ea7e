/* Evaluation notes: how the parts of evaluations lie on the first server.
 *     run/<run>/eval/<epoch modulo slots>/<worker>     each epoch but the last
 *     run/<run>/eval/last/<worker>                     the last, which nothing may overwrite
 *     run/<run>/check/<worker>                         where all workers rest at the end of an epoch: each epoch; a worker
 *                                                      takes its own away before it evaluates the next
 * Bytes     The epoch (u32, little endian), then the packed part; nothing behind the epoch: the part was
 *           merged and taken away.
 * Promise   The number of notes does not grow with the epochs. A worker that is `slots` epochs ahead takes the
 *           place of a part that worker 0 has not seen: that epoch has no figures.
 * Thread    Any: plain functions.                                                                         */
#ifndef DP_WORKER_EVAL_NOTE_H
#define DP_WORKER_EVAL_NOTE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_EVAL_EPOCH_BYTES 4u
#define DP_EVAL_NAME_BYTES  32

struct dp_eval_ring {
    uint32_t epochs; /* counted from 1 */
    uint32_t slots;  /* 1 at least */
    bool
        rest; /* of the ends of epochs at which all workers rest (verdict.h): nobody is ahead, nothing is lost */
};

/* part_bytes_max: of the largest part, all_bytes: of all workers' parts of one epoch. DP_FULL when notes
 * cannot hold them. */
DP_MUST_USE
enum dp_status dp_eval_ring_plan(uint32_t epochs, uint32_t workers, uint64_t part_bytes_max,
                                 uint64_t all_bytes, struct dp_eval_ring *out, struct dp_error *err);
/* "eval/3". name: DP_EVAL_NAME_BYTES. */
void dp_eval_note_name(struct dp_eval_ring ring, uint32_t epoch, char *name);

enum dp_eval_note {
    DP_EVAL_NOT_YET, /* of an earlier epoch: this one's is still to come */
    DP_EVAL_PART,
    DP_EVAL_GONE, /* merged and taken away, or overwritten by a later epoch's */
};
/* What a note that was fetched is for this epoch; DP_DATA: no note of an evaluation. */
DP_MUST_USE
enum dp_status dp_eval_note_read(const void *bytes, size_t size, uint32_t epoch, enum dp_eval_note *out,
                                 struct dp_error *err);

#endif
