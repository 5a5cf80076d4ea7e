/* Table drop: removes a table from a shard, with its rows.
 *     asked -> its pulls and pushes are refused -> the store has all pushes up to now -> mark "dropped/" in
 *     place of "table/" -> rows removed -> "dropped/" removed -> out of memory          (this order, always)
 * Promise   Durable when answered. A later table of this name has no row of the old one.
 * Why       Replay refuses a push to a table without a mark. So the mark leaves once the marks' lsn is past
 *           the last push. Rows leave after the mark, so that no table has a part of its rows. A crash before
 *           "dropped/" leaves the table as it was. After a later crash the next opening ends the drop.
 * Refused   IN_USE while the journal is needed from a push of a synchronous step, or for the weights before
 *           it: such records may name the table. AGAIN while a checkpoint is under way here. No cut is taken
 *           during a drop.
 * Repeated  The request gets AGAIN until the drop is done, and OK where there is no such table. The drop goes
 *           on without its client.
 * Thread    The shard's. */
#ifndef DP_SHARD_TABLE_DROP_H
#define DP_SHARD_TABLE_DROP_H

#include "server/shard/sessions.h"
#include "server/shard/shard.h"

#define DP_DROPPED_MARK_PREFIX "dropped/"

struct dp_table_drop {
    struct dp_cached_table *table; /* NULL: none is being dropped */
    enum { DP_DROP_WAITS, DP_DROP_ROWS, DP_DROP_END } stage;
    uint64_t lsn;  /* no later push names it */
    bool at_store; /* a job of it is under way */
    bool stalled;  /* its last job failed: the next request tries again */
};

void dp_shard_drop_table(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err);
void dp_table_drop_turn(struct dp_shard *shard);
/* At the opening, while no job is under way: ends the drops that a crash interrupted. */
enum dp_status dp_table_drop_recover(const struct dp_store *store, struct dp_error *err);

#endif
