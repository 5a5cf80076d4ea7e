/* Returns, of several shards: members that die, are let leave by others and return, while shards crash and replay.
 * Goal      No step is closed with different members on two shards; what was answered as pushed is in its step; nobody waits for ever; a
 *           pull in ssp sees what its bound says.
 * Method    The rules are those of steps.c, its mark those of steps_mark.c; the register, the journals (a durable part, which a crash
 *           keeps) and the clients (member.c's order of events, one request at a time, and less of a margin) are small models. Moves are drawn from a seed. First
 *           with failures, then without: all have to come to the end then. */
#include "tests/unit/server/steps/returns_shard.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- a process, as member.c */

static void begin(struct world *w, struct process *p, uint32_t rank, bool stands_in)
{
    *p = (struct process){.phase = GET,
                          .stands_in = stands_in,
                          .returns = !stands_in,
                          .rank = rank,
                          .incarnation = ++w->incarnations,
                          .back.margin = returns_draw(w, 3)};
}

static void adopt(struct process *p, const struct dp_view *view, const char *bytes, size_t size)
{
    memcpy(p->view, bytes, size);
    p->number = view->number;
    p->from = view->member[p->rank].from;
    p->missed = view->member[p->rank].missed;
}

static struct dp_view first_view(const struct world *w)
{
    struct dp_view view = {.run = 3,
                           .mode = w->mode,
                           .slack = w->slack,
                           .first_step = FIRST,
                           .members = w->members,
                           .member = calloc(w->members, sizeof *view.member)};
    assert_non_null(view.member);
    for (uint32_t r = 0; r < w->members; r++)
        view.member[r] = (struct dp_member){.until = NEVER, .from = FIRST};
    return view;
}

/* What member.c's take_seat and give_seat do. Returns whether the view changes. */
static bool change(struct world *w, struct process *p, struct dp_member *seat)
{
    bool left = seat->until != NEVER;
    bool same = p->back.known && p->back.from == seat->from && p->back.until == seat->until;
    if (p->leaving) {
        assert_true(!left || seat->until == p->step);
        seat->until = p->step;
        return !left;
    }
    if (p->returns && left && !same)
        return false; /* all shards are to know it first */
    if (same) {
        seat->missed += p->back.to - (left ? seat->until : seat->from);
        seat->from = p->back.to;
        seat->until = NEVER;
        w->returned += left;
        w->moved += !left;
    }
    bool changes = same || seat->incarnation != p->incarnation;
    seat->incarnation = p->incarnation;
    return changes;
}

static void set(struct world *w, struct process *p)
{
    struct dp_view view = w->version > 0 ? returns_unpacked(w, w->registered) : first_view(w);
    struct dp_member *seat = &view.member[p->rank];
    if (p->version != w->version) { /* another won */
        p->phase = GET;
    } else if (p->seated && seat->incarnation != p->incarnation) {
        p->phase = DEAD;
    } else {
        if (change(w, p, seat)) {
            view.number = ++w->version;
            dp_view_pack(&view, w->registered);
        }
        p->seated = seat->incarnation == p->incarnation;
        adopt(p, &view, w->registered, returns_view_bytes(w));
        p->answered = 0;
        p->all.acts_on = p->all.begin = 0;
        p->all.begun = true;
        p->phase = PUT;
    }
    dp_view_clear(&view);
}

/* member.c: is_back. */
static bool is_back(struct world *w, struct process *p)
{
    struct dp_view view = returns_unpacked(w, p->view);
    const struct dp_member seat = view.member[p->rank];
    bool left = seat.until != NEVER;
    dp_view_clear(&view);
    if (p->all.acts_on > p->number)
        return false;
    if (!left && p->all.begun)
        return true;
    uint64_t least = left && seat.until > seat.from ? seat.until : seat.from + 1;
    least = p->all.begin > least ? p->all.begin : least;
    if (!left && p->back.known && p->back.margin < 64)
        p->back.margin += p->back.margin + 1;
    p->back.known = true;
    p->back.from = seat.from;
    p->back.until = seat.until;
    p->back.to = least + p->back.margin;
    return false;
}

static void handed_over(struct world *w, struct process *p)
{
    if (p->leaving) {
        w->let_leave += p->stands_in;
        p->phase = p->stands_in ? DEAD : DONE;
    } else {
        p->phase = !p->returns || is_back(w, p) ? POSITION : GET;
    }
}

/* Where it goes on: the first step that some shard lacks; a stand-in also: the last that some shard has. Answered when durable. */
static void find_position(struct world *w, struct process *p)
{
    p->step = p->from;
    p->end = p->stands_in ? p->from : LAST;
    for (uint64_t step = p->from; step < LAST; step++) {
        uint32_t have = 0;
        for (uint32_t s = 0; s < SHARDS; s++) {
            returns_flush(&w->shard[s]);
            have += w->shard[s].has[p->rank][step];
        }
        if (have == SHARDS && p->step == step)
            p->step = step + 1;
        if (have > 0 && p->stands_in)
            p->end = step + 1;
    }
    p->phase = PULL;
    p->answered = 0;
}

/* view_watch.c: who is held looks at the register. */
static void watch(struct world *w, struct process *p, struct shard *s)
{
    struct dp_view view = returns_unpacked(w, w->registered);
    if (view.member[p->rank].incarnation != p->incarnation)
        p->phase = DEAD;
    else if (view.number > p->number)
        adopt(p, &view, w->registered, returns_view_bytes(w));
    dp_view_clear(&view);
    if (p->phase != DEAD)
        (void)returns_put(w, s, p);
}

static void ask(struct world *w, struct process *p)
{
    uint32_t index = returns_draw(w, SHARDS);
    struct shard *s = &w->shard[index];
    enum answer answer = LATER;
    if (p->answered >> index & 1)
        return;
    if (p->phase == PUT)
        answer = returns_put(w, s, p);
    else
        answer = p->phase == PULL ? returns_pull(w, s, p) : returns_push(w, s, p);
    if (answer == GONE)
        p->phase = DEAD;
    else if (answer == LATER && p->phase == PULL && returns_draw(w, 8) == 0)
        watch(w, p, s);
    p->answered |= (uint32_t)(answer == OK) << index;
    if (p->answered != (1u << SHARDS) - 1)
        return;
    p->answered = 0;
    if (p->phase == PUT) {
        handed_over(w, p);
    } else if (p->phase == PULL) {
        p->phase = SEND;
    } else if (p->phase == SEND) {
        w->acked[p->rank][p->step++] = true;
        p->phase = PULL;
    }
}

static void move(struct world *w, struct process *p)
{
    switch (p->phase) {
    case GET:
        p->version = w->version;
        p->phase = SET;
        return;
    case SET:
        set(w, p);
        return;
    case POSITION:
        find_position(w, p);
        return;
    case PULL:
        if (p->answered == 0 && p->step >= p->end) {
            p->leaving = true;
            p->phase = GET;
            return;
        }
        ask(w, p);
        return;
    case PUT:
    case SEND:
        ask(w, p);
        return;
    case DEAD:
    case DONE:
    default:
        return;
    }
}

/* ---- the world */

static bool is_training(const struct process *p)
{
    return p->phase == POSITION || p->phase == PULL || p->phase == SEND;
}

static bool somebody_trains(const struct world *w)
{
    for (uint32_t r = 0; r < w->members; r++)
        if (is_training(&w->process[r]))
            return true;
    return false;
}

static bool has_left(const struct world *w, uint32_t rank)
{
    struct dp_view view = returns_unpacked(w, w->registered);
    bool left = view.member[rank].until != NEVER;
    dp_view_clear(&view);
    return left;
}

static bool has_joined(const struct world *w, uint32_t rank)
{
    struct dp_view view = returns_unpacked(w, w->registered);
    bool joined = view.member[rank].incarnation != 0;
    dp_view_clear(&view);
    return joined;
}

/* Somebody dead starts again, or another one stands in for it. */
static void replace(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank], *stand_in = &w->process[MEMBERS + returns_draw(w, STAND_INS)];
    bool may_leave = w->version > 0 && somebody_trains(w) && has_joined(w, rank) && !has_left(w, rank);
    if (p->phase == DEAD && (w->noisy ? returns_draw(w, 2) == 0 : w->comes_back || !may_leave)) {
        if (w->noisy || w->comes_back || w->version == 0 || !has_joined(w, rank) || !has_left(w, rank))
            begin(w, p, rank, false);
    } else if (p->phase == DEAD && may_leave && stand_in->phase == DEAD) {
        begin(w, stand_in, rank, true);
    } else if (p->phase == DONE && w->noisy && returns_draw(w, 16) == 0) {
        begin(w, p, rank, false);
    }
}

/* One of the ranks or a stand-in sleeps, and counts as dead; a later one may take its place. */
static void suspend(struct world *w)
{
    struct process *p = &w->process[returns_draw(w, ASLEEP)];
    struct process *asleep = &w->process[ASLEEP + returns_draw(w, SUSPENDED)];
    if (p->phase == DEAD || p->phase == DONE || asleep->phase != DEAD)
        return;
    *asleep = *p;
    asleep->suspended = true;
    p->phase = DEAD;
}

/* It goes on with what it knew. */
static void wake(struct world *w)
{
    struct process *asleep = &w->process[ASLEEP + returns_draw(w, SUSPENDED)];
    struct process *p = &w->process[asleep->rank];
    if (asleep->phase == DEAD || !asleep->suspended)
        return;
    asleep->suspended = false;
    if (asleep->stands_in || p->phase != DEAD)
        return;
    *p = *asleep;
    asleep->phase = DEAD;
}

static void move_one(struct world *w)
{
    uint32_t index = returns_draw(w, PROCESSES);
    struct process *p = &w->process[index];
    enum phase before = p->phase;
    if (p->suspended)
        return;
    move(w, p);
    w->replaced += index >= ASLEEP && before != DEAD && p->phase == DEAD;
    if (index >= ASLEEP && p->phase == DONE)
        p->phase = DEAD;
}

static void fail_somewhere(struct world *w)
{
    uint32_t what = returns_draw(w, 16);
    if (what < 2)
        returns_crash(w, &w->shard[returns_draw(w, SHARDS)]);
    else if (what < 6)
        w->process[returns_draw(w, PROCESSES)].phase = DEAD;
    else if (what < 9)
        suspend(w);
    else
        returns_mark(w, &w->shard[returns_draw(w, SHARDS)]);
}

static void turn(struct world *w)
{
    uint32_t what = returns_draw(w, 64);
    struct shard *s = &w->shard[returns_draw(w, SHARDS)];
    if (what == 0 && w->noisy)
        fail_somewhere(w);
    else if (what < 3)
        replace(w, returns_draw(w, w->members));
    else if (what == 3 && (!w->noisy || returns_draw(w, 16) == 0))
        wake(w);
    else if (what < 12)
        returns_flush(s);
    else if (what < 20)
        returns_close_step(w, s);
    else
        move_one(w);
    for (uint32_t i = 0; w->mode == DP_SSP && i < SHARDS; i++)
        if (w->shard[i].told > w->slack && w->shard[i].steps->least < w->shard[i].told - w->slack)
            fail_msg("seed %" PRIu64 ": shard %" PRIu32 " has answered step %" PRIu64
                     ", and a member has finished %" PRIu64,
                     w->seed, i, w->shard[i].told, w->shard[i].steps->least);
}

static bool is_over(const struct world *w)
{
    for (uint32_t r = 0; r < w->members; r++) {
        enum phase phase = w->process[r].phase;
        if (phase != DONE && (phase != DEAD || w->comes_back || w->version == 0 || !has_left(w, r)))
            return false;
    }
    for (uint32_t i = MEMBERS; i < PROCESSES; i++)
        if (w->process[i].phase != DEAD)
            return false;
    return true;
}

static void tell(const struct world *w)
{
    for (uint32_t i = 0; i < PROCESSES; i++)
        if (w->process[i].phase != DEAD)
            print_error("process %" PRIu32 " for %" PRIu32 ": phase %d, step %" PRIu64 " of %" PRIu64
                        ", from %" PRIu64 ", answered %x\n",
                        i, w->process[i].rank, (int)w->process[i].phase, w->process[i].step,
                        w->process[i].end, w->process[i].from, w->process[i].answered);
    for (uint32_t i = 0; i < SHARDS; i++) {
        const struct dp_steps *steps = w->shard[i].steps;
        print_error("shard %" PRIu32 ": view %" PRIu64 ", open %" PRIu64 ", wanted %" PRIu32
                    ", pushed %" PRIu32 "\n",
                    i, steps->view.number, steps->open, steps->wanted, steps->pushed);
        for (uint32_t r = 0; r < steps->view.members; r++)
            print_error("  %" PRIu32 ": next %" PRIu64 ", start %" PRIu64 ", former %" PRIu64
                        ", until %" PRIu64 "\n",
                        r, steps->next[r], steps->start[r], steps->former[r], steps->view.member[r].until);
    }
}

static void check_end(const struct world *w)
{
    for (uint32_t r = 0; w->mode == DP_SYNC && w->slack == 0 && r < w->members; r++)
        for (uint64_t step = FIRST; step < LAST; step++)
            if (w->acked[r][step] && !(w->closed[step] >> r & 1))
                fail_msg("seed %" PRIu64 ": step %" PRIu64 " was closed without the push of %" PRIu32
                         ", which was answered",
                         w->seed, step, r);
}

static void end(struct world *w)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        dp_steps_clear(w->shard[i].steps);
        free(w->shard[i].steps);
        free(w->shard[i].record);
    }
    free(w);
}

struct seen {
    uint64_t returned, moved, let_leave, crashes, closes, replaced;
};

static void live(uint64_t seed, enum dp_consistency mode, uint32_t slack, struct seen *seen)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->seed = seed;
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    w->mode = mode;
    w->slack = slack;
    w->members = slack + 1 + returns_draw(w, MEMBERS - slack);
    w->comes_back = returns_draw(w, 2) == 0;
    for (uint32_t i = 0; i < SHARDS; i++) {
        w->shard[i].steps = calloc(1, sizeof *w->shard[i].steps);
        assert_non_null(w->shard[i].steps);
    }
    w->noisy = true;
    for (uint32_t turns = returns_draw(w, 12000); turns > 0; turns--)
        turn(w);
    w->noisy = false;
    uint32_t left = 400000;
    for (; left > 0 && !is_over(w); left--)
        turn(w);
    if (left == 0) {
        tell(w);
        fail_msg("seed %" PRIu64 ": somebody waits for ever", seed);
    }
    check_end(w);
    *seen =
        (struct seen){seen->returned + w->returned, seen->moved + w->moved,   seen->let_leave + w->let_leave,
                      seen->crashes + w->crashes,   seen->closes + w->closes, seen->replaced + w->replaced};
    end(w);
}

static void live_all(enum dp_consistency mode, uint32_t slack)
{
    const char *text = getenv("DP_SEED"), *count = getenv("DP_SEEDS");
    uint64_t from = text ? strtoull(text, NULL, 10) : 1, seeds = count ? strtoull(count, NULL, 10) : 600;
    struct seen seen = {0};
    for (uint64_t seed = from; seed < from + seeds; seed++)
        live(seed, mode, slack, &seen);
    print_message("returned %" PRIu64 ", moved %" PRIu64 ", let leave %" PRIu64 ", crashes %" PRIu64
                  ", closes %" PRIu64 ", replaced %" PRIu64 "\n",
                  seen.returned, seen.moved, seen.let_leave, seen.crashes, seen.closes, seen.replaced);
    if (seeds >= 100)
        assert_true(seen.returned > 50 && seen.moved > 5 && seen.let_leave > 50 && seen.crashes > 50 &&
                    seen.replaced > 50);
}

static void in_sync(void **state)
{
    (void)state;
    live_all(DP_SYNC, 0);
}

static void in_sync_with_backups(void **state)
{
    (void)state;
    live_all(DP_SYNC, 1);
}

static void in_ssp(void **state)
{
    (void)state;
    live_all(DP_SSP, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_sync),
        cmocka_unit_test(in_sync_with_backups),
        cmocka_unit_test(in_ssp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
