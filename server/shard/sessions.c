#include "server/shard/sessions.h"

#include <stdlib.h>
#include <string.h>

struct dp_sessions {
    uint32_t count;
    struct dp_session *session[DP_SESSIONS_MAX]; /* ascending by id */
};

enum dp_status dp_sessions_new(struct dp_sessions **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : DP_NOMEM;
}

void dp_waiting_free(struct dp_waiting **waiting)
{
    if (!*waiting)
        return;
    dp_message_free(&(*waiting)->message);
    free(*waiting);
    *waiting = NULL;
}

static void session_free(struct dp_session *session)
{
    while (session->first) {
        struct dp_waiting *waiting = dp_session_take_first(session);
        dp_waiting_free(&waiting);
    }
    free(session);
}

void dp_sessions_free(struct dp_sessions **sessions)
{
    if (!*sessions)
        return;
    for (uint32_t i = 0; i < (*sessions)->count; i++)
        session_free((*sessions)->session[i]);
    free(*sessions);
    *sessions = NULL;
}

static uint32_t place_of(const struct dp_sessions *sessions, uint64_t id)
{
    uint32_t low = 0, high = sessions->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (sessions->session[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct dp_session *dp_sessions_find(const struct dp_sessions *sessions, uint64_t id)
{
    uint32_t at = place_of(sessions, id);
    return at < sessions->count && sessions->session[at]->id == id ? sessions->session[at] : NULL;
}

/* Forgets the session that was silent longest and has nothing waiting or held. */
static bool forget_one(struct dp_sessions *sessions)
{
    uint32_t oldest = sessions->count;
    for (uint32_t i = 0; i < sessions->count; i++) {
        const struct dp_session *session = sessions->session[i];
        if (!session->first && !session->runnable && session->held == 0 &&
            (oldest == sessions->count || session->heard_ns < sessions->session[oldest]->heard_ns))
            oldest = i;
    }
    if (oldest == sessions->count)
        return false;
    DP_ASSERT(!sessions->session[oldest]->parked && sessions->session[oldest]->waits == DP_WAIT_NONE);
    session_free(sessions->session[oldest]);
    sessions->count--;
    memmove(&sessions->session[oldest], &sessions->session[oldest + 1],
            (sessions->count - oldest) * sizeof sessions->session[0]);
    return true;
}

struct dp_session *dp_sessions_add(struct dp_sessions *sessions, uint64_t id)
{
    struct dp_session *session = calloc(1, sizeof *session);
    if (!session)
        return NULL;
    if (sessions->count == DP_SESSIONS_MAX && !forget_one(sessions)) {
        free(session);
        return NULL;
    }
    session->id = id;
    uint32_t at = place_of(sessions, id);
    memmove(&sessions->session[at + 1], &sessions->session[at],
            (sessions->count - at) * sizeof sessions->session[0]);
    sessions->session[at] = session;
    sessions->count++;
    return session;
}

uint32_t dp_sessions_count(const struct dp_sessions *sessions)
{
    return sessions->count;
}

void dp_session_append(struct dp_session *session, struct dp_waiting *waiting)
{
    DP_ASSERT(!waiting->next && (session->waiting == 0) == !session->first);
    waiting->next = NULL;
    if (session->last)
        session->last->next = waiting;
    else
        session->first = waiting;
    session->last = waiting;
    session->waiting++;
}

bool dp_session_renew(struct dp_session *session, struct dp_waiting **resend)
{
    const struct dp_request *request = &(*resend)->request;
    bool may_be = session->waits == DP_WAIT_UNREAD && request->kind == DP_REQUEST_PULL && (*resend)->decoded;
    struct dp_waiting *pull = may_be ? session->first : NULL;
    while (pull && (!pull->decoded || pull->request.kind != DP_REQUEST_PULL ||
                    pull->request.sequence != request->sequence || pull->request.id != request->id))
        pull = pull->next;
    if (!pull)
        return false;
    pull->peer = (*resend)->peer;
    pull->deadline_ns = (*resend)->deadline_ns;
    dp_waiting_free(resend);
    return true;
}

struct dp_waiting *dp_session_take_first(struct dp_session *session)
{
    struct dp_waiting *waiting = session->first;
    DP_ASSERT(waiting && session->waiting > 0);
    session->first = waiting->next;
    if (!session->first)
        session->last = NULL;
    session->waiting--;
    waiting->next = NULL;
    return waiting;
}
