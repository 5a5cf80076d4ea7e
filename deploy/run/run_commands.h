/* Run commands: the subcommands `downpour run` and `downpour status`. argv and result: as those of deploy/cli/commands.h. */
#ifndef DP_RUN_RUN_COMMANDS_H
#define DP_RUN_RUN_COMMANDS_H

int dp_run_run(int argc, char *const *argv);
int dp_run_status(int argc, char *const *argv);

#endif
