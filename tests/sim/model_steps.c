#include "tests/sim/model_steps.h"

#include "tests/sim/worker.h"

#include <inttypes.h>
#include <string.h>

static uint64_t index_of(struct sim_world *world, uint64_t step)
{
    uint64_t index = step - world->plan.first_step;
    if (step < world->plan.first_step || index >= world->plan.steps)
        sim_fail(world, "step %" PRIu64 " is none of the plan's", step);
    return index;
}

/* ---- views */

/* A member begins later than it did only when it returns, or its return is moved; `missed` adds up what it was away. */
static void check_seat(struct sim_world *world, const struct sim_members *members, uint64_t number,
                       uint32_t rank)
{
    if (number < 2 || !members->view[number - 1].known)
        return;
    uint64_t until = members->view[number - 1].member[rank].until,
             was = members->view[number - 1].member[rank].from,
             from = members->view[number].member[rank].from,
             missed = members->view[number - 1].member[rank].missed;
    if (from != was)
        missed += from - (until < UINT64_MAX ? until : was);
    if (from < was || (from > was && until < UINT64_MAX && from < until) ||
        (from == was && until < UINT64_MAX && members->view[number].member[rank].until != until) ||
        members->view[number].member[rank].missed != missed)
        sim_fail(world,
                 "view %" PRIu64 ": worker %" PRIu32 " begins at step %" PRIu64 ", ends at %" PRIu64
                 ", missed %" PRIu64 "; before it began at %" PRIu64 " and ended at %" PRIu64
                 ": it missed %" PRIu64,
                 number, rank, from, members->view[number].member[rank].until,
                 members->view[number].member[rank].missed, was, until, missed);
}

void sim_members_set(struct sim_world *world, struct sim_members *members, const void *bytes, size_t size)
{
    struct dp_view view;
    struct dp_error err = {0};
    if (dp_view_unpack(bytes, size, &view, &err) != DP_OK)
        sim_fail(world, "the register's view: %s", err.text);
    DP_ASSERT(view.number < SIM_VIEWS_MAX && size <= sizeof members->view[0].bytes);
    if (view.members != world->plan.workers)
        sim_fail(world, "view %" PRIu64 " has %" PRIu32 " members", view.number, view.members);
    members->view[view.number].known = true;
    members->view[view.number].size = size;
    memcpy(members->view[view.number].bytes, bytes, size);
    for (uint32_t rank = 0; rank < view.members; rank++) {
        members->view[view.number].member[rank].incarnation = view.member[rank].incarnation;
        members->view[view.number].member[rank].until = view.member[rank].until;
        members->view[view.number].member[rank].from = view.member[rank].from;
        members->view[view.number].member[rank].missed = view.member[rank].missed;
        check_seat(world, members, view.number, rank);
    }
    dp_view_clear(&view);
}

/* ---- when a member takes part */

static struct sim_stint *stint_of(struct sim_steps *steps, uint32_t rank)
{
    return &steps->stint[rank][steps->stints[rank] - 1];
}

static bool takes_part(const struct sim_steps *steps, uint32_t rank, uint64_t step)
{
    for (uint32_t i = 0; i < steps->stints[rank]; i++)
        if (step >= steps->stint[rank][i].from && step < steps->stint[rank][i].until)
            return true;
    return false;
}

/* It does nothing more until another view says so. */
static bool is_finished(const struct sim_steps *steps, uint32_t rank)
{
    if (steps->view == 0)
        return true;
    const struct sim_stint *now = &steps->stint[rank][steps->stints[rank] - 1];
    return now->from == UINT64_MAX || steps->next[rank] >= now->until;
}

/* From which step on the shard takes a member, which it has not passed. */
static uint64_t begin_of(const struct sim_world *world, const struct sim_steps *steps)
{
    uint64_t least = UINT64_MAX, greatest = 0;
    if (world->plan.mode == DP_SYNC)
        return steps->open + 1;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++) {
        if (!is_finished(steps, rank) && steps->next[rank] < least)
            least = steps->next[rank];
        greatest = steps->next[rank] > greatest ? steps->next[rank] : greatest;
    }
    return least < UINT64_MAX ? least : greatest;
}

/* In sync a step that nobody takes part in is never open, if somebody begins later. */
static void skip_empty(const struct sim_world *world, struct sim_steps *steps)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++) {
        const struct sim_stint *now = stint_of(steps, rank);
        if (takes_part(steps, rank, steps->open))
            return;
        if (now->from > steps->open && now->from < now->until && now->from < first)
            first = now->from;
    }
    if (world->plan.mode == DP_SYNC && first < UINT64_MAX)
        steps->open = first;
}

static void take_return(struct sim_world *world, struct sim_steps *steps, uint32_t rank, uint64_t from,
                        uint64_t begin, struct sim_record_place place)
{
    struct sim_stint *before = stint_of(steps, rank);
    bool left = before->until < UINT64_MAX;
    if (before->from < UINT64_MAX && (left ? from < before->until : steps->next[rank] > before->from))
        sim_fail(world,
                 "shard %" PRIu32 ", lsn %" PRIu64 ": worker %" PRIu32 " returns at step %" PRIu64
                 ", and took part from step %" PRIu64 " to %" PRIu64 " and has finished those below %" PRIu64,
                 place.shard, place.lsn, rank, from, before->from, before->until, steps->next[rank]);
    if (before->from < UINT64_MAX && left && steps->next[rank] < before->until)
        sim_fail(world,
                 "shard %" PRIu32 ", lsn %" PRIu64 ": worker %" PRIu32
                 " returns, and its pushes of before are not all there: %" PRIu64 " of %" PRIu64,
                 place.shard, place.lsn, rank, steps->next[rank], before->until);
    if (before->from < UINT64_MAX && left)
        steps->stints[rank]++; /* else its return is moved */
    DP_ASSERT(steps->stints[rank] <= SIM_STINTS_MAX);
    bool accepted = from >= begin;
    *stint_of(steps, rank) = (struct sim_stint){accepted ? from : UINT64_MAX, UINT64_MAX};
    steps->next[rank] = accepted ? from : steps->next[rank];
    sim_say(world, "s%" PRIu32 ": worker %" PRIu32 " is to begin at step %" PRIu64 ": %s", place.shard, rank,
            from, accepted ? "accepted" : "passed");
    if (!accepted && place.durable < UINT64_MAX)
        sim_worker_was_passed(world, rank, place.shard);
}

/* The members of now have changed. */
static void take_members(struct sim_world *world, const struct sim_members *members, struct sim_steps *steps,
                         uint64_t number, struct sim_record_place place)
{
    uint64_t begin = steps->view > 0 ? begin_of(world, steps) : 0;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++) {
        uint64_t from = members->view[number].member[rank].from;
        if (steps->view == 0) {
            steps->next[rank] = steps->open = world->plan.first_step;
            steps->stints[rank] = 1;
            *stint_of(steps, rank) = (struct sim_stint){from, UINT64_MAX};
        } else if (from > members->view[steps->view].member[rank].from) {
            take_return(world, steps, rank, from, begin, place);
        }
        stint_of(steps, rank)->until = members->view[number].member[rank].until;
    }
}

static void fold_view(struct sim_world *world, const struct sim_members *members, struct sim_steps *steps,
                      const struct dp_record *record, struct sim_record_place place)
{
    struct dp_view view;
    struct dp_error err = {0};
    if (dp_view_unpack(record->bytes, record->size, &view, &err) != DP_OK)
        sim_fail(world, "shard %" PRIu32 "'s view: %s", place.shard, err.text);
    uint64_t number = view.number;
    dp_view_clear(&view);
    if (number <= steps->view)
        sim_fail(world, "shard %" PRIu32 " goes from view %" PRIu64 " to view %" PRIu64, place.shard,
                 steps->view, number);
    if (number >= SIM_VIEWS_MAX || !members->view[number].known ||
        members->view[number].size != record->size ||
        memcmp(members->view[number].bytes, record->bytes, record->size) != 0)
        sim_fail(world, "shard %" PRIu32 "'s view %" PRIu64 " is not the register's", place.shard, number);
    take_members(world, members, steps, number, place);
    steps->view = number;
    steps->viewed = place.lsn;
    skip_empty(world, steps);
}

/* ---- pushes */

/* The process in that place, by the view that the shard has; none that was replaced before. */
static void check_member(struct sim_world *world, const struct sim_members *members,
                         const struct sim_steps *steps, const struct dp_record *record,
                         struct sim_record_place place)
{
    if (record->members != 1 || record->run != SIM_RUN || record->rank >= world->plan.workers)
        sim_fail(world, "shard %" PRIu32 ", lsn %" PRIu64 ": a push of no member of the run", place.shard,
                 place.lsn);
    if (record->view == 0 || record->view > steps->view ||
        members->view[record->view].member[record->rank].incarnation !=
            members->view[steps->view].member[record->rank].incarnation)
        sim_fail(world,
                 "shard %" PRIu32 ", lsn %" PRIu64 ": a push of worker %" PRIu32 " as it was in view %" PRIu64
                 ", and its place was taken by view %" PRIu64,
                 place.shard, place.lsn, record->rank, record->view, steps->view);
    const struct sim_stint *now = &steps->stint[record->rank][steps->stints[record->rank] - 1];
    if (record->step < now->from || record->step >= now->until)
        sim_fail(world,
                 "shard %" PRIu32 ": a push of step %" PRIu64 " of worker %" PRIu32
                 ", who takes no part in it",
                 place.shard, record->step, record->rank);
}

/* A step that was closed without it has dropped it. */
static bool is_dropped(const struct sim_world *world, const struct sim_steps *steps,
                       const struct dp_record *record)
{
    return sim_has_backups(&world->plan) && record->step < steps->open;
}

static void fold_push(struct sim_world *world, const struct sim_members *members, struct sim_steps *steps,
                      const struct dp_record *record, const struct dp_request *push,
                      struct sim_record_place place)
{
    uint64_t index = index_of(world, record->step);
    bool dropped = is_dropped(world, steps, record);
    check_member(world, members, steps, record, place);
    if ((record->kind == DP_RECORD_KEPT_PUSH) != (world->plan.mode == DP_SYNC && !dropped))
        sim_fail(world, "shard %" PRIu32 ", lsn %" PRIu64 ": a push of step %" PRIu64 " that is %s",
                 place.shard, place.lsn, record->step,
                 record->kind == DP_RECORD_KEPT_PUSH ? "kept" : "not kept");
    /* (What a restored shard lacks of a backup member's pushes is counted elsewhere: model_records.c.) */
    bool gaps = sim_has_backups(&world->plan) && world->plan.checkpoints;
    if (gaps ? record->step < steps->next[record->rank] : record->step != steps->next[record->rank])
        sim_fail(world,
                 "shard %" PRIu32 ": worker %" PRIu32 "'s push of step %" PRIu64 ", and %" PRIu64
                 " would be its next",
                 place.shard, record->rank, record->step, steps->next[record->rank]);
    steps->next[record->rank] = record->step + 1;
    if (dropped)
        return;
    steps->step[index].push[record->rank] = place.lsn;
    steps->step[index].rate = push->rate;
}

/* ---- closes */

/* Who takes part, by the shard's view, a bit each. */
static uint32_t members_of(const struct sim_world *world, const struct sim_steps *steps, uint64_t step)
{
    uint32_t bits = 0;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        bits |= (takes_part(steps, rank, step) ? 1u : 0u) << rank;
    return bits;
}

/* Whose pushes of it are there, likewise. */
static uint32_t pushed_of(const struct sim_world *world, const struct sim_steps *steps, uint64_t index)
{
    uint32_t bits = 0;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        bits |= (steps->step[index].push[rank] > 0 ? 1u : 0u) << rank;
    return bits;
}

/* How many of them a step takes at least. */
static int least_of(const struct sim_plan *plan, uint32_t members)
{
    int count = __builtin_popcount(members), backups = plan->mode == DP_SYNC ? (int)plan->slack : 0;
    return count > backups ? count - backups : 1;
}

static void check_close(struct sim_world *world, const struct sim_steps *steps, const struct dp_record *close,
                        struct sim_record_place place)
{
    uint64_t index = index_of(world, close->step);
    uint32_t bits = members_of(world, steps, close->step), pushed = pushed_of(world, steps, index);
    if (close->step != steps->open || close->run != SIM_RUN || world->plan.mode != DP_SYNC)
        sim_fail(world, "shard %" PRIu32 " closes step %" PRIu64 ", and %" PRIu64 " is open", place.shard,
                 close->step, steps->open);
    if (close->view != steps->view || close->members != (uint32_t)__builtin_popcount(pushed) || bits == 0)
        sim_fail(world,
                 "shard %" PRIu32 " closes step %" PRIu64 " with %" PRIu32 " members of view %" PRIu64
                 ", and %d of %d have pushed it in view %" PRIu64,
                 place.shard, close->step, close->members, close->view, __builtin_popcount(pushed),
                 __builtin_popcount(bits), steps->view);
    if (__builtin_popcount(pushed) < least_of(&world->plan, bits))
        sim_fail(world, "shard %" PRIu32 " closes step %" PRIu64 " of members %x with the pushes of %x",
                 place.shard, close->step, bits, pushed);
    for (uint32_t rank = 0; rank < world->plan.workers; rank++) {
        uint64_t lsn = steps->step[index].push[rank];
        if (lsn > 0 && !(bits >> rank & 1))
            sim_fail(world,
                     "shard %" PRIu32 " closes step %" PRIu64 ", and worker %" PRIu32 " takes no part in it",
                     place.shard, close->step, rank);
        if (lsn > place.durable)
            sim_fail(world,
                     "shard %" PRIu32 " closes step %" PRIu64 ", and worker %" PRIu32
                     "'s push is not durable: lsn %" PRIu64 ", durable is %" PRIu64,
                     place.shard, close->step, rank, lsn, place.durable);
    }
}

static void fold_close(struct sim_world *world, struct sim_members *members, struct sim_steps *steps,
                       const struct dp_record *close, const struct dp_request *push,
                       struct sim_record_place place)
{
    check_close(world, steps, close, place);
    uint64_t index = index_of(world, close->step);
    uint32_t bits = pushed_of(world, steps, index);
    if (!sim_has_backups(&world->plan) && members->closed[index] != 0 && members->closed[index] != bits)
        sim_fail(world, "step %" PRIu64 " is closed with members %x on shard %" PRIu32 ", %x elsewhere",
                 close->step, bits, place.shard, members->closed[index]);
    if (memcmp(&push->rate, &steps->step[index].rate, sizeof push->rate) != 0)
        sim_fail(world, "shard %" PRIu32 " closes step %" PRIu64 " with another rate", place.shard,
                 close->step);
    members->closed[index] = bits;
    steps->close = place.lsn;
    steps->open++;
    skip_empty(world, steps);
}

void sim_steps_fold(struct sim_world *world, struct sim_members *members, struct sim_steps *steps,
                    const struct dp_record *record, const struct dp_request *push,
                    struct sim_record_place place)
{
    switch (record->kind) {
    case DP_RECORD_VOID: /* of a restore */
        break;
    case DP_RECORD_VIEW:
        fold_view(world, members, steps, record, place);
        break;
    case DP_RECORD_CLOSE:
        fold_close(world, members, steps, record, push, place);
        break;
    case DP_RECORD_PUSH:
    case DP_RECORD_KEPT_PUSH:
        if (record->members > 0 || record->kind == DP_RECORD_KEPT_PUSH)
            fold_push(world, members, steps, record, push, place);
        break;
    }
}

void sim_steps_again(struct sim_world *world, struct sim_steps *steps, const struct dp_record *record,
                     struct sim_record_place place)
{
    uint64_t index = index_of(world, record->step);
    bool push = record->kind == DP_RECORD_KEPT_PUSH;
    if (push ? record->step < steps->open : record->step + 1 != steps->open || sim_has_backups(&world->plan))
        sim_fail(world,
                 "shard %" PRIu32 ", lsn %" PRIu64 ": %s step %" PRIu64 " anew, and step %" PRIu64 " is open",
                 place.shard, place.lsn, push ? "a push of" : "the weights from before", record->step,
                 steps->open);
    if (push)
        steps->step[index].push[record->rank] = place.lsn;
}

void sim_steps_repeated(struct sim_steps *steps, uint32_t rank, uint64_t step)
{
    if (steps->view > 0 && steps->next[rank] == step)
        steps->next[rank]++;
}

/* ---- the rules */

enum sim_step_verdict sim_steps_pull(struct sim_world *world, const struct sim_steps *steps, uint64_t step)
{
    const struct sim_plan *plan = &world->plan;
    (void)index_of(world, step);
    if (plan->mode == DP_SYNC) {
        if (step <= steps->open && sim_has_backups(plan))
            return SIM_STEP_NOW;
        if (step + 1 < steps->open)
            sim_fail(world, "a pull of step %" PRIu64 ", and step %" PRIu64 " is open", step, steps->open);
        return step > steps->open ? SIM_STEP_HELD : step == steps->open ? SIM_STEP_NOW : SIM_STEP_OLD;
    }
    for (uint32_t rank = 0; rank < plan->workers; rank++)
        if (!is_finished(steps, rank) && steps->next[rank] + plan->slack < step)
            return SIM_STEP_HELD;
    return SIM_STEP_NOW;
}

bool sim_steps_must_close(const struct sim_world *world, const struct sim_steps *steps, uint64_t answered)
{
    uint64_t index = steps->open - world->plan.first_step;
    uint32_t bits = members_of(world, steps, steps->open), pushed;
    if (index >= world->plan.steps || bits == 0 || steps->viewed > answered)
        return false;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        if (steps->step[index].push[rank] > answered)
            return false;
    pushed = pushed_of(world, steps, index);
    return __builtin_popcount(pushed) >= least_of(&world->plan, bits);
}

bool sim_steps_are_done(const struct sim_world *world, const struct sim_steps *steps)
{
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        if (!is_finished(steps, rank))
            return false;
    return world->plan.mode != DP_SYNC || members_of(world, steps, steps->open) == 0;
}
