#include "server/shard/snapshot_askers.h"

#include <inttypes.h>

#define PATIENCE_NS UINT64_C(250000000)

void dp_snapshot_askers_answer(const struct dp_snapshot_askers *askers, const struct dp_asker *to,
                               struct dp_store_snapshot named)
{
    const struct dp_snapshots *s = askers->snapshots;
    struct dp_reply reply = {.kind = DP_REPLY_SNAPSHOT,
                             .held = dp_snapshots_holds(s, named),
                             .run = s->reverted.run,
                             .epoch = s->reverted.epoch};
    dp_replies_send(askers->replies, to, &reply, NULL, 0);
}

void dp_snapshot_askers_add(struct dp_snapshot_askers *askers, const struct dp_waiting *waiting)
{
    uint32_t at = 0;
    while (at < askers->count && askers->asker[at].asker.session != waiting->request.session)
        at++;
    if (at == DP_SNAPSHOT_ASKERS_MAX)
        at = 0;
    askers->count += at == askers->count;
    askers->asker[at] = (struct dp_snapshot_asker){dp_asker_of(waiting), dp_shard_now(askers->replies->base)};
    askers->asker[at].asker.sequence = 0;
    DP_ASSERT(askers->count <= DP_SNAPSHOT_ASKERS_MAX);
}

void dp_snapshot_askers_end(struct dp_snapshot_askers *askers, const struct dp_error *err)
{
    for (uint32_t i = 0; i < askers->count; i++) {
        if (err->status == DP_OK)
            dp_snapshot_askers_answer(askers, &askers->asker[i].asker, askers->snapshots->taken);
        else
            dp_replies_refuse(askers->replies, &askers->asker[i].asker, err);
    }
    askers->count = 0;
}

void dp_snapshot_askers_turn(struct dp_snapshot_askers *askers)
{
    if (askers->snapshots->stage == DP_SNAPSHOT_NONE)
        return;
    const struct dp_wait wait = dp_snapshots_progress(askers->snapshots);
    struct dp_error err = {0};
    uint64_t now = dp_shard_now(askers->replies->base);
    (void)dp_fail_wait(&err, DP_AGAIN, wait,
                       "shard %" PRIu32 " takes a snapshot: %" PRIu64 " rows are to be written back before",
                       askers->replies->base->index, wait.total - wait.done);
    for (uint32_t i = 0; i < askers->count;) {
        if (now - askers->asker[i].since_ns <= PATIENCE_NS) {
            i++;
            continue;
        }
        dp_replies_refuse(askers->replies, &askers->asker[i].asker, &err);
        askers->asker[i] = askers->asker[--askers->count];
    }
}
