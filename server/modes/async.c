/* async: no worker waits for another. */
#include "server/modes/step_rules.h"

const struct dp_step_rules dp_step_rules_async = {0};
