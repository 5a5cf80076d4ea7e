/* Compare's flags: those of its own, and those of `downpour run` for the model, the data and the training,
 * as one table for parser and --help. Flags of `run` that compare sets itself (mode, directory), or that
 * would end runs at moments of their own, are not among them. */
#ifndef DP_COMPARE_COMPARE_FLAGS_H
#define DP_COMPARE_COMPARE_FLAGS_H

#include "deploy/cli/options.h"

#include <stdbool.h>

#define DP_COMPARE_FLAGS_MAX 96u

/* Made at the first call; one thread. */
const struct dp_command *dp_compare_command(void);
/* Whether this flag is one of `run`, which each run gets as it was given. */
bool dp_compare_is_of_run(const char *name);

#endif
