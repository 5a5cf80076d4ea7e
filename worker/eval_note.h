/* Evaluation notes: how the parts of evaluations lie on the first server.
 *     run/<run>/check/<worker>    of the set that is looked at when an epoch ends
 *     run/<run>/test/<worker>     of the test set, where another set is looked at
 * Bytes     The epoch (u32, little endian), then the packed part; nothing behind the epoch: the part was taken away.
 * Promise   The number of notes does not grow with the epochs: a worker's part takes the place of that of the epoch before, and
 *           as all rest while parts are merged, nobody still wants that one.
 * Thread    Any: plain functions.                                                                         */
#ifndef DP_WORKER_EVAL_NOTE_H
#define DP_WORKER_EVAL_NOTE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_EVAL_EPOCH_BYTES 4u

enum dp_eval_kind { DP_EVAL_EPOCH, DP_EVAL_TEST };

/* "check", "test" */
const char *dp_eval_note_name(enum dp_eval_kind kind);
/* part_bytes_max: of the largest part, all_bytes: of all workers' parts of one epoch. DP_FULL: notes cannot hold them. */
DP_MUST_USE
enum dp_status dp_eval_note_fits(uint32_t workers, uint64_t part_bytes_max, uint64_t all_bytes,
                                 struct dp_error *err);

enum dp_eval_note {
    DP_EVAL_NOT_YET, /* of an earlier epoch: this one's is still to come */
    DP_EVAL_PART,
    DP_EVAL_GONE, /* taken away, or replaced by a later epoch's */
};
/* What a note that was fetched is for this epoch; DP_DATA: no note of an evaluation. */
DP_MUST_USE
enum dp_status dp_eval_note_read(const void *bytes, size_t size, uint32_t epoch, enum dp_eval_note *out,
                                 struct dp_error *err);

#endif
