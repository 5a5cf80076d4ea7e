/* Damage that the store found, in a row that somebody asked for or while it counted, and rows that show that the journal has
 * lost its end: what touches them is refused by who asked; the operator sees it in the log and in the status (store_damage),
 * for nobody may ever ask for a damaged row. */
#include "server/shard/shard_inner.h"

#include "common/base/log.h"

#include <inttypes.h>

#define TELL_NS UINT64_C(1000000000) /* a damaged block may be asked for all the time */

enum dp_status dp_shard_row_ahead(const struct dp_shard_table *table, uint64_t mixed, uint64_t row_lsn,
                                  uint64_t last, struct dp_error *err)
{
    return dp_fail(err, DP_CORRUPT,
                   "table '%s': the row of mixed key %016" PRIx64 " has push %" PRIu64
                   " in it, but the last that is known is %" PRIu64
                   ": the end of the journal is lost; bring back a copy of the store",
                   table->spec.name, mixed, row_lsn, last);
}

void dp_shard_damaged(struct dp_shard *shard, const struct dp_error *err)
{
    uint64_t now = dp_clock_ns(&shard->options.clock);
    DP_COUNT(&shard->counters, store_damage, 1);
    if (shard->damage_told && now - shard->damage_ns < TELL_NS)
        return;
    shard->damage_told = true;
    shard->damage_ns = now;
    dp_log(DP_LOG_ERROR,
           "shard %" PRIu32 ": its store is damaged: %s; what touches that is refused, all else goes on: "
           "stop the server, see what else is with downpour inspect --verify, and bring back a copy of the "
           "store",
           shard->options.index, err->text);
}
