#include "worker/eval_note.h"

#include "common/base/bytes.h"
#include "common/wire/limits.h"

#include <inttypes.h>
#include <stdio.h>

/* Of what the first server holds (65,536 notes, 64 MiB) half of the notes, and most of the bytes: other notes are small. Parts of the
 * last epoch are put while those of earlier epochs, or of the last validation, are still there: each of the two has half. */
#define SLOTS_MAX 64u
#define NOTES_MAX 32768u
#define BYTES_MAX (UINT64_C(28) << 20)

static uint64_t at_most(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

enum dp_status dp_eval_ring_plan(uint32_t epochs, uint32_t workers, uint64_t part_bytes_max,
                                 uint64_t all_bytes, struct dp_eval_ring *out, struct dp_error *err)
{
    uint64_t epoch_bytes = all_bytes + (uint64_t)workers * DP_EVAL_EPOCH_BYTES;
    *out = (struct dp_eval_ring){.epochs = epochs, .slots = 1};
    if (part_bytes_max + DP_EVAL_EPOCH_BYTES > DP_NOTE_BYTES_MAX)
        return dp_fail(err, DP_FULL,
                       "a worker's part of an evaluation would have %" PRIu64
                       " bytes, a note holds %u: use a smaller test set, or more workers than %" PRIu32,
                       part_bytes_max, DP_NOTE_BYTES_MAX - DP_EVAL_EPOCH_BYTES, workers);
    if (epoch_bytes > BYTES_MAX)
        return dp_fail(err, DP_FULL,
                       "the parts of an evaluation would have %" PRIu64
                       " bytes, the first server holds %" PRIu64 " for them: use a smaller test set",
                       epoch_bytes, BYTES_MAX);
    uint64_t slots = at_most(SLOTS_MAX, at_most(NOTES_MAX / workers, BYTES_MAX / epoch_bytes));
    out->slots = slots > 1 ? (uint32_t)slots : 1;
    return DP_OK;
}

void dp_eval_note_name(struct dp_eval_ring ring, uint32_t epoch, char *name)
{
    if (ring.rest)
        (void)snprintf(name, DP_EVAL_NAME_BYTES, "check");
    else if (epoch == ring.epochs)
        (void)snprintf(name, DP_EVAL_NAME_BYTES, "eval/last");
    else
        (void)snprintf(name, DP_EVAL_NAME_BYTES, "eval/%" PRIu32, epoch % ring.slots);
}

enum dp_status dp_eval_note_read(const void *bytes, size_t size, uint32_t epoch, enum dp_eval_note *out,
                                 struct dp_error *err)
{
    *out = DP_EVAL_GONE;
    if (size < DP_EVAL_EPOCH_BYTES)
        return dp_fail(err, DP_DATA, "these %zu bytes are no part of an evaluation", size);
    uint32_t of = dp_load_u32le(bytes);
    if (of < epoch)
        *out = DP_EVAL_NOT_YET;
    else if (of == epoch && size > DP_EVAL_EPOCH_BYTES)
        *out = DP_EVAL_PART;
    return DP_OK;
}
