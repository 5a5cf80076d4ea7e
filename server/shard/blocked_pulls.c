#include "server/shard/blocked_pulls.h"

#include "server/modes/step_rules.h"

#include <inttypes.h>
#include <stdio.h>

#define TELL_NS UINT64_C(250000000)
#define LOOK_NS UINT64_C(5000000) /* between two looks at all of them for their time */

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* When it is to hear something if its verdict stays. */
static uint64_t due_of(const struct dp_waiting *pull)
{
    return sooner(pull->told_ns + TELL_NS, pull->deadline_ns + 1);
}

static bool is_held(const struct dp_steps *steps, const struct dp_waiting *pull)
{
    const struct dp_membership *member = &pull->request.member;
    return dp_steps_check(steps, member, NULL) == DP_OK &&
           dp_step_rules_pull(steps, member, NULL) == DP_STEP_HELD;
}

static void tell(const struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now)
{
    struct dp_error err = {0};
    struct dp_reply reply = {.kind = DP_REPLY_NONE, .status = DP_HELD, .sequence = pull->request.sequence};
    struct dp_asker to = dp_asker_of(pull);
    reply.silent_ms = dp_steps_say_held(held->steps, &pull->request.member, now, &err);
    reply.wait = err.wait;
    (void)snprintf(reply.reason, sizeof reply.reason, "%s", err.text);
    dp_replies_send(held->replies, &to, &reply, NULL, 0);
    pull->told_ns = now;
}

/* ---- in */

bool dp_blocked_pulls_renew(struct dp_blocked_pulls *held, const struct dp_session *session,
                            struct dp_waiting **resend)
{
    const struct dp_request *request = &(*resend)->request;
    struct dp_waiting *pull = session->held > 0 && request->kind == DP_REQUEST_PULL ? held->first : NULL;
    while (pull && (pull->request.session != request->session || pull->request.sequence != request->sequence))
        pull = pull->next;
    if (!pull)
        return false;
    uint64_t now = dp_shard_now(held->base);
    pull->peer = (*resend)->peer;
    pull->request.id = request->id;
    pull->deadline_ns = (*resend)->deadline_ns;
    if (is_held(held->steps, pull)) {
        dp_steps_heard(held->steps, &pull->request.member, now);
        tell(held, pull, now);
    }
    held->due_ns = sooner(held->due_ns, due_of(pull));
    dp_waiting_free(resend);
    return true;
}

static bool has_room(const struct dp_blocked_pulls *held, const struct dp_session *session,
                     const struct dp_waiting *pull, struct dp_error *err)
{
    if (held->count < DP_HELD_MAX && session->held < DP_SESSION_WINDOW &&
        (held->count == 0 || held->bytes + pull->bytes <= DP_HELD_BYTES_MAX))
        return true;
    (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                       "shard %" PRIu32 " holds %" PRIu32 " pulls, %" PRIu32
                       " of this session, until other members have come as far",
                       held->base->index, held->count, session->held);
    return false;
}

void dp_blocked_pulls_add(struct dp_blocked_pulls *held, struct dp_session *session,
                          struct dp_waiting **waiting)
{
    struct dp_waiting *pull = *waiting;
    struct dp_error err = {0};
    DP_ASSERT(!pull->next && pull->request.member.given && session->id == pull->request.session);
    /* A new one is not looked for: many may be blocked. */
    if (pull->request.sequence <= session->done && dp_blocked_pulls_renew(held, session, waiting))
        return;
    *waiting = NULL;
    if (!has_room(held, session, pull, &err)) {
        struct dp_asker to = dp_asker_of(pull);
        dp_replies_refuse(held->replies, &to, &err);
        dp_waiting_free(&pull);
        return;
    }
    uint64_t now = dp_shard_now(held->base);
    pull->held_since_ns = now;
    pull->checked = false; /* tried again from the top: its rows are looked for then */
    pull->lookup = (struct dp_lookup){0};
    *(held->last ? &held->last->next : &held->first) = pull;
    held->last = pull;
    held->count++;
    held->bytes += pull->bytes;
    session->held++;
    tell(held, pull, now);
    held->due_ns = held->count == 1 ? due_of(pull) : sooner(held->due_ns, due_of(pull));
    DP_COUNT(&held->base->counters, pulls_held, 1);
    DP_COUNT_SET(&held->base->counters, pulls_held_now, held->count);
}

/* ---- out */

/* It is unlinked already, and is the caller's. */
static struct dp_session *leave(struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now)
{
    struct dp_session *session = dp_sessions_find(held->sessions, pull->request.session);
    uint64_t ns = now - pull->held_since_ns;
    DP_ASSERT(session && session->held > 0 && held->count > 0 && held->bytes >= pull->bytes);
    pull->next = NULL;
    pull->held_ns += ns;
    session->held--;
    held->count--;
    held->bytes -= pull->bytes;
    DP_COUNT(&held->base->counters, pulls_held_ms, ns / 1000000u);
    DP_COUNT_SET(&held->base->counters, pulls_held_now, held->count);
    return session;
}

static void release(struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now)
{
    struct dp_session *session = leave(held, pull, now);
    dp_schedule_add(held->schedule, pull);
    dp_session_append(session, pull);
    dp_schedule_run(held->schedule, session);
}

static void refuse(struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now,
                   const struct dp_error *err)
{
    struct dp_asker to = dp_asker_of(pull);
    (void)leave(held, pull, now);
    dp_replies_refuse(held->replies, &to, err);
    dp_waiting_free(&pull);
}

static void refuse_late(struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now)
{
    struct dp_error err = {0};
    (void)dp_steps_say_held(held->steps, &pull->request.member, now, &err);
    (void)dp_wrap(&err, DP_TIMEOUT, "the request's deadline passed on shard %" PRIu32, held->base->index);
    refuse(held, pull, now, &err);
}

enum fate { FATE_STAYS, FATE_GOES, FATE_LATE };

static enum fate look(struct dp_blocked_pulls *held, struct dp_waiting *pull, uint64_t now)
{
    if (!is_held(held->steps, pull)) {
        bool goes = held->schedule->requests < held->released_max;
        held->more |= !goes;
        return goes ? FATE_GOES : FATE_STAYS;
    }
    if (now > pull->deadline_ns)
        return FATE_LATE;
    if (now - pull->told_ns >= TELL_NS)
        tell(held, pull, now);
    held->due_ns = sooner(held->due_ns, due_of(pull));
    return FATE_STAYS;
}

void dp_blocked_pulls_turn(struct dp_blocked_pulls *held, const struct dp_error *stopping)
{
    uint64_t changes = held->steps->changes;
    if (!held->first) {
        held->changes = changes;
        held->more = false;
        return;
    }
    uint64_t now = dp_shard_now(held->base);
    if (!stopping && changes == held->changes && !held->more && now < held->due_ns)
        return;
    held->changes = changes;
    held->more = false;
    held->due_ns = UINT64_MAX;
    held->last = NULL;
    for (struct dp_waiting **link = &held->first, *pull; (pull = *link);) {
        enum fate fate = stopping ? FATE_GOES : look(held, pull, now);
        if (fate == FATE_STAYS) {
            held->last = pull;
            link = &pull->next;
            continue;
        }
        *link = pull->next;
        if (stopping)
            refuse(held, pull, now, stopping);
        else if (fate == FATE_LATE)
            refuse_late(held, pull, now);
        else
            release(held, pull, now);
    }
    held->due_ns = held->due_ns < now + LOOK_NS ? now + LOOK_NS : held->due_ns;
    DP_ASSERT((held->count == 0) == !held->first && !held->first == !held->last);
    DP_ASSERT(held->count > 0 || held->bytes == 0);
}

uint32_t dp_blocked_pulls_rest_ms(const struct dp_blocked_pulls *held)
{
    if (!held->first)
        return UINT32_MAX;
    uint64_t now = dp_shard_now(held->base);
    uint64_t ms = held->due_ns > now ? (held->due_ns - now) / 1000000u : 0;
    return ms < UINT32_MAX ? (uint32_t)ms + 1 : UINT32_MAX;
}

void dp_blocked_pulls_clear(struct dp_blocked_pulls *held)
{
    for (struct dp_waiting *pull; (pull = held->first);) {
        held->first = pull->next;
        dp_waiting_free(&pull);
    }
    held->last = NULL;
    held->count = 0;
    held->bytes = 0;
}
