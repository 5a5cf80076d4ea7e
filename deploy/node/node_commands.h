/* Node commands: the subcommand `downpour node`. argv: as those of deploy/cli/commands.h.
 * Returns   DP_EXIT_DONE, DP_EXIT_FAILED or DP_EXIT_RETRY (common/base/status.h). */
#ifndef DP_NODE_NODE_COMMANDS_H
#define DP_NODE_NODE_COMMANDS_H

int dp_node(int argc, char *const *argv);

#endif
