/* Life: a process that uses the real client library, which waits as it does in life: on a stack of its own, which the world leaves and
 * comes back to.
 *     fill in -> begin -> (live: think, the client's waits) -> end -> begin ... -> end
 * Promise   Killed, its connections are silent and its client gives up each wait (sim_life_is_dead), so that live() comes to its end by
 *           itself, within end().
 * Thread    One. */
#ifndef DP_TESTS_SIM_LIFE_H
#define DP_TESTS_SIM_LIFE_H

#include "common/client/client_over.h"
#include "tests/sim/mail.h"

#include <ucontext.h>

#define SIM_LIVES_MAX 8u /* at once */

struct sim_life {
    struct sim_world *world;
    uint32_t slot; /* below SIM_LIVES_MAX, of no other */
    void (*live)(void *context);
    void (*send)(void *context, uint32_t link, struct dp_message *message); /* takes it over */
    void *context;
    /* Its own. */
    uint32_t number;      /* of this life, from 1 */
    bool runs, dead;      /* dead: killed, and not at its end yet */
    uint64_t asleep_ns;   /* suspended until then */
    uint64_t waits, wake; /* the number of the wait that the next event ends */
    struct sim_inbox inbox;
    ucontext_t stack;
};

void sim_life_begin(struct sim_life *life);
/* Kills it, if it runs. */
void sim_life_end(struct sim_life *life);
/* Suspends it, if it runs: it does nothing for so long. */
void sim_life_suspend(struct sim_life *life, uint64_t ns);
/* From within live(). */
void sim_life_think(struct sim_life *life, uint64_t ms);
struct dp_transport sim_life_transport(struct sim_life *life);
struct dp_clock sim_life_clock(struct sim_life *life);
/* For the options of its client: gives_up, with the life. */
bool sim_life_is_dead(void *life);
/* Takes the message over, if it runs. */
void sim_life_receive(struct sim_life *life, uint32_t link, struct dp_message **message);

#endif
