/* Outcome: a run's report file, as tables for a person: of many epochs some 20.
 * Failure   DP_DATA naming the file. A figure that the report lacks is left out, not shown as 0.          */
#ifndef DP_CLI_OUTCOME_H
#define DP_CLI_OUTCOME_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdio.h>

/* shown: every epoch's line stands above already; only a long table is then shown again, cut. */
DP_MUST_USE
enum dp_status dp_outcome_print(const char *report, bool shown, FILE *file, struct dp_error *err);

/* Which commands take what out of a run in `dir`, whose model is of this kind. */
void dp_outcome_uses(const char *model, const char *dir, FILE *file);

#endif
