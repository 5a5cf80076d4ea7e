/* World: some processes of workers, each on a stack of its own, and the first server with its notes and its register,
 * under a clock and in an order that a seed decides. A process gives up its turn at each operation (world_step); there it can be
 * killed, and is started again later, or be held up, as by SIGSTOP. The server is behind the seam of shared.h: its notes can be lost, its
 * register keeps what was set; it can be away for a while, and lose the answer of what it did.
 * Thread    One. What is called from processes is said so. What fails in them is recorded, not asserted. */
#ifndef DP_TESTS_UNIT_WORKER_COORDINATE_WORLD_H
#define DP_TESTS_UNIT_WORKER_COORDINATE_WORLD_H

#include "common/env/clock.h"
#include "worker/context/shared.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_SEATS_MAX 8u

struct world;
struct world_seat {
    struct world *world;
    uint32_t number;
    void *context; /* the process's own */
    void *own;     /* its present process's: for callbacks that are not given the seat */
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
/* It does nothing for so long. */
void world_hold(struct world *world, uint32_t seat, uint64_t ms);
/* Before the world runs: no process starts in it by itself. */
void world_idle(struct world *world, uint32_t seat);
/* Where none runs. */
void world_start(struct world *world, uint32_t seat, uint64_t delay_ms);
bool world_runs(const struct world *world, uint32_t seat);
void world_lose_notes(struct world *world);
/* It answers nothing for so long. */
void world_server_away(struct world *world, uint64_t ms);
bool world_has_ended(const struct world *world, uint32_t seat);
void world_put(struct world *world, const char *name, const void *bytes, size_t size);
/* Lent until the next step; NULL: there is none. version: NULL, or of a value of the register. */
const void *world_value(const struct world *world, const char *name, size_t *size, uint64_t *version);
const void *world_note(const struct world *world, const char *name, size_t *size);

/* Processes, too: */
uint64_t world_random(struct world *world, uint64_t below);
uint64_t world_now(const struct world *world);
void world_fail(struct world *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *world_failure(const struct world *world); /* the first; or NULL */
/* What a test wants to see: notes as a process is given them, and values that a process has set. */
void world_watch(struct world *world,
                 void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size),
                 void (*set)(struct world_seat *seat, const char *name, const void *bytes, size_t size));

/* A process: time passes, others run. False: it was killed. */
bool world_step(struct world_seat *seat, uint64_t ms);
struct world_seat *world_here(void);
struct dp_clock world_clock(struct world_seat *seat);
/* Of a job whose client is the seat. */
const struct dp_shared_ops *world_shared(void);

#endif
