#include "server/cache/damage.h"

#include "common/base/log.h"

#include <inttypes.h>

#define TELL_NS UINT64_C(1000000000) /* a damaged block may be asked for all the time */

enum dp_status dp_damage_row_ahead(const char *table, uint64_t mixed, uint64_t row_lsn, uint64_t last,
                                   struct dp_error *err)
{
    DP_ASSERT(row_lsn > last);
    return dp_fail(
        err, DP_CORRUPT,
        "table '%s': the row of mixed key %016" PRIx64 " has push %" PRIu64
        " in it, but the last that is known is %" PRIu64
        ": the end of the journal is lost; restore copies of all servers' stores from one time, or a "
        "checkpoint (downpour restore --overwrite)",
        table, mixed, row_lsn, last);
}

void dp_damage_found(struct dp_shard_base *base, const struct dp_error *err)
{
    uint64_t now = dp_shard_now(base);
    DP_COUNT(&base->counters, store_damage, 1);
    if (base->damage_ns > 0 && now - base->damage_ns < TELL_NS)
        return;
    base->damage_ns = now;
    dp_log(DP_LOG_ERROR,
           "shard %" PRIu32
           ": its store is damaged: %s; requests that touch it are refused, others are served. Stop the "
           "server, look for more damage with downpour inspect --verify, and restore copies of all servers' "
           "stores from one time, or a checkpoint (downpour restore --overwrite)",
           base->index, err->text);
}
