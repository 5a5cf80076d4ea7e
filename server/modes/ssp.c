/* ssp:S: a pull for step t goes once every member has finished t - S steps: it sees them all (Ho et al. 2013). */
#include "server/modes/step_rules.h"

static enum dp_step_verdict pull(const struct dp_steps *steps, const struct dp_membership *member,
                                 struct dp_error *err)
{
    uint64_t step = member->step, slack = steps->view.slack;
    (void)err;
    return step > slack && steps->least < step - slack ? DP_STEP_HELD : DP_STEP_GO;
}

const struct dp_step_rules dp_step_rules_ssp = {.pull = pull};
