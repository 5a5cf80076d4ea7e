#include "worker/loop/step_record.h"

#include "common/model/mix.h"

#define MAGIC UINT64_C(0x31474f4c50455453) /* "STEPLOG1" */

static uint64_t checksum(uint64_t seed, const unsigned char *bytes, size_t size)
{
    uint64_t sum = dp_mix(seed + 1 + size);
    for (; size >= 8; bytes += 8, size -= 8)
        sum = dp_mix(sum ^ dp_load_u64le(bytes)) + 1;
    uint64_t tail = 0;
    memcpy(&tail, bytes, size);
    return dp_mix(sum ^ tail);
}

uint64_t dp_step_record_seed(const struct dp_step_log_id *id)
{
    return dp_mix(dp_mix(id->cluster + 1) + id->run) + id->worker;
}

bool dp_step_record_is_sound(const unsigned char *record, size_t left, uint64_t seed)
{
    if (left < DP_STEP_RECORD_HEAD || dp_step_record_payload(record) > DP_STEP_RECORD_MAX ||
        left - DP_STEP_RECORD_HEAD < dp_step_record_payload(record))
        return false;
    return dp_load_u64le(record) == checksum(seed, record + 8, 8 + dp_step_record_payload(record));
}

size_t dp_step_record_seal(unsigned char *record, uint64_t seed, enum dp_step_kind kind, size_t payload)
{
    dp_store_u32le(record + 8, kind);
    dp_store_u32le(record + 12, (uint32_t)payload);
    dp_store_u64le(record, checksum(seed, record + 8, 8 + payload));
    return DP_STEP_RECORD_HEAD + payload;
}

size_t dp_step_record_put_head(const struct dp_step_log_id *id,
                               unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID])
{
    unsigned char *to = record + DP_STEP_RECORD_HEAD;
    dp_store_u64le(to, MAGIC);
    dp_store_u64le(to + 8, id->cluster);
    dp_store_u32le(to + 16, id->run);
    dp_store_u32le(to + 20, id->worker);
    return dp_step_record_seal(record, 0, DP_STEP_KIND_HEAD, DP_STEP_RECORD_ID);
}

bool dp_step_record_get_head(const unsigned char *record, size_t left, struct dp_step_log_id *id)
{
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    if (!dp_step_record_is_sound(record, left, 0) || dp_step_record_kind(record) != DP_STEP_KIND_HEAD ||
        dp_step_record_payload(record) != DP_STEP_RECORD_ID || dp_load_u64le(from) != MAGIC)
        return false;
    *id = (struct dp_step_log_id){.cluster = dp_load_u64le(from + 8),
                                  .run = dp_load_u32le(from + 16),
                                  .worker = dp_load_u32le(from + 20)};
    return true;
}

size_t dp_step_record_put_step(const struct dp_step *step, uint64_t seed,
                               unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_STEP])
{
    unsigned char *to = record + DP_STEP_RECORD_HEAD;
    dp_store_u32le(to, step->epoch);
    dp_store_u32le(to + 4, step->examples);
    dp_store_u64le(to + 8, step->group);
    dp_store_f64le(to + 16, step->loss_sum);
    dp_store_f64le(to + 24, step->seconds);
    return dp_step_record_seal(record, seed, DP_STEP_KIND_STEP, DP_STEP_RECORD_STEP);
}

struct dp_step dp_step_record_get_step(const unsigned char *record)
{
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    return (struct dp_step){.epoch = dp_load_u32le(from),
                            .examples = dp_load_u32le(from + 4),
                            .group = dp_load_u64le(from + 8),
                            .loss_sum = dp_load_f64le(from + 16),
                            .seconds = dp_load_f64le(from + 24)};
}

size_t dp_step_record_put_sum(uint32_t epoch, bool whole, const struct dp_step_sum *sum, uint64_t seed,
                              unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_SUM])
{
    unsigned char *to = record + DP_STEP_RECORD_HEAD;
    dp_store_u32le(to, epoch);
    dp_store_u32le(to + 4, whole);
    dp_store_u64le(to + 8, sum->groups);
    dp_store_u64le(to + 16, sum->examples);
    dp_store_f64le(to + 24, sum->loss_sum);
    dp_store_f64le(to + 32, sum->begun);
    dp_store_f64le(to + 40, sum->seconds);
    return dp_step_record_seal(record, seed, DP_STEP_KIND_SUM, DP_STEP_RECORD_SUM);
}

bool dp_step_record_get_sum(const unsigned char *record, uint32_t epoch, struct dp_step_sum *out)
{
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    if (dp_step_record_kind(record) != DP_STEP_KIND_SUM || dp_load_u32le(from) != epoch)
        return false;
    *out = (struct dp_step_sum){.groups = dp_load_u64le(from + 8),
                                .examples = dp_load_u64le(from + 16),
                                .loss_sum = dp_load_f64le(from + 24),
                                .begun = dp_load_f64le(from + 32),
                                .seconds = dp_load_f64le(from + 40)};
    return true;
}
