/* Step rules: the rules of a consistency mode (common/model/mode.h) for pulls and pushes on a shard. Each
 * mode is one table, in a file of its own.
 *     a member's pull is checked -> may_pull -> pull -> rows gathered -> at_pull;    a push is new by its id -> may_push -> at_push
 * Left out  A verb that is NULL permits everything, and changes nothing.
 * Pure      pull and push read only the steps, so a blocked pull is checked again when steps->changes has
 *           moved.
 * Thread    The shard's. */
#ifndef DP_MODES_STEP_RULES_H
#define DP_MODES_STEP_RULES_H

#include "server/durable/journaling.h"
#include "server/steps/steps.h"

struct dp_section;
struct dp_shard;
struct dp_waiting;

struct dp_step_rules {
    /* Of a member that was checked. REFUSED: why in err. */
    enum dp_step_verdict (*pull)(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err);
    /* The same of a push that is new by its id. */
    enum dp_step_verdict (*push)(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err);
    /* Of a pull of anybody, a member's after its check; besides the steps it sees what the shard does: WAIT, too. Left out: as `pull`. */
    enum dp_step_verdict (*may_pull)(const struct dp_shard *shard, struct dp_waiting *waiting,
                                     struct dp_error *err);
    /* Of a pull whose verdict was OLD: the section's rows, gathered as they are now, become those of its step. */
    void (*at_pull)(const struct dp_shard *shard, const struct dp_cached_table *table,
                    const struct dp_section *section, char *to);
    /* The step that an answer's rows are of. */
    uint64_t (*step_of)(const struct dp_shard *shard, enum dp_step_verdict verdict);
    /* Whether a push that is new by its id may be appended now, a member's or not: GO, KEEP, DROP, WAIT, or REFUSED. */
    enum dp_step_verdict (*may_push)(const struct dp_shard *shard, struct dp_waiting *waiting,
                                     struct dp_error *err);
    /* Of a push whose verdict was KEEP or DROP: appends it. Else why in err. */
    enum dp_appended (*at_push)(struct dp_shard *shard, struct dp_waiting *waiting,
                                enum dp_step_verdict verdict, struct dp_error *err);
};

#define DP_STEP_RULES(constant, name, number) extern const struct dp_step_rules dp_step_rules_##name;
DP_MODES(DP_STEP_RULES)
#undef DP_STEP_RULES

extern const struct dp_step_rules *const dp_step_rules_table[DP_MODE_COUNT];

/* Those of the view's mode. */
static inline const struct dp_step_rules *dp_step_rules_of(const struct dp_steps *steps)
{
    return dp_step_rules_table[steps->view.mode];
}
/* What the mode says to a member's pull of a step. */
static inline enum dp_step_verdict
dp_step_rules_pull(const struct dp_steps *steps, const struct dp_membership *member, struct dp_error *err)
{
    const struct dp_step_rules *rules = dp_step_rules_of(steps);
    return rules->pull ? rules->pull(steps, member, err) : DP_STEP_GO;
}

#endif
