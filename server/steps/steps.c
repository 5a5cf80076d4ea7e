#include "server/steps/steps.h"

#include <inttypes.h>
#include <stdio.h>

#define NAMED_MAX 3u /* of the members that are missing */

#define UNDER_WAY_MAX 128u

static bool is_finished(const struct dp_steps *steps, uint32_t rank)
{
    if (!dp_steps_has_begun(steps, rank))
        return true;
    return steps->next[rank] >= steps->view.member[rank].until;
}

/* Kept, as each pull asks for it: it is looked for again only when the slowest member moves. */
static void find_least(struct dp_steps *steps)
{
    uint64_t before = steps->least;
    steps->least = UINT64_MAX;
    for (uint32_t rank = 0; rank < steps->view.members; rank++) {
        if (is_finished(steps, rank) || steps->next[rank] >= steps->least)
            continue;
        steps->least = steps->next[rank];
        steps->least_rank = rank;
    }
    steps->changes += steps->least != before;
}

/* Kept likewise: how many members take part in the open step, and have pushed it. */
static void count_open(struct dp_steps *steps)
{
    uint32_t members = 0, backups = dp_mode_backups(steps->view.mode, steps->view.slack);
    steps->wanted = steps->pushed = 0;
    if (!dp_steps_is_by_step(steps))
        return;
    for (uint32_t rank = 0; rank < steps->view.members; rank++) {
        if (!dp_steps_takes_part(steps, rank, steps->open))
            continue;
        members++;
        steps->pushed += steps->next[rank] > steps->open;
    }
    steps->wanted = members > backups ? members - backups : members > 0;
}

/* The open step has no members, and a later one has: that is the next to be gathered. */
static void skip_empty(struct dp_steps *steps)
{
    uint64_t first = UINT64_MAX;
    if (!dp_steps_is_by_step(steps) || dp_steps_has_open(steps))
        return;
    for (uint32_t rank = 0; rank < steps->view.members; rank++)
        if (steps->start[rank] < steps->view.member[rank].until && steps->start[rank] > steps->open &&
            steps->start[rank] < first)
            first = steps->start[rank];
    if (first == UINT64_MAX)
        return;
    steps->open = first;
    steps->stuck = (struct dp_error){0};
}

/* ---- the view */

/* A view says once when a member leaves, and not of steps that it has pushed: its buffered and dropped pushes depend on
 * it. */
static enum dp_status check_leaver(const struct dp_steps *steps, const struct dp_view *view, uint32_t rank,
                                   struct dp_error *err)
{
    uint64_t was = steps->view.member[rank].until, until = view->member[rank].until;
    uint64_t least = view->member[rank].from;
    if (dp_steps_has_begun(steps, rank) && steps->next[rank] > least)
        least = steps->next[rank];
    if (until == was || (was == UINT64_MAX && until >= least))
        return DP_OK;
    return dp_fail(err, DP_INVALID,
                   "view %" PRIu64 " of run %" PRIu32 ": worker %" PRIu32
                   " takes part in the steps below %" PRIu64 ", but it %s %" PRIu64,
                   view->number, view->run, rank, until,
                   was == UINT64_MAX ? "has finished steps below" : "has left before step",
                   was == UINT64_MAX ? least : was);
}

static enum dp_status refuse_return(const struct dp_view *view, uint32_t rank, const char *but, uint64_t step,
                                    struct dp_error *err)
{
    return dp_fail(err, DP_INVALID,
                   "view %" PRIu64 " of run %" PRIu32 ": worker %" PRIu32 " takes part from step %" PRIu64
                   " on, but %s %" PRIu64,
                   view->number, view->run, rank, view->member[rank].from, but, step);
}

/* It returns, or its return is moved to a later step. A member that has pushed since it began does not move; one that returns has
 * pushed all that it had to: else what a step is closed with would depend on when a shard hears of it. */
static enum dp_status check_return(const struct dp_steps *steps, const struct dp_view *view, uint32_t rank,
                                   struct dp_error *err)
{
    const struct dp_member *was = &steps->view.member[rank], *member = &view->member[rank];
    uint64_t start = steps->start[rank], next = steps->next[rank];
    bool begun = dp_steps_has_begun(steps, rank), left = was->until != UINT64_MAX;
    if (left && member->from < was->until)
        return refuse_return(view, rank, "it has left before step", was->until, err);
    if (begun && (member->from < next || (!left && next > start)))
        return refuse_return(view, rank, "it has finished the steps below", next, err);
    if (begun && left && dp_steps_is_by_step(steps) && next < was->until)
        return refuse_return(view, rank, "it has not pushed all of its steps: the next is", next, err);
    if (begun && left && dp_steps_is_by_step(steps) && start < was->until &&
        steps->former[rank] > steps->open)
        return refuse_return(view, rank, "it left twice since the open step, which is", steps->open, err);
    if (member->until < member->from)
        return refuse_return(view, rank, "it leaves before step", member->until, err);
    return DP_OK;
}

static enum dp_status check_members(const struct dp_steps *steps, const struct dp_view *view,
                                    struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t rank = 0; st == DP_OK && rank < view->members; rank++) {
        const struct dp_member *was = &steps->view.member[rank], *member = &view->member[rank];
        if (member->from < was->from)
            st = refuse_return(view, rank, "it began at step", was->from, err);
        else if (member->from > was->from)
            st = check_return(steps, view, rank, err);
        else
            st = check_leaver(steps, view, rank, err);
    }
    return st;
}

static bool has_same_members(const struct dp_view *a, const struct dp_view *b)
{
    for (uint32_t rank = 0; rank < a->members; rank++)
        if (a->member[rank].incarnation != b->member[rank].incarnation ||
            a->member[rank].until != b->member[rank].until || a->member[rank].from != b->member[rank].from ||
            a->member[rank].missed != b->member[rank].missed)
            return false;
    return true;
}

enum dp_view_news dp_steps_look(const struct dp_steps *steps, const struct dp_view *view,
                                struct dp_error *err)
{
    const struct dp_view *own = &steps->view;
    char mine[DP_MODE_TEXT_BYTES], other[DP_MODE_TEXT_BYTES];
    if (view->run < own->run) {
        (void)dp_fail(err, DP_REPLACED,
                      "run %" PRIu32 " is over: run %" PRIu32
                      " has begun; to train further, use a run number above %" PRIu32
                      " (training.run; downpour run --continue finds it)",
                      view->run, own->run, own->run);
        return DP_VIEW_REFUSED;
    }
    if (view->run > own->run)
        return DP_VIEW_NEW_RUN;
    if (view->members != own->members || view->mode != own->mode || view->slack != own->slack ||
        view->first_step != own->first_step) {
        dp_mode_text(own->mode, own->slack, mine);
        dp_mode_text(view->mode, view->slack, other);
        (void)dp_fail(err, DP_INVALID,
                      "view of run %" PRIu32 ": %" PRIu32 " members, %s, from step %" PRIu64
                      ", but the run began with %" PRIu32 " members, %s, from step %" PRIu64
                      "; these do not change within a run",
                      view->run, view->members, other, view->first_step, own->members, mine, own->first_step);
        return DP_VIEW_REFUSED;
    }
    if (view->number == own->number && !has_same_members(own, view)) {
        (void)dp_fail(err, DP_INVALID,
                      "view %" PRIu64 " of run %" PRIu32
                      " is known here with other members: the first server's register is an old copy, or "
                      "another's. Put "
                      "its latest store back, or train further as a new run (downpour run --continue)",
                      view->number, view->run);
        return DP_VIEW_REFUSED;
    }
    if (view->number <= own->number)
        return DP_VIEW_KNOWN;
    return check_members(steps, view, err) == DP_OK ? DP_VIEW_NEWER : DP_VIEW_REFUSED;
}

static uint64_t greatest_next(const struct dp_steps *steps)
{
    uint64_t greatest = steps->view.first_step;
    for (uint32_t rank = 0; rank < steps->view.members; rank++)
        greatest = steps->next[rank] > greatest ? steps->next[rank] : greatest;
    return greatest;
}

uint64_t dp_steps_begin(const struct dp_steps *steps)
{
    if (dp_steps_is_by_step(steps)) /* the open one may be about to be closed */
        return steps->open + 1;
    if (!dp_mode_of(steps->view.mode)->waits)
        return steps->view.first_step;
    /* no client has seen that all have finished more */
    return steps->least != UINT64_MAX ? steps->least : greatest_next(steps);
}

enum dp_status dp_steps_check_left(const struct dp_steps *steps, uint32_t rank, struct dp_error *err)
{
    const struct dp_view *view = &steps->view;
    uint64_t until = view->member[rank].until;
    struct dp_wait wait = {.reason = DP_WAIT_STEP,
                           .subject = steps->least_rank,
                           .done = steps->open,
                           .total = steps->former[rank]};
    if (!dp_steps_is_by_step(steps) || until == UINT64_MAX || steps->start[rank] >= until)
        return DP_OK;
    if (steps->next[rank] < until)
        return dp_fail(err, DP_INVALID,
                       "worker %" PRIu32 " has left run %" PRIu32 " before step %" PRIu64
                       ", but pushed only the steps below %" PRIu64
                       ": join without `returns`, and push the others first",
                       rank, view->run, until, steps->next[rank]);
    if (steps->former[rank] > steps->open)
        return dp_fail_wait(err, DP_AGAIN, wait,
                            "worker %" PRIu32 " has left run %" PRIu32 " twice since step %" PRIu64
                            ", which is open: it may return when that is closed",
                            rank, view->run, steps->open);
    return DP_OK;
}

/* The steps as they are, with the view of before: accepted here, or passed. */
static void take_return(struct dp_steps *steps, const struct dp_view *view, uint32_t rank, uint64_t begin)
{
    const struct dp_member *was = &steps->view.member[rank], *member = &view->member[rank];
    if (was->until != UINT64_MAX && steps->start[rank] < was->until)
        steps->former[rank] = was->until;
    steps->start[rank] = member->from >= begin ? member->from : UINT64_MAX;
    if (dp_steps_has_begun(steps, rank))
        steps->next[rank] = member->from;
}

void dp_steps_take(struct dp_steps *steps, struct dp_view *view, uint64_t now_ns)
{
    enum dp_view_news news = dp_steps_look(steps, view, NULL);
    bool begins = news == DP_VIEW_NEW_RUN;
    DP_ASSERT((begins || news == DP_VIEW_NEWER) && view->members > 0 && view->members <= DP_MEMBERS_MAX);
    uint64_t begin = begins ? 0 : dp_steps_begin(steps);
    for (uint32_t rank = 0; rank < view->members; rank++) {
        if (begins) {
            steps->next[rank] = steps->start[rank] = view->member[rank].from;
            steps->former[rank] = 0;
        } else if (view->member[rank].from > steps->view.member[rank].from) {
            take_return(steps, view, rank, begin);
        }
        if (begins || view->member[rank].incarnation != steps->view.member[rank].incarnation)
            steps->heard_ns[rank] = now_ns;
    }
    if (begins) {
        steps->open = view->first_step;
        steps->stuck = (struct dp_error){0};
    }
    dp_view_clear(&steps->view);
    steps->view = *view;
    *view = (struct dp_view){0};
    steps->changes++;
    skip_empty(steps);
    find_least(steps);
    count_open(steps);
}

void dp_steps_restore(struct dp_steps *steps, struct dp_view *view, uint64_t open,
                      const struct dp_steps_place *place, uint64_t now_ns)
{
    DP_ASSERT(steps->view.run == 0 && view->run > 0 && open >= view->first_step);
    dp_steps_take(steps, view, now_ns);
    for (uint32_t rank = 0; rank < steps->view.members; rank++) {
        DP_ASSERT(place[rank].next >= steps->view.first_step);
        steps->next[rank] = place[rank].next;
        steps->start[rank] = place[rank].start;
        steps->former[rank] = place[rank].former;
    }
    steps->open = open;
    find_least(steps);
    count_open(steps);
}

void dp_steps_clear(struct dp_steps *steps)
{
    dp_view_clear(&steps->view);
}

/* ---- members */

static enum dp_status lacks_view(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err)
{
    uint64_t has = member->run == steps->view.run ? steps->view.number : 0;
    struct dp_wait wait = {
        .reason = DP_WAIT_VIEW, .subject = member->run, .done = has, .total = member->view};
    return dp_fail_wait(err, DP_AGAIN, wait,
                        "view %" PRIu64 " of run %" PRIu32 " is not known here: the last one is %" PRIu64,
                        member->view, member->run, has);
}

/* It may join again: what it waits for is a view that has it. */
static enum dp_status let_leave(const struct dp_view *view, uint32_t rank, struct dp_error *err)
{
    struct dp_wait wait = {
        .reason = DP_WAIT_VIEW, .subject = view->run, .done = view->number, .total = view->number + 1};
    return dp_fail_wait(err, DP_REPLACED, wait,
                        "run %" PRIu32 " goes on without worker %" PRIu32 " from step %" PRIu64
                        ", as it was silent for longer than --worker-timeout (training.worker_timeout): it "
                        "has to join again",
                        view->run, rank, view->member[rank].until);
}

static enum dp_status not_yet(const struct dp_steps *steps, const struct dp_membership *member,
                              struct dp_error *err)
{
    return dp_fail(err, DP_INVALID,
                   "member: step %" PRIu64 ", but worker %" PRIu32 " takes part from step %" PRIu64 " on%s",
                   member->step, member->rank, steps->view.member[member->rank].from,
                   dp_steps_has_begun(steps, member->rank)
                       ? ""
                       : ", which this shard has passed: it has to join from a later one");
}

enum dp_status dp_steps_check(const struct dp_steps *steps, const struct dp_membership *member,
                              struct dp_error *err)
{
    const struct dp_view *view = &steps->view;
    if (member->run < view->run)
        return dp_fail(err, DP_REPLACED,
                       "run %" PRIu32 " is over: run %" PRIu32 " has begun; this process, worker %" PRIu32
                       ", ends; to train further, use a run number above %" PRIu32
                       " (training.run; downpour run --continue finds it)",
                       member->run, view->run, member->rank, view->run);
    if (member->run > view->run || (member->run == view->run && member->view > view->number))
        return lacks_view(steps, member, err);
    if (member->rank >= view->members)
        return dp_fail(err, DP_INVALID, "member: rank %" PRIu32 ", run %" PRIu32 " has %" PRIu32 " members",
                       member->rank, view->run, view->members);
    if (member->incarnation != view->member[member->rank].incarnation &&
        view->member[member->rank].until != UINT64_MAX)
        return let_leave(view, member->rank, err);
    if (member->incarnation != view->member[member->rank].incarnation)
        return dp_fail(err, DP_REPLACED,
                       "another process joined run %" PRIu32 " as worker %" PRIu32 "; this process ends",
                       view->run, member->rank);
    if (member->step < view->first_step)
        return dp_fail(err, DP_INVALID, "member: step %" PRIu64 ", run %" PRIu32 " begins at step %" PRIu64,
                       member->step, view->run, view->first_step);
    if (member->step < steps->start[member->rank])
        return not_yet(steps, member, err);
    if (member->step >= view->member[member->rank].until)
        return dp_fail(err, DP_INVALID,
                       "member: step %" PRIu64 ", but worker %" PRIu32
                       " has left: it takes part in the steps below %" PRIu64,
                       member->step, member->rank, view->member[member->rank].until);
    return DP_OK;
}

void dp_steps_heard(struct dp_steps *steps, const struct dp_membership *member, uint64_t now_ns)
{
    DP_ASSERT(member->given && member->rank < steps->view.members);
    steps->heard_ns[member->rank] = now_ns;
}

enum dp_status dp_steps_admit(struct dp_steps *steps, const struct dp_membership *member, bool hears,
                              uint64_t now_ns, struct dp_error *err)
{
    enum dp_status st = dp_steps_check(steps, member, err);
    if (st == DP_OK && hears)
        dp_steps_heard(steps, member, now_ns);
    return st;
}

static uint64_t silent_ms(const struct dp_steps *steps, uint32_t rank, uint64_t now_ns)
{
    uint64_t heard = steps->heard_ns[rank];
    return now_ns > heard ? (now_ns - heard) / 1000000u : 0;
}

/* sync:B: whether it takes part in the open step and has not pushed it. */
static bool is_missing(const struct dp_steps *steps, uint32_t rank)
{
    return dp_steps_takes_part(steps, rank, steps->open) && steps->next[rank] <= steps->open;
}

/* The missing member to name: one that joined before one that did not, then the longest silent. */
static uint32_t longest_silent(const struct dp_steps *steps)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t rank = 0; rank < steps->view.members; rank++) {
        if (!is_missing(steps, rank))
            continue;
        bool joined = steps->view.member[rank].incarnation != 0;
        bool before = found != UINT32_MAX && steps->view.member[found].incarnation != 0;
        if (found == UINT32_MAX || joined > before ||
            (joined == before && steps->heard_ns[rank] < steps->heard_ns[found]))
            found = rank;
    }
    DP_ASSERT(found != UINT32_MAX);
    return found;
}

/* "worker 2 (last heard 1.2 s ago), worker 3 (not joined yet)", NAMED_MAX at most. */
static void name_missing(const struct dp_steps *steps, uint64_t now_ns, char *out, size_t size)
{
    uint32_t named = 0, missing = 0;
    size_t used = 0;
    out[0] = 0;
    for (uint32_t rank = 0; rank < steps->view.members; rank++) {
        if (!is_missing(steps, rank) || missing++ >= NAMED_MAX || used >= size)
            continue;
        uint64_t ms = silent_ms(steps, rank, now_ns);
        const char *between = named++ > 0 ? ", " : "";
        int n =
            steps->view.member[rank].incarnation == 0
                ? snprintf(out + used, size - used, "%sworker %" PRIu32 " (not joined yet)", between, rank)
                : snprintf(out + used, size - used,
                           "%sworker %" PRIu32 " (last heard %" PRIu64 ".%" PRIu64 " s ago)", between, rank,
                           ms / 1000, ms / 100 % 10);
        used += n > 0 ? (size_t)n : 0;
    }
    if (missing > named && used < size)
        (void)snprintf(out + used, size - used, " and %" PRIu32 " more", missing - named);
}

/* Of sync:B, where the open step is not gathered. */
static uint64_t say_missing(const struct dp_steps *steps, const struct dp_membership *member, uint64_t now_ns,
                            struct dp_error *err)
{
    char missing[300];
    uint32_t rank = longest_silent(steps), members = 0;
    struct dp_wait wait = {
        .reason = DP_WAIT_STEP, .subject = rank, .done = steps->next[rank], .total = member->step};
    for (uint32_t r = 0; r < steps->view.members; r++)
        members += dp_steps_takes_part(steps, r, steps->open);
    name_missing(steps, now_ns, missing, sizeof missing);
    (void)dp_fail_wait(err, DP_HELD, wait,
                       "step %" PRIu64 " waits until all but %" PRIu32 " of %" PRIu32
                       " workers have pushed step %" PRIu64 ": missing are %s",
                       member->step, members - steps->wanted, members, steps->open, missing);
    return silent_ms(steps, rank, now_ns);
}

/* Though the pulling member must have pushed some here: more steps back than a client has pushes under way. */
static bool knows_no_step(const struct dp_steps *steps, const struct dp_membership *member)
{
    const struct dp_view *view = &steps->view;
    return steps->least == view->first_step && steps->next[member->rank] == view->first_step &&
           member->step - view->first_step > (uint64_t)view->slack + UNDER_WAY_MAX;
}

uint64_t dp_steps_say_held(const struct dp_steps *steps, const struct dp_membership *member, uint64_t now_ns,
                           struct dp_error *err)
{
    const struct dp_view *view = &steps->view;
    uint64_t must = member->step - dp_mode_ahead(view->mode, view->slack);
    struct dp_wait wait = {.reason = DP_WAIT_STEP, .total = must};
    bool closes = dp_steps_is_gathered(steps);
    if (!closes && dp_steps_has_backups(steps))
        return say_missing(steps, member, now_ns, err);
    uint32_t rank = closes ? member->rank : steps->least_rank;
    uint64_t ms = silent_ms(steps, rank, now_ns);
    DP_ASSERT(rank < view->members);
    wait.subject = rank;
    wait.done = closes ? must : steps->least;
    if (closes)
        (void)dp_fail_wait(err, DP_HELD, wait,
                           "step %" PRIu64 " waits until step %" PRIu64
                           " is closed: all its pushes are there",
                           member->step, steps->open);
    else if (knows_no_step(steps, member))
        (void)dp_fail_wait(
            err, DP_HELD, wait,
            "step %" PRIu64 " waits for worker %" PRIu32
            "; but this shard knows no step of the run, of worker %" PRIu32
            " either, which pulls: was its store replaced? Then end this run, and train further "
            "under a higher run number (downpour run --continue)",
            member->step, rank, member->rank);
    else if (view->member[rank].incarnation == 0)
        (void)dp_fail_wait(err, DP_HELD, wait,
                           "step %" PRIu64 " waits for worker %" PRIu32 ", which has not joined yet",
                           member->step, rank);
    else
        (void)dp_fail_wait(err, DP_HELD, wait,
                           "step %" PRIu64 " waits for worker %" PRIu32 ", which has finished %" PRIu64
                           " steps and was last heard %" PRIu64 ".%" PRIu64 " s ago",
                           member->step, rank, steps->least, ms / 1000, ms / 100 % 10);
    return ms;
}

void dp_steps_pushed(struct dp_steps *steps, uint32_t rank, uint64_t step)
{
    DP_ASSERT(rank < steps->view.members && step < UINT64_MAX);
    if (step < steps->next[rank])
        return;
    bool opened = steps->next[rank] <= steps->open && step >= steps->open;
    steps->pushed += dp_steps_is_by_step(steps) && opened && dp_steps_takes_part(steps, rank, steps->open);
    steps->next[rank] = step + 1;
    if (rank == steps->least_rank || steps->least == UINT64_MAX)
        find_least(steps);
    DP_ASSERT(is_finished(steps, rank) || steps->least <= steps->next[rank]);
}

/* ---- synchronous steps */

bool dp_steps_has_open(const struct dp_steps *steps)
{
    for (uint32_t rank = 0; rank < steps->view.members; rank++)
        if (dp_steps_takes_part(steps, rank, steps->open))
            return true;
    return false;
}

void dp_steps_set_stuck(struct dp_steps *steps, const struct dp_error *why)
{
    DP_ASSERT(why->status != DP_OK);
    steps->stuck = *why;
    steps->changes++;
}

void dp_steps_closed(struct dp_steps *steps)
{
    DP_ASSERT(dp_steps_is_by_step(steps) && dp_steps_is_gathered(steps));
    steps->open++;
    steps->stuck = (struct dp_error){0};
    steps->changes++;
    skip_empty(steps);
    count_open(steps);
}
