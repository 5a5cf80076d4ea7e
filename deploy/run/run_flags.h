/* Run's flags: the flags of `downpour run`, as the table that parser and --help read. */
#ifndef DP_RUN_RUN_FLAGS_H
#define DP_RUN_RUN_FLAGS_H

#include "deploy/cli/options.h"

#define DP_RUN_DIR   "downpour-run" /* without --dir */
#define DP_RUN_FLAGS 117            /* with headings and suboptions */

extern const struct dp_command dp_run_command;

/* run --help, run --help all, run --help models, run --help models fm: on standard output; the exit code. */
int dp_run_show_help(int argc, char *const *argv);

#endif
