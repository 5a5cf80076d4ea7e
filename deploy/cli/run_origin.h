/* Run origin: how a run was begun, kept beside its weights as store/origin-N.json: the command, the directory in which it was given,
 * the version, the time and the machine. So a page, or a person, can say how it is made again.
 * Promise   Of words that are no UTF-8, or longer than a path, the command is not kept.
 * Failure   A file that is damaged or missing makes things unknown; writing: DP_IO naming the path. */
#ifndef DP_CLI_RUN_ORIGIN_H
#define DP_CLI_RUN_ORIGIN_H

#include "common/base/status.h"

#include <jansson.h>
#include <stdint.h>

/* directory: a run's. argv: what follows `downpour run`. */
DP_MUST_USE
enum dp_status dp_run_origin_write(const char *directory, uint32_t run, int argc, char *const *argv,
                                   struct dp_error *err);
/* The same of any command, for the caller to keep: {"version", "machine", "began", "command", "directory"}, the caller's. argv: what
 * follows `downpour WORD`. */
json_t *dp_origin_of_command(const char *word, int argc, char *const *argv);
/* The caller's; NULL: there is none that is of this run. */
json_t *dp_run_origin_read(const char *directory, uint32_t run);
/* The command of one, as a shell takes it, malloc'd; NULL: it has none. */
char *dp_run_origin_command(const json_t *origin);

#endif
