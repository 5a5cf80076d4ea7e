/* Failing plan: which plans there can be, what one is called, and the one that DP_FAULT_PLAN gives. Of tests that fail calls (failing.h).
 * Thread    Any. */
#ifndef DP_TESTS_FAULT_FAILING_PLAN_H
#define DP_TESTS_FAULT_FAILING_PLAN_H

#include "tests/fault/failing.h"

#include <stdbool.h>
#include <stddef.h>

/* "write manifest 3 EIO once". */
const char *dp_failing_say(const struct dp_failing_plan *plan, char *out, size_t size);
bool dp_failing_can(enum dp_failing_call call, enum dp_failing_error error);
/* DP_FAULT_SEED, or 1. */
uint64_t dp_failing_seed(void);
/* DP_FAULT_PLAN; the word behind it in `end`. */
struct dp_failing_plan dp_failing_given(char end[8]);

#endif
