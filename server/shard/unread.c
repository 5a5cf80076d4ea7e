#include "server/shard/unread.h"

#include <inttypes.h>

static bool may_answer(const struct dp_unread *unread, const struct dp_waiting *pull)
{
    return pull->answer_bytes == 0 || !unread->may_reply ||
           unread->may_reply(unread->context, &pull->peer, pull->answer_bytes);
}

static bool is_crowded(const struct dp_unread *unread)
{
    return unread->schedule->requests > unread->requests_many || unread->schedule->bytes > unread->bytes_many;
}

enum dp_unread_verdict dp_unread_check(const struct dp_unread *unread, const struct dp_waiting *pull,
                                       struct dp_error *err)
{
    if (may_answer(unread, pull))
        return DP_UNREAD_GO;
    if (!is_crowded(unread))
        return DP_UNREAD_WAIT;
    (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_UNREAD, .total = pull->answer_bytes},
                       "shard %" PRIu32 ": earlier answers have not been read, and %" PRIu32
                       " requests wait already",
                       unread->base->index, unread->schedule->requests);
    return DP_UNREAD_REFUSED;
}

void dp_unread_turn(const struct dp_unread *unread, bool all)
{
    bool wakes = all || is_crowded(unread);
    for (struct dp_session *session = dp_schedule_first(unread->schedule, DP_WAIT_UNREAD); session;
         session = session->next_waiting)
        if (session->parked && (wakes || may_answer(unread, session->first)))
            dp_schedule_wake(unread->schedule, session);
}

bool dp_unread_will_wake(const struct dp_unread *unread)
{
    return unread->may_reply != NULL;
}
