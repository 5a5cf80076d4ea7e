/* Steps mark: the steps of a shard's run as its store keeps them (durable_marks.h). Little endian:
 *     format u32 (2) | 0 u32 | open u64 | the view (common/wire/view.h) | members times: next u64 | start u64 | former u64
 * Format 1, of before members could return, is refused with the way out.
 * It may have more than the marks' lsn: replay then finds its records known. Whether this shard accepted a return is in
 * `start` for that: replayed from a later state, the same view could find the step passed.
 * Thread    The shard's. */
#ifndef DP_STEPS_STEPS_MARK_H
#define DP_STEPS_STEPS_MARK_H

#include "server/steps/steps.h"

/* 0: no view was taken yet. */
size_t dp_steps_mark_bytes(const struct dp_steps *steps);
void dp_steps_mark_pack(const struct dp_steps *steps, void *to);
/* DP_CORRUPT: the bytes are not that. DP_UNSUPPORTED: of format 1. */
enum dp_status dp_steps_mark_unpack(const void *bytes, size_t size, struct dp_steps *steps, uint64_t now_ns,
                                    struct dp_error *err);

#endif
