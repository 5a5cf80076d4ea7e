/* Worker: a process that trains (life.h).
 *     open the client -> tables -> (pull -> compute -> push)* -> close
 * Killed, its next life does again what it had done last, under the same ids. A member of a run may be replaced while it lives; it ends
 * when it hears of that.
 * Thread    One. */
#ifndef DP_TESTS_SIM_WORKER_H
#define DP_TESTS_SIM_WORKER_H

#include "common/wire/message.h"
#include "tests/sim/world.h"

struct sim_worker;

struct sim_worker *sim_worker_new(struct sim_world *world, uint32_t index);
void sim_worker_free(struct sim_worker **worker);
void sim_worker_receive(struct sim_worker *worker, uint32_t server, struct dp_message **message);
/* The process that has this life, if it lives, else the one of now. */
struct sim_worker *sim_worker_of(const struct sim_world *world, uint32_t index, uint32_t life);
uint32_t sim_worker_index(const struct sim_worker *worker);
uint32_t sim_worker_life(const struct sim_worker *worker);
uint32_t sim_worker_resets(const struct sim_worker *worker, uint32_t server);
/* Or is replaced. */
void sim_worker_dies(struct sim_worker *worker);
/* A member returns at a step that this server's shard has passed. */
void sim_worker_was_passed(struct sim_world *world, uint32_t rank, uint32_t server);
/* Its connection to a server is lost, with all that is under way on it. */
void sim_worker_reset(struct sim_worker *worker, uint32_t server);
/* It waits for the answer to a push. */
bool sim_worker_is_pushing(const struct sim_worker *worker);
/* It pushes under a stream that shard 0 gives. */
bool sim_worker_has_own_stream(const struct sim_worker *worker);
bool sim_worker_is_done(const struct sim_worker *worker);
/* With all processes in its place; and one follows, once the cluster was restored. */
void sim_worker_end(struct sim_worker *worker);
void sim_worker_restored(struct sim_worker *worker);
/* It pulls every row, which must be the model's of now, and sends old pushes again, which must change nothing. */
void sim_worker_audit(struct sim_worker *worker);

#endif
