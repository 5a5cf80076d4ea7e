/* Command: a process that makes checkpoints, with the real client library, in the order of server/coordinator/coordination.c:
 *     begin -> prepared -> register, cut, register -> union -> finish -> copied -> (remembered) -> end
 * One is killed at any event, or suspended so long that shards give its order up; a second one tries meanwhile.
 * Thread    One. */
#ifndef DP_TESTS_SIM_COMMAND_H
#define DP_TESTS_SIM_COMMAND_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

#define SIM_COMMANDS 2u

struct sim_commands;

/* NULL where the plan has no checkpoints. */
struct sim_commands *sim_commands_new(struct sim_world *world);
void sim_commands_free(struct sim_commands **commands);
void sim_commands_begin(struct sim_world *world);
/* They are killed, and do not come back by themselves. */
void sim_commands_end(struct sim_world *world);
/* Since nothing fails any more, one has made a checkpoint. */
bool sim_commands_are_done(const struct sim_world *world);

/* As of workers: index from SIM_WORKERS_MAX on. */
void sim_command_receive(struct sim_world *world, uint32_t index, uint32_t life, uint32_t server,
                         struct dp_message **message);

#endif
