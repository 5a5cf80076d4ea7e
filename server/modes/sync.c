/* sync: pushes of the open step are kept, and its close applies them at once (step_buffering.h, close.h). A
 * pull for the open step proceeds. A pull for a later step is blocked. A restarted process may pull for the
 * step before, and gets the weights of that step. sync:B: the open step is gathered once all of its members
 * but B have pushed it (Chen et al. 2016). A push for a step that was closed without it is dropped. A pull
 * for a closed step proceeds, and sees the open one.
 * Why       Pulls wait while a close is due and, with backup members, until it is durable. So a pull sees
 *           exactly the steps before its own, and no answer shows a choice that a crash could undo. */
#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "server/modes/step_rules.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>
#include <string.h>

static enum dp_step_verdict pull(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err)
{
    uint64_t step = member->step;
    if (step == steps->open || (step < steps->open && dp_steps_has_backups(steps)))
        return DP_STEP_GO;
    if (step > steps->open && steps->stuck.status != DP_OK) {
        if (err)
            *err = steps->stuck;
        return DP_STEP_REFUSED;
    }
    if (step > steps->open)
        return DP_STEP_HELD;
    if (step + 1 == steps->open)
        return DP_STEP_OLD;
    (void)dp_fail(
        err, DP_INVALID,
        "pull for step %" PRIu64 ": step %" PRIu64
        " is the open one, and weights are kept for the one before it only. If the store of another "
        "shard was lost, this run cannot go on: train further under a higher run number (downpour "
        "run --continue)",
        step, steps->open);
    return DP_STEP_REFUSED;
}

static enum dp_step_verdict push(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err)
{
    uint64_t next = steps->next[member->rank];
    if (member->step == next && member->step >= steps->open)
        return DP_STEP_KEEP;
    /* Below next: after a restore, of a step that closed here with a push that no other shard had counted at the cut. */
    if (member->step <= next && member->step < steps->open && dp_steps_has_backups(steps))
        return DP_STEP_DROP;
    (void)dp_fail(err, DP_INVALID,
                  "push of step %" PRIu64 ": the next of worker %" PRIu32 " is step %" PRIu64
                  ", as each step is pushed once, in order",
                  member->step, member->rank, next);
    return DP_STEP_REFUSED;
}

static enum dp_step_verdict wait_for_close(struct dp_waiting *waiting)
{
    waiting->waits_for = DP_WAIT_STEP;
    return DP_STEP_WAIT;
}

static enum dp_step_verdict may_pull(const struct dp_shard *shard, struct dp_waiting *waiting,
                                     struct dp_error *err)
{
    const struct dp_membership *member = &waiting->request.member;
    if (dp_close_is_hidden(&shard->close) && dp_journaling_lost(&shard->journaling, err))
        return DP_STEP_REFUSED;
    if (dp_close_is_hidden(&shard->close) || dp_close_is_due(&shard->close))
        return wait_for_close(waiting);
    if (!member->given && shard->steps.stuck.status != DP_OK) {
        /* A complete step is missing in its rows, which other shards may show. */
        *err = shard->steps.stuck;
        return DP_STEP_REFUSED;
    }
    enum dp_step_verdict verdict = member->given ? pull(&shard->steps, member, err) : DP_STEP_GO;
    if (verdict != DP_STEP_OLD ||
        (shard->kept.old.run == member->run && shard->kept.old.step == member->step))
        return verdict;
    (void)dp_fail(err, DP_INVALID,
                  "pull for step %" PRIu64
                  ": all members have left, and the weights from before it are not kept any more",
                  member->step);
    return DP_STEP_REFUSED;
}

/* Of rows that the step closed last has changed: their weights from before. */
static void at_pull(const struct dp_shard *shard, const struct dp_cached_table *table,
                    const struct dp_section *section, char *to)
{
    uint32_t dim = table->spec.dim, at = 0;
    size_t bytes = (size_t)dim * dp_value_bytes(section->type);
    for (uint32_t i = 0; i < section->rows; i++, to += bytes) {
        uint64_t mixed = dp_load_u64le((const char *)section->keys + (size_t)i * 8);
        const float *weights = dp_step_buffer_old_weights(&shard->kept, table->id, mixed, &at);
        if (weights && section->type == DP_F32)
            memcpy(to, weights, bytes);
        else if (weights)
            dp_bf16_put(weights, to, dim);
    }
}

static uint64_t step_of(const struct dp_shard *shard, enum dp_step_verdict verdict)
{
    return verdict == DP_STEP_OLD ? shard->kept.old.step : shard->steps.open;
}

static enum dp_step_verdict may_push(const struct dp_shard *shard, struct dp_waiting *waiting,
                                     struct dp_error *err)
{
    const struct dp_membership *member = &waiting->request.member;
    if (!member->given)
        return dp_step_buffering_check_other(shard, err) == DP_OK ? DP_STEP_GO : DP_STEP_REFUSED;
    enum dp_step_verdict verdict = push(&shard->steps, member, err);
    if (verdict == DP_STEP_KEEP && member->step == shard->steps.open && dp_close_holds_push(&shard->close))
        return wait_for_close(waiting); /* the close takes no more pushes */
    enum dp_status st = DP_OK;
    if (verdict == DP_STEP_KEEP)
        st = dp_step_buffering_check(shard, waiting, err);
    else if (verdict == DP_STEP_DROP && dp_steps_is_gathered(&shard->steps)) /* its close needs room */
        st = dp_step_buffering_check_other(shard, err);
    return st == DP_OK ? verdict : DP_STEP_REFUSED;
}

static enum dp_appended at_push(struct dp_shard *shard, struct dp_waiting *waiting,
                                enum dp_step_verdict verdict, struct dp_error *err)
{
    return verdict == DP_STEP_KEEP ? dp_step_buffering_keep(shard, waiting, err)
                                   : dp_step_buffering_drop(shard, waiting, err);
}

const struct dp_step_rules dp_step_rules_sync = {.pull = pull,
                                                 .push = push,
                                                 .may_pull = may_pull,
                                                 .at_pull = at_pull,
                                                 .step_of = step_of,
                                                 .may_push = may_push,
                                                 .at_push = at_push};
