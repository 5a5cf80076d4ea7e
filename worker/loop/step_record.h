/* Step record: the bytes of one record of a worker's step log (step_log.h has the format).
  * Promise   is_sound reads no byte past `left`, whatever the bytes are; get_* expect a sound record.
 * Thread    Any: plain functions. */
#ifndef DP_LOOP_STEP_RECORD_H
#define DP_LOOP_STEP_RECORD_H

#include "common/base/bytes.h"
#include "worker/loop/step_log.h"

/* Bytes of the record head and of each payload (of a plan without its text, of a note without the caller's
 * bytes). */
#define DP_STEP_RECORD_HEAD 16u
#define DP_STEP_RECORD_ID   24u
#define DP_STEP_RECORD_STEP 32u
#define DP_STEP_RECORD_SUM  48u
#define DP_STEP_RECORD_PLAN 16u
#define DP_STEP_RECORD_NOTE 8u
#define DP_STEP_RECORD_MAX  (1u << 20) /* of a payload */

enum dp_step_kind {
    DP_STEP_KIND_HEAD = 1,
    DP_STEP_KIND_PLAN,
    DP_STEP_KIND_STEP,
    DP_STEP_KIND_SUM,
    DP_STEP_KIND_NOTE
};

static inline enum dp_step_kind dp_step_record_kind(const unsigned char *record)
{
    return (enum dp_step_kind)dp_load_u32le(record + 8);
}
static inline size_t dp_step_record_payload(const unsigned char *record)
{
    return dp_load_u32le(record + 12);
}

/* The seed of the checksums of all records after the head. */
uint64_t dp_step_record_seed(const struct dp_step_log_id *id);
/* Whether a complete, undamaged record is there. The seed of the head is 0. */
bool dp_step_record_is_sound(const unsigned char *record, size_t left, uint64_t seed);
/* Completes a record in place, whose payload is after DP_STEP_RECORD_HEAD bytes. Returns the size of the
 * record, as each put does. */
size_t dp_step_record_seal(unsigned char *record, uint64_t seed, enum dp_step_kind kind, size_t payload);

size_t dp_step_record_put_head(const struct dp_step_log_id *id,
                               unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID]);
/* False when it is not a head. */
bool dp_step_record_get_head(const unsigned char *record, size_t left, struct dp_step_log_id *id);
size_t dp_step_record_put_step(const struct dp_step *step, uint64_t seed,
                               unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_STEP]);
struct dp_step dp_step_record_get_step(const unsigned char *record);
size_t dp_step_record_put_sum(uint32_t epoch, bool whole, const struct dp_step_sum *sum, uint64_t seed,
                              unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM]);
/* False when it is not the sum of that epoch. */
bool dp_step_record_get_sum(const unsigned char *record, uint32_t epoch, struct dp_step_sum *out);

#endif
