/* Outcome: a run's report file, as a summary for a person, or a line for a program.
 * Failure   DP_DATA naming the file. A figure that the report lacks is left out, not shown as 0.          */
#ifndef DP_RUN_OUTCOME_H
#define DP_RUN_OUTCOME_H

#include "common/base/status.h"

#include <stdio.h>

enum dp_status dp_outcome_print(const char *report, FILE *file, struct dp_error *err);
/* One line of JSON, for programs: "finished", "exit", "dir", "report", "epochs", "train_loss" of the last
 * one, and what the report has under "model", "run", "final", "kept_epoch", "stop", "diverged", "throughput"
 * and "advice". */
enum dp_status dp_outcome_json(const char *report, const char *dir, FILE *file, struct dp_error *err);

/* The warning in the report, not its hints; or nothing. */
void dp_outcome_warn(const char *report, FILE *file);
/* The command that trains again where the report advises a lower rate; else nothing. */
void dp_outcome_again(const char *report, const char *dir, FILE *file);
/* Which commands take what out of a run in `dir`, whose model is of this kind. */
void dp_outcome_uses(const char *model, const char *dir, FILE *file);

#endif
