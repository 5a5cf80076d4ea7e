#include "tests/unit/server/steps/returns_shard.h"

#include "server/modes/step_rules.h"

#include <stdlib.h>
#include <string.h>

uint32_t returns_draw(struct world *w, uint32_t below)
{
    w->random ^= w->random << 13, w->random ^= w->random >> 7, w->random ^= w->random << 17;
    return (uint32_t)(w->random >> 33) % below;
}

size_t returns_view_bytes(const struct world *w)
{
    return DP_VIEW_HEAD + w->members * DP_VIEW_MEMBER;
}

struct dp_view returns_unpacked(const struct world *w, const char *bytes)
{
    struct dp_view view;
    struct dp_error err = {0};
    if (dp_view_unpack(bytes, returns_view_bytes(w), &view, &err) != DP_OK)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
    return view;
}

static enum dp_step_verdict push_rule(const struct dp_steps *steps, const struct dp_membership *member,
                                      struct dp_error *err)
{
    const struct dp_step_rules *rules = dp_step_rules_of(steps);
    return rules->push ? rules->push(steps, member, err) : DP_STEP_GO;
}

static struct record *append(struct shard *s, struct record record)
{
    if (s->records == s->room) {
        s->room = s->room * 2 + 64;
        s->record = realloc(s->record, s->room * sizeof *s->record);
        assert_non_null(s->record);
    }
    s->record[s->records] = record;
    return &s->record[s->records++];
}

static void take_push(struct shard *s, uint32_t rank, uint64_t step)
{
    assert_true(step < LAST);
    s->has[rank][step] = true;
    if (step == s->steps->open)
        s->kept[rank] = true;
    dp_steps_pushed(s->steps, rank, step);
}

void returns_flush(struct shard *s)
{
    s->durable = s->records;
}

void returns_mark(struct world *w, struct shard *s)
{
    returns_flush(s);
    s->mark_bytes = dp_steps_mark_bytes(s->steps);
    assert_true(s->mark_bytes <= sizeof s->mark);
    if (s->mark_bytes > 0)
        dp_steps_mark_pack(s->steps, s->mark);
    s->mark_at = s->mark_bytes > 0 ? returns_draw(w, s->records + 1) : 0; /* the mark may be ahead of it */
}

static void replay(struct world *w, struct shard *s, const struct record *record)
{
    struct dp_view view;
    switch (record->kind) {
    case VIEW:
        view = returns_unpacked(w, record->view);
        enum dp_view_news news = dp_steps_look(s->steps, &view, NULL);
        if (news == DP_VIEW_NEWER || news == DP_VIEW_NEW_RUN)
            dp_steps_take(s->steps, &view, NOW);
        dp_view_clear(&view);
        break;
    case PUSH:
        dp_steps_pushed(s->steps, record->rank, record->step);
        break;
    case CLOSE:
    default:
        if (record->step != s->steps->open)
            break;
        assert_true(dp_steps_is_gathered(s->steps));
        dp_steps_closed(s->steps);
    }
}

void returns_crash(struct world *w, struct shard *s)
{
    struct dp_error err = {0};
    dp_steps_clear(s->steps);
    memset(s->steps, 0, sizeof *s->steps);
    memset(s->has, 0, sizeof s->has);
    memset(s->kept, 0, sizeof s->kept);
    s->records = s->durable;
    s->viewed = 0;
    s->told = 0;
    if (s->mark_bytes > 0 && dp_steps_mark_unpack(s->mark, s->mark_bytes, s->steps, NOW, &err) != DP_OK)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
    for (uint32_t i = s->mark_at; i < s->records; i++)
        replay(w, s, &s->record[i]);
    for (uint32_t i = 0; i < s->records; i++) {
        const struct record *record = &s->record[i];
        if (record->kind == VIEW)
            s->viewed = i + 1;
        if (record->kind == PUSH)
            s->has[record->rank][record->step] = true;
        if (record->kind == PUSH && record->step == s->steps->open)
            s->kept[record->rank] = true;
    }
    w->crashes++;
}

/* As close.c: of durable pushes, and a durable view. */
void returns_close_step(struct world *w, struct shard *s)
{
    uint64_t step = s->steps->open;
    uint32_t with = 0, count = 0;
    if (w->mode != DP_SYNC || s->durable < s->records || !dp_steps_is_gathered(s->steps))
        return;
    for (uint32_t r = 0; r < w->members; r++) {
        with |= (uint32_t)s->kept[r] << r;
        count += s->kept[r];
        if (s->kept[r] && !dp_steps_takes_part(s->steps, r, step))
            fail_msg("seed %" PRIu64 ": step %" PRIu64 " has a push of %" PRIu32, w->seed, step, r);
        if (w->slack == 0 && dp_steps_takes_part(s->steps, r, step) && !s->kept[r])
            fail_msg("seed %" PRIu64 ": step %" PRIu64 " is closed without %" PRIu32, w->seed, step, r);
    }
    if (count != s->steps->pushed || step >= LAST)
        fail_msg("seed %" PRIu64 ": step %" PRIu64 " has %" PRIu32 " pushes of %" PRIu32, w->seed, step,
                 count, s->steps->pushed);
    if (w->slack == 0 && w->closed[step] != 0 && w->closed[step] != with)
        fail_msg("seed %" PRIu64 ": step %" PRIu64 " is closed with %x and with %x", w->seed, step,
                 w->closed[step], with);
    w->closed[step] |= with;
    append(s, (struct record){.kind = CLOSE, .step = step});
    dp_steps_closed(s->steps);
    memset(s->kept, 0, sizeof s->kept);
    if (w->slack > 0) /* nothing shows it before it is durable */
        returns_flush(s);
    w->closes++;
}

/* As view_requests.c. */
enum answer returns_put(struct world *w, struct shard *s, struct process *p)
{
    struct dp_view view = returns_unpacked(w, p->view);
    struct dp_error err = {0};
    enum dp_view_news news = dp_steps_look(s->steps, &view, &err);
    if (news == DP_VIEW_REFUSED)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
    if (news != DP_VIEW_KNOWN) {
        struct record record = {.kind = VIEW};
        memcpy(record.view, p->view, returns_view_bytes(w));
        append(s, record);
        s->viewed = s->records;
        dp_steps_take(s->steps, &view, NOW);
    }
    dp_view_clear(&view);
    if (s->durable < s->viewed)
        return LATER;
    if (p->returns && !p->leaving && dp_steps_check_left(s->steps, p->rank, &err) != DP_OK)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
    uint64_t begin = dp_steps_begin(s->steps);
    p->all.acts_on = s->steps->view.number > p->all.acts_on ? s->steps->view.number : p->all.acts_on;
    p->all.begin = begin > p->all.begin ? begin : p->all.begin;
    p->all.begun &= dp_steps_has_begun(s->steps, p->rank);
    return OK;
}

static enum answer admit(struct world *w, struct shard *s, struct process *p, struct dp_membership *who)
{
    struct dp_error err = {0};
    *who = (struct dp_membership){.given = true,
                                  .run = 3,
                                  .rank = p->rank,
                                  .view = p->number,
                                  .incarnation = p->incarnation,
                                  .step = p->step};
    switch (dp_steps_check(s->steps, who, &err)) {
    case DP_OK:
        return OK;
    case DP_REPLACED:
        return GONE;
    case DP_AGAIN:
        (void)returns_put(w, s, p);
        return LATER;
    default:
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
        return GONE;
    }
}

static void check_bound(const struct world *w, const struct shard *s, uint64_t step)
{
    const struct dp_steps *steps = s->steps;
    for (uint32_t r = 0; w->mode == DP_SSP && r < w->members; r++)
        for (uint64_t t = steps->start[r]; t < steps->view.member[r].until && t + w->slack < step; t++)
            if (t >= LAST || !s->has[r][t])
                fail_msg("seed %" PRIu64 ": a pull of step %" PRIu64 " does not see step %" PRIu64
                         " of %" PRIu32,
                         w->seed, step, t, r);
}

enum answer returns_pull(struct world *w, struct shard *s, struct process *p)
{
    struct dp_membership who;
    struct dp_error err = {0};
    enum answer answer = admit(w, s, p, &who);
    if (answer != OK)
        return answer;
    switch (dp_step_rules_pull(s->steps, &who, &err)) {
    case DP_STEP_GO:
        check_bound(w, s, p->step);
        s->told = p->step > s->told ? p->step : s->told;
        return OK;
    case DP_STEP_OLD:
        return OK;
    case DP_STEP_HELD:
        return LATER;
    default:
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
        return GONE;
    }
}

enum answer returns_push(struct world *w, struct shard *s, struct process *p)
{
    struct dp_membership who;
    struct dp_error err = {0};
    enum answer answer = admit(w, s, p, &who);
    if (answer != OK)
        return answer;
    if (!s->has[p->rank][p->step]) {
        enum dp_step_verdict verdict = push_rule(s->steps, &who, &err);
        if (verdict == DP_STEP_REFUSED)
            fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
        if (verdict == DP_STEP_KEEP && p->step > s->steps->open)
            return LATER;
        append(s, (struct record){.kind = PUSH, .rank = p->rank, .step = p->step});
        take_push(s, p->rank, p->step);
    }
    return s->durable == s->records ? OK : LATER;
}
