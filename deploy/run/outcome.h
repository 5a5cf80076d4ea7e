/* Outcome: a run's report file, as tables for a person: of many epochs some 20.
 * Failure   DP_DATA naming the file. A figure that the report lacks is left out, not shown as 0.          */
#ifndef DP_RUN_OUTCOME_H
#define DP_RUN_OUTCOME_H

#include "common/base/status.h"

#include <stdio.h>

/* Which epochs have lines of their own above the rest. */
enum dp_outcome_epochs {
    DP_OUTCOME_EPOCHS,     /* all, of many some 20 */
    DP_OUTCOME_LONG_TABLE, /* each has a line above already: of many some 20 once more */
    DP_OUTCOME_NO_EPOCHS   /* what stands above is cut already */
};
enum dp_status dp_outcome_print(const char *report, enum dp_outcome_epochs epochs, FILE *file,
                                struct dp_error *err);

/* The command that trains again where the report advises a lower rate; else nothing. */
void dp_outcome_again(const char *report, const char *dir, FILE *file);
/* Which commands take what out of a run in `dir`, whose model is of this kind. */
void dp_outcome_uses(const char *model, const char *dir, FILE *file);

#endif
