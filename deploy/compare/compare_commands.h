/* Compare commands: the subcommands `downpour compare` and `downpour report`. argv and result: as those of
 * deploy/cli/commands.h. */
#ifndef DP_COMPARE_COMPARE_COMMANDS_H
#define DP_COMPARE_COMPARE_COMMANDS_H

int dp_compare_compare(int argc, char *const *argv);
int dp_compare_report(int argc, char *const *argv);

#endif
