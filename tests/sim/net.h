/* Net: the mail between workers and servers (behind the last: the control endpoint); what was sent on a connection that is gone is not delivered.
 * Thread    One. Memory: messages are taken over. */
#ifndef DP_TESTS_SIM_NET_H
#define DP_TESTS_SIM_NET_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

#define SIM_PEER_BYTES 12u /* of a worker's connection */

/* To a server, from the worker's connection of now (its life and the number of resets). */
void sim_net_to_server(struct sim_world *world, const struct sim_worker *from, uint32_t server,
                       struct dp_message *message);
/* From a command, which has no resets. */
void sim_net_from(struct sim_world *world, uint32_t index, uint32_t life, uint32_t server,
                  struct dp_message *message);
/* `to`: SIM_PEER_BYTES. */
void sim_net_to_worker(struct sim_world *world, uint32_t server, const struct dp_peer *to,
                       struct dp_message *message);
#endif
