#include "worker/eval_note.h"

#include "common/base/bytes.h"
#include "common/wire/limits.h"

#include <inttypes.h>

/* Of what the first server holds (64 MiB) most: other notes are small. Parts of the test set are put while those of the last
 * epoch's validation are still there: each of the two has half. */
#define BYTES_MAX (UINT64_C(28) << 20)

const char *dp_eval_note_name(enum dp_eval_kind kind)
{
    return kind == DP_EVAL_TEST ? "test" : "check";
}

enum dp_status dp_eval_note_fits(uint32_t workers, uint64_t part_bytes_max, uint64_t all_bytes,
                                 struct dp_error *err)
{
    uint64_t epoch_bytes = all_bytes + (uint64_t)workers * DP_EVAL_EPOCH_BYTES;
    if (part_bytes_max + DP_EVAL_EPOCH_BYTES > DP_NOTE_BYTES_MAX)
        return dp_fail(
            err, DP_FULL,
            "a worker's part of an evaluation would have %" PRIu64
            " bytes, a note holds %u: use a smaller set to evaluate, or more workers than %" PRIu32,
            part_bytes_max, DP_NOTE_BYTES_MAX - DP_EVAL_EPOCH_BYTES, workers);
    if (epoch_bytes > BYTES_MAX)
        return dp_fail(err, DP_FULL,
                       "the parts of an evaluation would have %" PRIu64
                       " bytes, the first server holds %" PRIu64 " for them: use a smaller set to evaluate",
                       epoch_bytes, BYTES_MAX);
    return DP_OK;
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
