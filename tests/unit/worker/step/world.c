#include "tests/unit/worker/step/world.h"

#include "common/client/downpour.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS     UINT64_C(1000000)
#define NOBODY UINT32_MAX

struct note {
    struct note *next;
    char name[128];
    size_t size;
    unsigned char bytes[];
};

struct chair {
    struct world_seat seat;
    pthread_t thread;
    pthread_cond_t wakes;
    bool runs, ended; /* ended: by itself */
    uint64_t wake_ns; /* of its next step, or of its next process */
};

struct world {
    uint64_t random, now_ns, steps;
    uint32_t seats, turn; /* whose; NOBODY: the owner's */
    pthread_mutex_t lock;
    pthread_cond_t owner;
    world_process *process;
    struct note *notes;
    void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size);
    char failure[256];
    struct chair chair[WORLD_SEATS_MAX];
};

static _Thread_local struct world_seat *here;

struct world_seat *world_here(void)
{
    return here;
}

uint64_t world_random(struct world *world, uint64_t below)
{
    uint64_t x = world->random += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return (x ^ x >> 31) % below;
}

uint64_t world_now(const struct world *world)
{
    return world->now_ns;
}

static uint64_t now_of(void *self)
{
    return ((struct world_seat *)self)->world->now_ns;
}

struct dp_clock world_clock(struct world_seat *seat)
{
    return (struct dp_clock){.now_ns = now_of, .self = seat};
}

void world_fail(struct world *world, const char *format, ...)
{
    va_list args;
    if (world->failure[0])
        return;
    va_start(args, format);
    (void)vsnprintf(world->failure, sizeof world->failure, format, args);
    va_end(args);
}

const char *world_failure(const struct world *world)
{
    return world->failure[0] ? world->failure : NULL;
}

void world_watch(struct world *world,
                 void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size))
{
    world->fetched = fetched;
}

uint64_t world_steps(const struct world *world)
{
    return world->steps;
}

bool world_has_ended(const struct world *world, uint32_t seat)
{
    return world->chair[seat].ended;
}

/* ---- turns */

static void give_back(struct chair *chair)
{
    struct world *world = chair->seat.world;
    world->turn = NOBODY;
    (void)pthread_cond_signal(&world->owner);
}

static void await_turn(struct chair *chair)
{
    struct world *world = chair->seat.world;
    while (world->turn != chair->seat.number)
        (void)pthread_cond_wait(&chair->wakes, &world->lock);
}

static void *sit(void *context)
{
    struct chair *chair = context;
    struct world *world = chair->seat.world;
    (void)pthread_mutex_lock(&world->lock);
    await_turn(chair);
    here = &chair->seat;
    world->process(&chair->seat);
    chair->runs = false;
    chair->ended = !chair->seat.killed;
    give_back(chair);
    (void)pthread_mutex_unlock(&world->lock);
    return NULL;
}

/* The lock is held by whoever has the turn. */
bool world_step(struct world_seat *seat, uint64_t ms)
{
    struct world *world = seat->world;
    struct chair *chair = &world->chair[seat->number];
    if (seat->killed)
        return false;
    chair->wake_ns = world->now_ns + ms * MS + world_random(world, 3 * MS);
    if (world_random(world, 60) == 0) /* it is held up */
        chair->wake_ns += world_random(world, 1500) * MS;
    give_back(chair);
    await_turn(chair);
    return !seat->killed;
}

static struct chair *next_of(struct world *world)
{
    struct chair *next = NULL;
    for (uint32_t s = 0; s < world->seats; s++) {
        struct chair *chair = &world->chair[s];
        if (!chair->ended && (!next || chair->wake_ns < next->wake_ns))
            next = chair;
    }
    return next;
}

static void let_run(struct chair *chair)
{
    struct world *world = chair->seat.world;
    if (!chair->runs) {
        chair->seat.killed = false;
        chair->runs = true;
        if (pthread_create(&chair->thread, NULL, sit, chair) != 0)
            abort();
    }
    world->turn = chair->seat.number;
    (void)pthread_cond_signal(&chair->wakes);
    while (world->turn != NOBODY)
        (void)pthread_cond_wait(&world->owner, &world->lock);
    if (!chair->runs) {
        (void)pthread_mutex_unlock(&world->lock);
        (void)pthread_join(chair->thread, NULL);
        (void)pthread_mutex_lock(&world->lock);
    }
}

void world_kill(struct world *world, uint32_t seat, uint64_t delay_ms)
{
    struct chair *chair = &world->chair[seat];
    if (!chair->runs)
        return;
    chair->seat.killed = true;
    let_run(chair); /* unwinds */
    chair->wake_ns = world->now_ns + delay_ms * MS;
}

bool world_run(struct world *world, uint64_t until_ns,
               void (*before)(void *context, struct world *world, uint64_t step), void *context)
{
    struct chair *next;
    (void)pthread_mutex_lock(&world->lock);
    while ((next = next_of(world)) && !world->failure[0]) {
        if (before)
            before(context, world, world->steps);
        world->steps++;
        if (!(next = next_of(world)) || next->wake_ns > until_ns)
            break;
        if (next->wake_ns > world->now_ns)
            world->now_ns = next->wake_ns;
        let_run(next);
    }
    bool all = next_of(world) == NULL;
    for (uint32_t s = 0; s < world->seats; s++)
        world_kill(world, s, 0);
    (void)pthread_mutex_unlock(&world->lock);
    return all;
}

struct world *world_new(uint64_t seed, uint32_t seats, world_process *process, void *const *contexts)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world || seats > WORLD_SEATS_MAX)
        abort();
    world->random = seed;
    world->seats = seats;
    world->turn = NOBODY;
    world->process = process;
    world->now_ns = 1000 * MS;
    (void)pthread_mutex_init(&world->lock, NULL);
    (void)pthread_cond_init(&world->owner, NULL);
    for (uint32_t s = 0; s < seats; s++) {
        struct chair *chair = &world->chair[s];
        chair->seat = (struct world_seat){.world = world, .number = s, .context = contexts[s]};
        chair->wake_ns = world->now_ns + world_random(world, 500) * MS;
        (void)pthread_cond_init(&chair->wakes, NULL);
    }
    return world;
}

void world_free(struct world *world)
{
    world_lose_notes(world);
    for (uint32_t s = 0; s < world->seats; s++)
        (void)pthread_cond_destroy(&world->chair[s].wakes);
    (void)pthread_cond_destroy(&world->owner);
    (void)pthread_mutex_destroy(&world->lock);
    free(world);
}

/* ---- the first server's notes */

void world_lose_notes(struct world *world)
{
    while (world->notes) {
        struct note *note = world->notes;
        world->notes = note->next;
        free(note);
    }
}

void world_put(struct world *world, const char *name, const void *bytes, size_t size)
{
    struct note **place = &world->notes, *note = calloc(1, sizeof *note + size);
    if (!note)
        abort();
    note->size = size;
    (void)snprintf(note->name, sizeof note->name, "%s", name);
    if (size)
        memcpy(note->bytes, bytes, size);
    while (*place && strcmp((*place)->name, name) != 0)
        place = &(*place)->next;
    if (*place) {
        note->next = (*place)->next;
        free(*place);
    }
    *place = note;
}

const void *world_note(const struct world *world, const char *name, size_t *size)
{
    for (const struct note *note = world->notes; note; note = note->next) {
        if (strcmp(note->name, name) != 0)
            continue;
        *size = note->size;
        return note->bytes;
    }
    return NULL;
}

static enum dp_status was_killed(struct dp_error *err)
{
    return dp_fail(err, DP_STOPPING, "killed");
}

enum dp_status __wrap_dp_client_note_put(struct dp_client *client, const char *name, const void *bytes,
                                         size_t size, uint32_t timeout_ms, struct dp_error *err);
enum dp_status __wrap_dp_client_note_put(struct dp_client *client, const char *name, const void *bytes,
                                         size_t size, uint32_t timeout_ms, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)client;
    (void)timeout_ms;
    if (!world_step(seat, 1))
        return was_killed(err);
    world_put(seat->world, name, bytes, size);
    return DP_OK;
}

enum dp_status __wrap_dp_client_notes(struct dp_client *client, const char *prefix,
                                      void (*visit)(void *context, const char *name, const void *bytes,
                                                    size_t size),
                                      void *context, uint32_t timeout_ms, struct dp_error *err);
enum dp_status __wrap_dp_client_notes(struct dp_client *client, const char *prefix,
                                      void (*visit)(void *context, const char *name, const void *bytes,
                                                    size_t size),
                                      void *context, uint32_t timeout_ms, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)client;
    struct world *world = seat->world;
    (void)timeout_ms;
    if (!world_step(seat, 1))
        return was_killed(err);
    for (struct note *note = world->notes; note; note = note->next) {
        if (strncmp(note->name, prefix, strlen(prefix)) != 0)
            continue;
        if (world->fetched)
            world->fetched(seat, note->name, note->bytes, note->size);
        visit(context, note->name, note->bytes, note->size);
    }
    return DP_OK;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    (void)world_step(here, (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_nsec / MS);
    return 0;
}
