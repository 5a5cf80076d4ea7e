/* Stranger: a peer that pushes under ids that nobody gave it, so that shards forget: random and greatest ones, which must
 * change nothing; streams that a client or run could have, and some of them again when they are forgotten. Its pushes have no
 * rows. In some seeds, until nothing fails any more; it draws from a source of its own, so other seeds stay as they are.
 * Thread    One. */
#ifndef DP_TESTS_SIM_STRANGER_H
#define DP_TESTS_SIM_STRANGER_H

#include "tests/sim/world.h"

/* What servers' wall clocks show at their start: client streams of shard 0 begin there (dp_stream_of_client). */
#define SIM_WALL_S 1000u

struct sim_stranger;

/* NULL: this seed has none. After the workers, of whom none may have a stream of its own then. */
struct sim_stranger *sim_stranger_new(struct sim_world *world);
void sim_stranger_free(struct sim_stranger **stranger); /* accepts NULL inside */
/* Whether it is one that workers do not push to; and whether a shard may let it in. */
bool sim_is_strange(const struct sim_world *world, uint64_t stream);
bool sim_may_be_let_in(uint64_t stream);

#endif
