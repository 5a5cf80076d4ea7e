/* Control: the first server's control thread: the register of the cluster, by the real service on a simulated disk, and the real table
 * of leases. It is up while the first server is, and dies and loses power with it.
 *     new -> (up -> receive ... -> down)* -> free
 * Promise   What it has lost power in is said to nobody. The model is told of each view that the register has, and of each lease.
 * Thread    One. */
#ifndef DP_TESTS_SIM_CONTROL_H
#define DP_TESTS_SIM_CONTROL_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

struct sim_control;
struct dp_sim_disk;

/* NULL: the plan has no members, no leases and no checkpoints, and nobody asks for it. All functions below accept that. */
struct sim_control *sim_control_new(struct sim_world *world);
void sim_control_free(struct sim_control **control);
/* False: its power went meanwhile, and the server's with it. */
bool sim_control_up(struct sim_control *control);
void sim_control_down(struct sim_control *control, bool power); /* also one that is down */
void sim_control_receive(struct sim_control *control, const struct dp_peer *from,
                         struct dp_message **message);
/* Before it is up for the first time: its disk, taken over, has a register. */
void sim_control_restore(struct sim_control *control, struct dp_sim_disk *sim);
/* At one of its disk's next operations. */
void sim_control_loses_power_at(struct sim_control *control, uint64_t operation);
void sim_control_heal(struct sim_control *control); /* it does not */

#endif
