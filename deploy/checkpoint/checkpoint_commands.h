/* Checkpoint commands: the subcommands `downpour checkpoint`, `restore` and `import`. argv and result: as
 * those of deploy/cli/commands.h. */
#ifndef DP_CHECKPOINT_CHECKPOINT_COMMANDS_H
#define DP_CHECKPOINT_CHECKPOINT_COMMANDS_H

int dp_deploy_checkpoint(int argc, char *const *argv);
int dp_deploy_restore(int argc, char *const *argv);
int dp_deploy_import(int argc, char *const *argv);

#endif
