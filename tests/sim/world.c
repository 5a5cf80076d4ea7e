#include "tests/sim/world.h"

#include "common/base/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool sim_verbose = false;
int sim_bad_exit = 1;
const char *sim_program = "sim";

struct sim_world *sim_world_new(uint64_t seed)
{
    struct sim_world *world = calloc(1, sizeof *world);
    DP_ASSERT(world);
    world->seed = seed;
    world->chance = seed * 0x9e3779b97f4a7c15u + 1;
    world->now_ns = SIM_S;
    world->generation = 1;
    return world;
}

void sim_world_free(struct sim_world **world)
{
    free((*world)->event);
    free(*world);
    *world = NULL;
}

uint64_t sim_draw(struct sim_world *world, uint64_t below)
{
    uint64_t z = world->chance += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return ((z ^ z >> 31) >> 16) % below;
}

bool sim_happens(struct sim_world *world, uint32_t per_mille)
{
    return per_mille > 0 && sim_draw(world, 1000) < per_mille;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->due_ns < b->due_ns || (a->due_ns == b->due_ns && a->order < b->order);
}

void sim_at(struct sim_world *world, uint64_t delay_ns, void (*happen)(void *context, uint64_t what),
            void *context, uint64_t what)
{
    if (world->waiting == world->room) {
        world->room = world->room ? 2 * world->room : 256;
        world->event = realloc(world->event, world->room * sizeof world->event[0]);
        DP_ASSERT(world->event);
    }
    struct sim_event event = {world->now_ns + delay_ns, world->orders++, happen, context, what};
    uint32_t at = world->waiting++;
    for (; at > 0 && before(&event, &world->event[(at - 1) / 2]); at = (at - 1) / 2)
        world->event[at] = world->event[(at - 1) / 2];
    world->event[at] = event;
}

static void take_first(struct sim_world *world, struct sim_event *out)
{
    *out = world->event[0];
    struct sim_event last = world->event[--world->waiting];
    uint32_t at = 0, child;
    while ((child = 2 * at + 1) < world->waiting) {
        if (child + 1 < world->waiting && before(&world->event[child + 1], &world->event[child]))
            child++;
        if (!before(&world->event[child], &last))
            break;
        world->event[at] = world->event[child];
        at = child;
    }
    world->event[at] = last;
}

bool sim_step(struct sim_world *world)
{
    struct sim_event event;
    if (world->waiting == 0)
        return false;
    take_first(world, &event);
    world->now_ns = event.due_ns;
    world->events++;
    event.happen(event.context, event.what);
    return true;
}

static uint64_t now_of(void *self)
{
    return ((const struct sim_world *)self)->now_ns;
}

struct dp_clock sim_clock(struct sim_world *world)
{
    return (struct dp_clock){.now_ns = now_of, .self = world};
}

void sim_say(const struct sim_world *world, const char *format, ...)
{
    va_list args;
    if (!sim_verbose)
        return;
    va_start(args, format);
    (void)printf("%12.6f #%" PRIu64 " ", (double)world->now_ns / 1e9, world->events);
    (void)vprintf(format, args);
    (void)printf("\n");
    va_end(args);
}

void sim_fail(const struct sim_world *world, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)printf("seed %" PRIu64 " at %.6f s, event %" PRIu64 ": ", world->seed, (double)world->now_ns / 1e9,
                 world->events);
    (void)vprintf(format, args);
    (void)printf("\nrun it again: %s --seed %" PRIu64 " --verbose\n", sim_program, world->seed);
    va_end(args);
    (void)fflush(stdout);
    exit(sim_bad_exit);
}
