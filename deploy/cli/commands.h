/* Commands: one function for each subcommand. argv: the words after its name.
 * Returns   The exit code: 0, 2 (with a line on stderr that says cause and remedy), or 128 + the signal's
 *           number. */
#ifndef DP_CLI_COMMANDS_H
#define DP_CLI_COMMANDS_H

#include "common/base/status.h"

int dp_command_generate(int argc, char *const *argv);
int dp_command_inspect(int argc, char *const *argv);

#endif
