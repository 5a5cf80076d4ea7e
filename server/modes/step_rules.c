#include "server/modes/step_rules.h"

const struct dp_step_rules *const dp_step_rules_table[DP_MODE_COUNT] = {
#define DP_STEP_RULES(constant, name, number) [DP_##constant] = &dp_step_rules_##name,
    DP_MODES(DP_STEP_RULES)
#undef DP_STEP_RULES
};
