/* Snapshot askers: who waits for the end of the order that is under way (server/durable/snapshots.h).
 * Bound     16 wait, one a session, 250 ms at most: then AGAIN, with how far it is. Whoever asks again waits with his last
 *           request.
 * Thread    The shard's. */
#ifndef DP_SHARD_SNAPSHOT_ASKERS_H
#define DP_SHARD_SNAPSHOT_ASKERS_H

#include "server/durable/snapshots.h"
#include "server/shard/replies.h"

#define DP_SNAPSHOT_ASKERS_MAX 16u

struct dp_snapshot_askers {
    const struct dp_replies *replies;
    struct dp_snapshots *snapshots;
    struct dp_snapshot_asker {
        struct dp_asker asker;
        uint64_t since_ns;
    } asker[DP_SNAPSHOT_ASKERS_MAX];
    uint32_t count;
};

void dp_snapshot_askers_add(struct dp_snapshot_askers *askers, const struct dp_waiting *waiting);
/* Whether the store has `named`, and what it was reverted to. */
void dp_snapshot_askers_answer(const struct dp_snapshot_askers *askers, const struct dp_asker *to,
                               struct dp_store_snapshot named);
/* The order ended: all are answered, or refused with why. */
void dp_snapshot_askers_end(struct dp_snapshot_askers *askers, const struct dp_error *err);
/* Those who waited long enough hear how far it is. */
void dp_snapshot_askers_turn(struct dp_snapshot_askers *askers);

#endif
