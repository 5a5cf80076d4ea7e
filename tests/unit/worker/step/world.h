/* World: some workers, each a thread of which one runs at a time, and the notes of the first server, under a clock and in an
 * order that a seed decides. A worker gives up its turn at each operation (world_step); there it can be killed, and is started
 * again later. The client's notes, and pauses, are wrapped: job->client is the seat.
 * Thread    One owns the world; what is called from processes is said so. What fails in them is recorded, not asserted. */
#ifndef DP_TESTS_WORKER_WORLD_H
#define DP_TESTS_WORKER_WORLD_H

#include "common/env/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_SEATS_MAX 8u

struct world;
struct world_seat {
    struct world *world;
    uint32_t number;
    void *context; /* the process's own */
    bool killed;   /* what it does has no effect any more: it unwinds */
};

typedef void world_process(struct world_seat *seat);

struct world *world_new(uint64_t seed, uint32_t seats, world_process *process, void *const *contexts);
void world_free(struct world *world); /* every process has ended */
/* Runs until all have ended (true) or the clock says until_ns; then all are killed. before: called ahead of each step, may kill. */
bool world_run(struct world *world, uint64_t until_ns,
               void (*before)(void *context, struct world *world, uint64_t step), void *context);
uint64_t world_steps(const struct world *world);
/* It unwinds at once, and another process of it starts after delay_ms. Nothing where none runs. */
void world_kill(struct world *world, uint32_t seat, uint64_t delay_ms);
void world_lose_notes(struct world *world);
bool world_has_ended(const struct world *world, uint32_t seat);
void world_put(struct world *world, const char *name, const void *bytes, size_t size);
/* Lent until the next step; NULL: there is none. */
const void *world_note(const struct world *world, const char *name, size_t *size);

/* Any thread that has the turn: */
uint64_t world_random(struct world *world, uint64_t below);
uint64_t world_now(const struct world *world);
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *world_failure(const struct world *world); /* the first; or NULL */
/* Fetched notes are counted by a test that wants to: name and bytes as a process is given them. */
void world_watch(struct world *world,
                 void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size));

/* A process: time passes, others run. False: it was killed. */
bool world_step(struct world_seat *seat, uint64_t ms);
struct world_seat *world_here(void);
struct dp_clock world_clock(struct world_seat *seat);

#endif
