/* Ledger: a table in which every push of a training adds 1 to a row of its own on every shard, under the push's own
 * id: at the end each row is exactly 1, or a push was lost or counted twice. For tests (downpour-worker --ledger).
 * Exact     SGD adds rate * (1 / rate): 1 in f32 (and in bf16) where the rate is a power of two; another is refused.
 * Memory    Its part of a push lives until the next.
 * Thread    The client's. */
#ifndef DP_WORKER_LEDGER_H
#define DP_WORKER_LEDGER_H

#include "common/model/range.h"
#include "worker/job.h"

#define DP_LEDGER_TABLE "ledger"

/* The row of a push on one shard, as a mixed key: within the shard's interval, another for each epoch (below 2^16)
 * and number (below 2^32). */
static inline uint64_t dp_ledger_row(uint32_t shard, uint32_t shards, uint32_t epoch, uint64_t number)
{
    return dp_range_of_shard(shard, shards).first + ((uint64_t)epoch << 32 | number);
}

struct dp_ledger;

/* Makes the table where it is absent. */
DP_MUST_USE
enum dp_status dp_ledger_open(struct dp_job *job, struct dp_ledger **out, struct dp_error *err);
void dp_ledger_close(struct dp_ledger **ledger); /* accepts NULL inside */
/* What a push adds; DP_ARGUMENT: the rate is no power of two. */
DP_MUST_USE
enum dp_status dp_ledger_part(struct dp_ledger *ledger, uint32_t epoch, uint64_t number, float rate,
                              struct dp_push_part *out, struct dp_error *err);

#endif
