/* Run commands: the subcommands `downpour run`, `status` and `top`. argv and result: as those of
 * deploy/cli/commands.h. */
#ifndef DP_RUN_RUN_COMMANDS_H
#define DP_RUN_RUN_COMMANDS_H

int dp_run_run(int argc, char *const *argv);
int dp_run_status(int argc, char *const *argv);
int dp_run_top(int argc, char *const *argv);

#endif
