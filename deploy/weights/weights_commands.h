/* Weights commands: the subcommands `downpour predict`, `export` and `neighbours`. argv and result: as those of deploy/cli/commands.h. */
#ifndef DP_WEIGHTS_WEIGHTS_COMMANDS_H
#define DP_WEIGHTS_WEIGHTS_COMMANDS_H

int dp_weight_predict(int argc, char *const *argv);
int dp_weight_export(int argc, char *const *argv);
int dp_weight_neighbours(int argc, char *const *argv);

#endif
