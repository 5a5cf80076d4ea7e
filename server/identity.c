#include "server/identity.h"

#include <inttypes.h>

enum dp_identity dp_identity_judge(const struct dp_identity_case *it)
{
    const struct dp_store_id *found = &it->found;
    DP_ASSERT(it->shard < it->stores->shards);
    uint64_t id = it->stores->shard[it->shard].id, opening = it->stores->shard[it->shard].opening;
    if (found->register_id != 0 && found->register_id != it->stores->register_id)
        return DP_IDENTITY_REGISTER_OTHER;
    /* A store that was registered once is unknown only to an older copy of the register; one that never was ended before it could be. */
    if (id == 0 && it->is_new && it->is_restored)
        return DP_IDENTITY_LOST;
    if (id == 0)
        return found->before != 0 ? DP_IDENTITY_REGISTER_OLDER : DP_IDENTITY_JOINS;
    if (it->is_new)
        return DP_IDENTITY_LOST;
    if (found->id != id)
        return DP_IDENTITY_OTHER;
    return opening == found->opening || opening == found->before ? DP_IDENTITY_KNOWN : DP_IDENTITY_OLDER;
}

struct dp_store_id dp_identity_next(const struct dp_identity_case *it, enum dp_identity verdict,
                                    uint64_t opening)
{
    struct dp_store_id next = {.id = it->found.id,
                               .register_id = it->stores->register_id,
                               .opening = opening,
                               .before = it->stores->shard[it->shard].opening};
    if (dp_identity_is_refused(verdict) || next.id == 0)
        dp_store_id_draw(&next.id);
    return next;
}

/* What --replace-store would do, after the cause and the other ways out. */
#define OR_RESTORE "or go back to a checkpoint (downpour restore --overwrite); "
#define OR_REPLACE "or, with --replace-store on `downpour run` or the server and with no way back, "

enum dp_status dp_identity_refuse(const struct dp_identity_case *it, enum dp_identity verdict,
                                  const char *directory, struct dp_error *err)
{
    uint32_t known = DP_STORE_ID_SHORT(it->stores->shard[it->shard].id);
    const char *loss = dp_identity_loss(verdict);
    switch (verdict) {
    case DP_IDENTITY_LOST:
        if (known == 0)
            return dp_fail(
                err, DP_GENERATION,
                "shard %" PRIu32 ": there is no store in %.200s, and the cluster was restored from a "
                "checkpoint: the restore did not reach this server. Restore it like the others, with "
                "the same checkpoint, --history and --without; " OR_REPLACE "start this shard empty: %s",
                it->shard, directory, loss);
        return dp_fail(err, DP_GENERATION,
                       "shard %" PRIu32 ": there is no store in %.200s, and the cluster has one for it "
                       "(%08" PRIx32
                       "): was it removed, or its disk not mounted? Put it back, " OR_RESTORE OR_REPLACE
                       "start this shard empty: %s",
                       it->shard, directory, known, loss);
    case DP_IDENTITY_OTHER:
        return dp_fail(err, DP_GENERATION,
                       "shard %" PRIu32 ": %.200s holds another store (%08" PRIx32
                       ") than the one that the cluster has for it (%08" PRIx32
                       "). Put the right one back, " OR_RESTORE OR_REPLACE "continue with this one: %s",
                       it->shard, directory, DP_STORE_ID_SHORT(it->found.id), known, loss);
    case DP_IDENTITY_OLDER:
        return dp_fail(err, DP_GENERATION,
                       "shard %" PRIu32 ": either the store in %.105s is not the copy that was opened last "
                       "(it is older, or another copy is used in its place), or server 0's store, with the "
                       "register, is an older copy. Put back the latest of both, or copies of all servers' "
                       "stores from one time; " OR_REPLACE "continue with these: %s",
                       it->shard, directory, loss);
    case DP_IDENTITY_REGISTER_OLDER:
        return dp_fail(err, DP_GENERATION,
                       "shard %" PRIu32
                       ": server 0's store, with the register, is an older copy: it does not "
                       "know the store in %.160s, which was registered. Put server 0's latest "
                       "store back; " OR_REPLACE "continue with the older one: %s",
                       it->shard, directory, loss);
    case DP_IDENTITY_REGISTER_OTHER:
        return dp_fail(err, DP_GENERATION,
                       "shard %" PRIu32 ": its store %.120s is known to register %08" PRIx32
                       ", and the first server has register %08" PRIx32
                       ": was one of the two lost, swapped, not mounted, or replaced? Put back server 0's "
                       "store and this one as they were last used together; " OR_REPLACE
                       "continue with these: %s",
                       it->shard, directory, DP_STORE_ID_SHORT(it->found.register_id),
                       DP_STORE_ID_SHORT(it->stores->register_id), loss);
    case DP_IDENTITY_KNOWN:
    case DP_IDENTITY_JOINS:
        break;
    }
    DP_ASSERT(dp_identity_is_refused(verdict));
    return DP_OK;
}

const char *dp_identity_loss(enum dp_identity verdict)
{
    switch (verdict) {
    case DP_IDENTITY_LOST:
        return "all its rows are lost";
    case DP_IDENTITY_OTHER:
        return "the rows of that one are lost";
    case DP_IDENTITY_OLDER:
        return "the pushes to a later copy are lost";
    case DP_IDENTITY_REGISTER_OLDER:
        return "the pushes to server 0 since, and its register's knowledge of runs since, are lost";
    case DP_IDENTITY_REGISTER_OTHER:
        return "the other register's knowledge of runs (plans, decisions of early stopping) is lost";
    case DP_IDENTITY_KNOWN:
    case DP_IDENTITY_JOINS:
        break;
    }
    return "nothing is lost";
}
