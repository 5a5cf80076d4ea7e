#include "tests/unit/worker/coordinate/world.h"

#include "common/wire/limits.h"
#include "server/control/register_names.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define MS          UINT64_C(1000000)
#define STACK_BYTES (512u << 10)

struct note {
    struct note *next;
    char name[128];
    uint64_t version; /* of a value of the register */
    size_t size;
    unsigned char bytes[];
};

struct chair {
    struct world_seat seat;
    ucontext_t at; /* where its process is, while it runs */
    char *stack;
    bool runs, ended; /* ended: by itself */
    uint64_t wake_ns; /* of its next step, or of its next process */
};

struct world {
    uint64_t random, now_ns, steps;
    uint32_t seats;
    ucontext_t owner;
    world_process *process;
    struct note *notes, *values; /* values: the register's */
    uint64_t away_ns;            /* the server answers nothing before */
    void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size);
    void (*set)(struct world_seat *seat, const char *name, const void *bytes, size_t size);
    char failure[256];
    struct chair chair[WORLD_SEATS_MAX];
};

static struct world_seat *here; /* whose turn it is; NULL: the owner's */

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
                 void (*fetched)(struct world_seat *seat, const char *name, const void *bytes, size_t size),
                 void (*set)(struct world_seat *seat, const char *name, const void *bytes, size_t size))
{
    world->fetched = fetched;
    world->set = set;
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

/* On the seat's own stack. */
static void sit(void)
{
    struct world_seat *seat = here; /* makecontext passes ints only */
    struct chair *chair = &seat->world->chair[seat->number];
    seat->world->process(seat);
    chair->runs = false;
    chair->ended = !seat->killed;
}

bool world_step(struct world_seat *seat, uint64_t ms)
{
    struct world *world = seat->world;
    struct chair *chair = &world->chair[seat->number];
    if (seat->killed)
        return false;
    chair->wake_ns = world->now_ns + ms * MS + world_random(world, 3 * MS);
    if (world_random(world, 60) == 0) /* it is held up */
        chair->wake_ns += world_random(world, 1500) * MS;
    if (swapcontext(&chair->at, &world->owner) != 0)
        abort();
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
        if (!chair->stack && !(chair->stack = malloc(STACK_BYTES)))
            abort();
        if (getcontext(&chair->at) != 0)
            abort();
        chair->at.uc_stack = (stack_t){.ss_sp = chair->stack, .ss_size = STACK_BYTES};
        chair->at.uc_link = &world->owner;
        makecontext(&chair->at, sit, 0);
    }
    here = &chair->seat;
    if (swapcontext(&world->owner, &chair->at) != 0)
        abort();
    here = NULL;
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

void world_hold(struct world *world, uint32_t seat, uint64_t ms)
{
    world->chair[seat].wake_ns += ms * MS;
}

void world_idle(struct world *world, uint32_t seat)
{
    world->chair[seat].ended = true;
}

void world_start(struct world *world, uint32_t seat, uint64_t delay_ms)
{
    struct chair *chair = &world->chair[seat];
    if (!chair->runs)
        chair->wake_ns = world->now_ns + delay_ms * MS;
    chair->ended = chair->ended && chair->runs;
}

bool world_runs(const struct world *world, uint32_t seat)
{
    return world->chair[seat].runs;
}

bool world_run(struct world *world, uint64_t until_ns,
               void (*before)(void *context, struct world *world, uint64_t step), void *context)
{
    struct chair *next;
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
    return all;
}

struct world *world_new(uint64_t seed, uint32_t seats, world_process *process, void *const *contexts)
{
    struct world *world = calloc(1, sizeof *world);
    if (!world || seats > WORLD_SEATS_MAX)
        abort();
    world->random = seed;
    world->seats = seats;
    world->process = process;
    world->now_ns = 1000 * MS;
    for (uint32_t s = 0; s < seats; s++) {
        struct chair *chair = &world->chair[s];
        chair->seat = (struct world_seat){.world = world, .number = s, .context = contexts[s]};
        chair->wake_ns = world->now_ns + world_random(world, 500) * MS;
    }
    return world;
}

static void lose(struct note **notes);

void world_free(struct world *world)
{
    lose(&world->notes);
    lose(&world->values);
    for (uint32_t s = 0; s < world->seats; s++)
        free(world->chair[s].stack);
    free(world);
}

/* ---- the first server */

static void lose(struct note **notes)
{
    while (*notes) {
        struct note *note = *notes;
        *notes = note->next;
        free(note);
    }
}

void world_lose_notes(struct world *world)
{
    lose(&world->notes);
}

void world_server_away(struct world *world, uint64_t ms)
{
    world->away_ns = world->now_ns + ms * MS;
}

static void put(struct note **place, const char *name, uint64_t version, const void *bytes, size_t size)
{
    struct note *note = calloc(1, sizeof *note + size + 1);
    if (!note)
        abort();
    note->size = size;
    note->version = version;
    (void)snprintf(note->name, sizeof note->name, "%s", name);
    if (size)
        memcpy(note->bytes, bytes, size);
    while (*place && strcmp((*place)->name, name) != 0)
        place = &(*place)->next;
    if (*place) {
        struct note *earlier = *place;
        note->next = earlier->next;
        free(earlier);
    }
    *place = note;
}

static const struct note *find(const struct note *note, const char *name)
{
    while (note && strcmp(note->name, name) != 0)
        note = note->next;
    return note;
}

void world_put(struct world *world, const char *name, const void *bytes, size_t size)
{
    put(&world->notes, name, 0, bytes, size);
}

const void *world_note(const struct world *world, const char *name, size_t *size)
{
    const struct note *note = find(world->notes, name);
    *size = note ? note->size : 0;
    return note ? note->bytes : NULL;
}

const void *world_value(const struct world *world, const char *name, size_t *size, uint64_t *version)
{
    const struct note *note = find(world->values, name);
    *size = note ? note->size : 0;
    if (version)
        *version = note ? note->version : 0;
    return note ? note->bytes : NULL;
}

/* The way there: false with why, where the process was killed, or the server is away as long as that. */
static bool reaches(struct world_seat *seat, uint32_t timeout_ms, enum dp_status *st, struct dp_error *err)
{
    uint64_t until_ns = seat->world->now_ns + timeout_ms * MS;
    *st = DP_OK;
    do
        if (!world_step(seat, 1)) {
            *st = dp_fail(err, DP_STOPPING, "killed");
            return false;
        }
    while (seat->world->now_ns < seat->world->away_ns && seat->world->now_ns < until_ns &&
           world_step(seat, 100));
    if (seat->world->now_ns < seat->world->away_ns)
        *st = dp_fail(err, DP_TIMEOUT, "no answer from the first server");
    return *st == DP_OK;
}

static enum dp_status note_put(struct dp_client *self, const char *name, const void *bytes, size_t size,
                               uint32_t timeout_ms, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)self;
    enum dp_status st;
    if (reaches(seat, timeout_ms, &st, err))
        world_put(seat->world, name, bytes, size);
    return st;
}

static enum dp_status notes(struct dp_client *self, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)self;
    struct world *world = seat->world;
    enum dp_status st;
    if (!reaches(seat, timeout_ms, &st, err))
        return st;
    size_t found = 0;
    for (const struct note *note = world->notes; note; note = note->next)
        found += strncmp(note->name, prefix, strlen(prefix)) == 0;
    if (found >= DP_NOTES_MAX) /* more than a reply holds: no worker asks for them */
        return dp_fail(err, DP_INVALID, "%zu notes start with '%s'", found, prefix);
    for (struct note *note = world->notes; note; note = note->next) {
        if (strncmp(note->name, prefix, strlen(prefix)) != 0)
            continue;
        if (world->fetched)
            world->fetched(seat, note->name, note->bytes, note->size);
        visit(context, note->name, note->bytes, note->size);
    }
    return DP_OK;
}

static enum dp_status get(struct dp_client *self, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)self;
    struct world *world = seat->world;
    uint64_t until_ns = world->now_ns + wait_ms * MS;
    enum dp_status st;
    if (!reaches(seat, timeout_ms, &st, err))
        return st;
    const struct note *note;
    while (note = find(world->values, name), (note ? note->version : 0) <= above && world->now_ns < until_ns)
        if (!world_step(seat, 10))
            return dp_fail(err, DP_STOPPING, "killed");
    *out = (struct dp_register_value){.version = note ? note->version : 0, .size = note ? note->size : 0};
    if (!note)
        return DP_OK;
    out->bytes = malloc(note->size + 1);
    if (!out->bytes)
        abort();
    memcpy(out->bytes, note->bytes, note->size + 1);
    return DP_OK;
}

static enum dp_status set(struct dp_client *self, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err)
{
    struct world_seat *seat = (struct world_seat *)self;
    struct world *world = seat->world;
    enum dp_status st;
    if (!reaches(seat, timeout_ms, &st, err))
        return st;
    const struct note *note = find(world->values, name);
    *won = (note ? note->version : 0) == expected;
    if (*won) {
        const struct dp_control_names_rules rules = {0};
        const struct dp_control_names_set is = {.name = name,
                                                .expected = expected,
                                                .before = note ? note->bytes : NULL,
                                                .before_size = note ? note->size : 0,
                                                .bytes = bytes,
                                                .size = size};
        struct dp_error refused = {0};
        if (dp_control_names_check(&rules, &is, &refused) != DP_OK)
            world_fail(world, "the first server refuses a set: %s", refused.text);
        if (world->set)
            world->set(seat, name, bytes, size);
        put(&world->values, name, expected + 1, bytes, size);
    }
    if (!world_step(seat, 1) || world_random(world, 50) == 0)
        return dp_fail(err, DP_TIMEOUT, "the answer was lost");
    return DP_OK;
}

static void pause_for(struct dp_client *self, uint32_t ms)
{
    (void)world_step((struct world_seat *)self, ms);
}

const struct dp_shared_ops *world_shared(void)
{
    static const struct dp_shared_ops ops = {
        .note_put = note_put, .notes = notes, .get = get, .set = set, .pause = pause_for};
    return &ops;
}
