/* World: what all parts of a simulated cluster share: time, chance, and what happens next.
 *     new -> (at: an event is due) -> step, step, ... -> free
 * Promise   Events happen in the order of their time, and of those with the same time in the order in which they
 *           were asked for: a seed gives the same run each time.
 * Thread    One.
 * Failure   sim_fail names the seed and how to run it again, and ends the program. */
#ifndef DP_TESTS_SIM_WORLD_H
#define DP_TESTS_SIM_WORLD_H

#include "common/env/clock.h"
#include "tests/sim/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define SIM_MS UINT64_C(1000000)
#define SIM_S  (1000 * SIM_MS)

struct sim_event {
    uint64_t due_ns, order;
    void (*happen)(void *context, uint64_t what);
    void *context;
    uint64_t what;
};

struct sim_world {
    uint64_t seed, chance, now_ns, events, orders;
    bool calm; /* nothing fails any more */
    struct sim_plan plan;
    struct sim_event *event; /* a heap */
    uint32_t waiting, room;
    struct sim_model *model;
    struct sim_server *server[SIM_SERVERS_MAX];
    struct sim_worker *worker[SIM_WORKERS_MAX];
    struct sim_stranger *stranger;       /* NULL: none */
    struct sim_control *control;         /* NULL: workers are no members */
    struct sim_checkpoints *checkpoints; /* NULL, likewise commands: none are made */
    struct sim_commands *commands;
    uint64_t generation, history;      /* of the stores */
    struct sim_sequential *sequential; /* NULL: the plan does not fix what the run gives */
};

struct sim_world *sim_world_new(uint64_t seed);
void sim_world_free(struct sim_world **world); /* events that wait are forgotten */
/* Below `below`, which is above 0. */
uint64_t sim_draw(struct sim_world *world, uint64_t below);
bool sim_happens(struct sim_world *world, uint32_t per_mille);
void sim_at(struct sim_world *world, uint64_t delay_ns, void (*happen)(void *context, uint64_t what),
            void *context, uint64_t what);
/* The next event; false: none waits. */
bool sim_step(struct sim_world *world);
struct dp_clock sim_clock(struct sim_world *world);

/* What happens, a line each, when it was asked for. */
extern bool sim_verbose;
void sim_say(const struct sim_world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
__attribute__((noreturn)) void sim_fail(const struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* What exit status a failing seed gives: 1, or 0 where one is looked for. */
extern int sim_bad_exit;
extern const char *sim_program; /* "sim": what is to be run again */

#endif
