/* Train ledger: a table in which each push of a training adds 1 to a row of its own at 16 places of the key space, under the
 * push's id. At the end each row is exactly 1, or a push was lost or counted twice. The places are the same for any number of
 * shards, at most 16 of which have one each, so that a restore onto others can be told. ledger_worker (ledger_worker.c), which is
 * downpour-worker with that extra part in its pushes, writes it; train_ledger_read.h reads it. */
#ifndef DP_TESTS_SYSTEM_TRAIN_LEDGER_H
#define DP_TESTS_SYSTEM_TRAIN_LEDGER_H

#include "common/client/downpour.h"
#include "common/model/range.h"

static inline struct dp_table_spec dp_train_ledger_spec(void)
{
    return (struct dp_table_spec){.name = "ledger", .dim = 1, .optimizer = {.kind = DP_OPT_SGD}};
}

#define DP_TRAIN_LEDGER_PLACES 16u

/* The row of a push at one place, as a mixed key: another for each epoch (below 2^16) and number (below 2^32). */
static inline uint64_t dp_train_ledger_row(uint32_t place, uint32_t epoch, uint64_t number)
{
    return dp_range_of_shard(place, DP_TRAIN_LEDGER_PLACES).first + ((uint64_t)epoch << 32 | number);
}

#endif
