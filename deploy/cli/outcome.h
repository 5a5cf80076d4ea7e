/* Outcome: a run's report file, as tables for a person.
 * Failure   DP_DATA naming the file. A figure that the report lacks is left out, not shown as 0.          */
#ifndef DP_CLI_OUTCOME_H
#define DP_CLI_OUTCOME_H

#include "common/base/status.h"

#include <stdio.h>

DP_MUST_USE
enum dp_status dp_outcome_print(const char *report, FILE *file, struct dp_error *err);

#endif
