#include "common/client/welcome.h"

#include "common/model/range.h"

#include <inttypes.h>
#include <stdio.h>

/* The stores of all shards belong together, and a shard's stays the same. One that no
 * register knows, of an earlier version and opened to be read, belongs to any. */
static enum dp_status check_store(struct dp_link *link, const struct dp_reply *reply, struct dp_error *err)
{
    struct dp_client_session *session = link->session;
    if (link->store != 0 && reply->store != link->store)
        return dp_fail(err, DP_GENERATION,
                       "its store is another one now (%08" PRIx32 ", it was %08" PRIx32
                       "): pushes to the earlier store are missing. Put that store back and restart the "
                       "server; or, if it was "
                       "replaced on purpose, restart this program",
                       (uint32_t)(reply->store >> 32), (uint32_t)(link->store >> 32));
    if (session->register_id != 0 && reply->register_id != 0 && reply->register_id != session->register_id)
        return dp_fail(err, DP_GENERATION,
                       "its store is known to register %08" PRIx32 ", that of shard %" PRIu32 " to %08" PRIx32
                       ": the stores do not belong together. Was the store of the first server lost or "
                       "swapped, or its disk "
                       "not mounted? Put it back and restart that server; or, if it was replaced on purpose, "
                       "restart this "
                       "program",
                       (uint32_t)(reply->register_id >> 32), session->register_from,
                       (uint32_t)(session->register_id >> 32));
    link->store = reply->store;
    if (session->register_id == 0) {
        session->register_id = reply->register_id;
        session->register_from = link->server;
    }
    return DP_OK;
}

enum dp_status dp_link_learn_generation(struct dp_link *link, const struct dp_reply *reply,
                                        struct dp_error *err)
{
    struct dp_client_session *session = link->session;
    if (session->wants != 0 && reply->generation != session->wants)
        return dp_fail(err, DP_GENERATION,
                       "is at generation %" PRIu64 ", this client is for generation %" PRIu64
                       ": the cluster was restored",
                       reply->generation, session->wants);
    if (session->generation == 0) {
        session->generation = reply->generation;
        session->history = reply->history;
        session->generation_from = link->server;
    }
    if (dp_client_session_has_generation(session, reply->generation, reply->history))
        return DP_OK;
    if (link->boot != 0) /* it has welcomed this client before */
        return dp_fail(err, DP_GENERATION,
                       "is at generation %" PRIu64 " (history %016" PRIx64 "), and was at %" PRIu64
                       ": the cluster was restored since this client opened; open it again",
                       reply->generation, reply->history, session->generation);
    char other[32];
    bool control = session->generation_from == session->shards;
    (void)snprintf(other, sizeof other, control ? "control" : "shard %" PRIu32, session->generation_from);
    return dp_fail(
        err, DP_GENERATION,
        "is at generation %" PRIu64 " (history %016" PRIx64 "), %s at %" PRIu64 " (history %016" PRIx64
        "): a restore did not reach all servers. Restore the same checkpoint on each server, or put "
        "back stores of one time",
        reply->generation, reply->history, other, session->generation, session->history);
}

enum dp_status dp_link_check_welcome(struct dp_link *link, const struct dp_reply *reply, struct dp_error *err)
{
    struct dp_client_session *session = link->session;
    if (reply->status == DP_GENERATION && reply->cluster == session->cluster && reply->generation != 0) {
        enum dp_status st = dp_link_learn_generation(link, reply, err);
        if (st != DP_OK)
            return st;
    }
    if (reply->status != DP_OK) {
        /* Another shard than the first refuses to give a stream before it can tell us which one it is. */
        bool misplaced = reply->status == DP_INVALID && link->hello_wants && session->stream == 0;
        return dp_fail(err, reply->status, "%s%s",
                       reply->reason[0] ? reply->reason : dp_status_text((int)reply->status),
                       misplaced ? ": is the list of shards in another order?" : "");
    }
    if (reply->kind != DP_REPLY_WELCOME)
        return dp_fail(err, DP_INVALID, "answers hello with a reply of kind %d: is it a Downpour shard?",
                       (int)reply->kind);
    struct dp_range range = dp_range_of_shard(link->server, session->shards);
    if (reply->first != range.first || reply->last != range.last)
        return dp_fail(err, DP_ARGUMENT,
                       "owns mixed keys %016" PRIx64 "-%016" PRIx64 ", shard %" PRIu32 " of %" PRIu32
                       " owns %016" PRIx64 "-%016" PRIx64
                       ": the list of shards is in another order or not complete",
                       reply->first, reply->last, link->server, session->shards, range.first, range.last);
    enum dp_status st = reply->generation != 0 ? dp_link_learn_generation(link, reply, err) : DP_OK;
    if (st == DP_OK)
        st = check_store(link, reply, err);
    if (st != DP_OK)
        return st;
    session->last_run = reply->run > session->last_run ? reply->run : session->last_run;
    if (link->hello_wants) {
        if (reply->stream == 0)
            return dp_fail(err, DP_INVALID, "gave no stream of push numbers, though asked for one");
        session->stream = reply->stream;
        session->stream_used = false;
    }
    if (!session->stream_used)
        dp_client_session_refuse_streams(session, reply->too_old);
    return DP_OK;
}
