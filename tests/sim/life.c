#include "tests/sim/life.h"

#include <stdlib.h>

#define STACK_BYTES (512u << 10)

static ucontext_t scheduler;
static char *stacks[SIM_LIVES_MAX]; /* kept over seeds */

/* ---- leaving and coming back */

static void resume(struct sim_life *life)
{
    if (swapcontext(&scheduler, &life->stack) != 0)
        abort();
}

static void wake(void *context, uint64_t wait)
{
    struct sim_life *life = context;
    if (life->runs && wait == life->wake && life->asleep_ns > life->world->now_ns) {
        sim_at(life->world, life->asleep_ns - life->world->now_ns, wake, life, wait);
    } else if (life->runs && wait == life->wake) {
        life->wake = 0;
        resume(life);
    }
}

/* Until the time is over, or, where messages end it, one is there. */
static void leave(struct sim_life *life, uint64_t ns)
{
    if (life->dead)
        return;
    life->wake = ++life->waits;
    sim_at(life->world, ns, wake, life, life->wake);
    if (swapcontext(&life->stack, &scheduler) != 0)
        abort();
}

void sim_life_suspend(struct sim_life *life, uint64_t ns)
{
    life->asleep_ns = life->world->now_ns + ns;
}

void sim_life_think(struct sim_life *life, uint64_t ms)
{
    uint64_t until = life->world->now_ns + ms * SIM_MS;
    while (!life->dead && life->world->now_ns < until)
        leave(life, until - life->world->now_ns);
}

/* ---- the transport and the clock */

static enum dp_status send_message(void *self, uint32_t link, struct dp_message **message,
                                   struct dp_error *err)
{
    struct sim_life *life = self;
    struct dp_message *taken = *message;
    *message = NULL;
    if (life->dead)
        dp_message_free(&taken);
    else
        life->send(life->context, link, taken);
    return DP_OK;
}

static bool receive_message(void *self, uint32_t *link, struct dp_message **message)
{
    struct sim_life *life = self;
    struct sim_mail mail;
    if (life->dead || !sim_inbox_take(&life->inbox, &mail))
        return false;
    *link = mail.link;
    *message = mail.message;
    return true;
}

static void wait_for_message(void *self, uint32_t timeout_ms)
{
    struct sim_life *life = self;
    if (!life->inbox.first)
        leave(life, timeout_ms * SIM_MS);
}

static void close_transport(void *self) {}

struct dp_transport sim_life_transport(struct sim_life *life)
{
    return (struct dp_transport){.send = send_message,
                                 .receive = receive_message,
                                 .wait = wait_for_message,
                                 .close = close_transport,
                                 .self = life};
}

static uint64_t now_of(void *self)
{
    const struct sim_life *life = self;
    return life->world->now_ns;
}

struct dp_clock sim_life_clock(struct sim_life *life)
{
    return (struct dp_clock){.now_ns = now_of, .self = life};
}

bool sim_life_is_dead(void *life)
{
    return ((const struct sim_life *)life)->dead;
}

void sim_life_receive(struct sim_life *life, uint32_t link, struct dp_message **message)
{
    if (!life->runs)
        return;
    struct sim_mail mail = {.message = *message, .link = link};
    *message = NULL;
    sim_inbox_put(&life->inbox, &mail);
    if (life->wake != 0)
        sim_at(life->world, 1000, wake, life, life->wake);
}

/* ---- beginning and end */

static struct sim_life *born; /* whose life begins: makecontext passes ints only */

static void begin(void)
{
    struct sim_life *life = born;
    life->live(life->context);
    life->runs = false;
    if (swapcontext(&life->stack, &scheduler) != 0)
        abort();
}

void sim_life_begin(struct sim_life *life)
{
    DP_ASSERT(!life->runs);
    if (!stacks[life->slot])
        stacks[life->slot] = malloc(STACK_BYTES);
    DP_ASSERT(stacks[life->slot]);
    life->number++;
    life->runs = true;
    life->dead = false;
    life->wake = life->asleep_ns = 0;
    if (getcontext(&life->stack) != 0)
        abort();
    life->stack.uc_stack.ss_sp = stacks[life->slot];
    life->stack.uc_stack.ss_size = STACK_BYTES;
    life->stack.uc_link = NULL;
    makecontext(&life->stack, begin, 0);
    born = life;
    resume(life);
}

void sim_life_end(struct sim_life *life)
{
    if (life->runs) {
        life->dead = true;
        life->wake = 0;
        resume(life);
        DP_ASSERT(!life->runs);
    }
    sim_inbox_clear(&life->inbox);
}
