/* Options file: the flags of a command as a file (flat_file.h), a line for each, without its dashes:
 *     train = "flights.csv"; rate = "0.1,decay=cosine"; epochs = 20; normalize = true;
 * Promise   What dp_options_file_write wrote gives the same values when it is read. A flag of the command
 *           line goes before the file's; a FILE that it names goes without the suboptions of the one in the
 *           file.
 * Memory    Values are copies that live as long as the program.
 * Failure   DP_ARGUMENT naming file, line and flag. */
#ifndef DP_CLI_OPTIONS_FILE_H
#define DP_CLI_OPTIONS_FILE_H

#include "deploy/cli/options.h"

/* values: of dp_options_parse; those that the file gives in addition are filled in. */
enum dp_status dp_options_file_read(const struct dp_command *command, const char *path, const char **values,
                                    struct dp_error *err);
/* without: flags that are left out, up to NULL. */
void dp_options_file_write(const struct dp_command *command, const char *const *values,
                           const char *const *without, FILE *file);

#endif
