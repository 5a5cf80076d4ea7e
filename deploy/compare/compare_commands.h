/* Compare commands: the subcommand `downpour report`. argv and what it returns: as those of deploy/cli/commands.h. */
#ifndef DP_COMPARE_COMPARE_COMMANDS_H
#define DP_COMPARE_COMPARE_COMMANDS_H

int dp_compare_report(int argc, char *const *argv);

#endif
