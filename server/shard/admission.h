/* Admission: decides which streams a push may name, and gives client streams out.
 *     known to the push ids -> yes; else: can it have been given out by now? -> yes; within a minute -> AGAIN; no -> INVALID
 * Holds     next_stream <= reserved: streams are given only below a bound that is in the store.
 * Thread    The shard's. */
#ifndef DP_SHARD_ADMISSION_H
#define DP_SHARD_ADMISSION_H

#include "server/cache/shard_base.h"
#include "server/ids/push_ids.h"

struct dp_admission {
    const struct dp_shard_base *base;
    const struct dp_push_ids *ids;
    const struct dp_clock *wall;
    uint64_t next_stream, reserved; /* of the shard with mixed key 0 */
};

/* reserved: the store's mark; or this opening's clock where that is later: a store that lost its last marks gives no stream
 * twice. */
void dp_admission_start(struct dp_admission *admission, uint64_t reserved);
/* All below are reserved, durably. */
void dp_admission_reserve(struct dp_admission *admission, uint64_t bound);
void dp_admission_give(struct dp_admission *admission, uint64_t stream);

/* DP_OK: pushes may name this stream. DP_AGAIN: soon. DP_INVALID: no client was given it. */
enum dp_status dp_admission_check(const struct dp_admission *admission, uint64_t stream,
                                  struct dp_error *err);
/* Fails with DP_TOO_OLD; the answer's field says from where on streams are taken. */
enum dp_status dp_admission_too_old(const struct dp_admission *admission, uint64_t stream,
                                    struct dp_error *err);
/* Since 1970, by this server's clock; 0: it has none. */
uint64_t dp_admission_clock_ms(const struct dp_admission *admission);
/* Whether a client gets a stream above `floor`, which it says that a shard refuses. DP_AGAIN: soon. DP_INVALID: none refuses
 * that. */
enum dp_status dp_admission_check_above(const struct dp_admission *admission, uint64_t floor,
                                        struct dp_error *err);

#endif
