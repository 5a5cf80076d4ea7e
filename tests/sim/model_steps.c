#include "tests/sim/model_steps.h"

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
    }
    dp_view_clear(&view);
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
    for (uint32_t rank = 0; steps->view == 0 && rank < world->plan.workers; rank++)
        steps->next[rank] = steps->open = world->plan.first_step;
    steps->view = number;
    steps->viewed = place.lsn;
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
    if (record->step >= members->view[steps->view].member[record->rank].until)
        sim_fail(world, "shard %" PRIu32 ": a push of step %" PRIu64 " of worker %" PRIu32 ", who has left",
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
    if (record->step != steps->next[record->rank])
        sim_fail(world,
                 "shard %" PRIu32 ": worker %" PRIu32 "'s push of step %" PRIu64 ", and %" PRIu64
                 " would be its next",
                 place.shard, record->rank, record->step, steps->next[record->rank]);
    steps->next[record->rank]++;
    if (dropped)
        return;
    steps->step[index].push[record->rank] = place.lsn;
    steps->step[index].rate = push->rate;
}

/* ---- closes */

/* Who takes part, by the shard's view, a bit each. */
static uint32_t members_of(const struct sim_world *world, const struct sim_members *members, uint64_t view,
                           uint64_t step)
{
    uint32_t bits = 0;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        if (step < members->view[view].member[rank].until)
            bits |= 1u << rank;
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

static void check_close(struct sim_world *world, const struct sim_members *members,
                        const struct sim_steps *steps, const struct dp_record *close,
                        struct sim_record_place place)
{
    uint64_t index = index_of(world, close->step);
    uint32_t bits = members_of(world, members, steps->view, close->step),
             pushed = pushed_of(world, steps, index);
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
    check_close(world, members, steps, close, place);
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

/* ---- the rules */

enum sim_step_verdict sim_steps_pull(struct sim_world *world, const struct sim_members *members,
                                     const struct sim_steps *steps, uint64_t step)
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
        if (steps->next[rank] < members->view[steps->view].member[rank].until &&
            steps->next[rank] + plan->slack < step)
            return SIM_STEP_HELD;
    return SIM_STEP_NOW;
}

bool sim_steps_must_close(const struct sim_world *world, const struct sim_members *members,
                          const struct sim_steps *steps, uint64_t answered)
{
    uint64_t index = steps->open - world->plan.first_step;
    uint32_t bits = members_of(world, members, steps->view, steps->open), pushed;
    if (index >= world->plan.steps || bits == 0 || steps->viewed > answered)
        return false;
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        if (steps->step[index].push[rank] > answered)
            return false;
    pushed = pushed_of(world, steps, index);
    return __builtin_popcount(pushed) >= least_of(&world->plan, bits);
}

bool sim_steps_are_done(const struct sim_world *world, const struct sim_members *members,
                        const struct sim_steps *steps)
{
    for (uint32_t rank = 0; rank < world->plan.workers; rank++)
        if (steps->next[rank] < members->view[steps->view].member[rank].until)
            return false;
    return world->plan.mode != DP_SYNC || members_of(world, members, steps->view, steps->open) == 0;
}
