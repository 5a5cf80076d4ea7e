/* Goal    the time of a wait for rows is a rule's from when a shard said so until it says something else, and the network's else; none is
 *         lost or counted twice.
 * Method  a client that answers what a script says, and a clock that its waits move. */
#include "tests/lib/test.h"
#include "worker/loop/fetch_wait.h"

#include <math.h>
#include <string.h>

#define MS UINT64_C(1000000)

/* What the shards say from `at_ms` on. */
struct said {
    uint64_t at_ms;
    enum dp_wait_reason reason;
    uint32_t subject; /* STEP: the worker that is waited for; this one is worker 1 */
};

static struct {
    uint64_t now_ns, begun_ns, answer_ms;
    const struct said *said; /* ends with the answer's time */
    uint32_t waits;
} world;

static uint64_t now_of(void *self)
{
    (void)self;
    return world.now_ns;
}

enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err);
enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err)
{
    (void)client;
    (void)outcome;
    uint64_t at = (world.now_ns - world.begun_ns) / MS;
    world.waits++;
    if (at + timeout_ms >= world.answer_ms) {
        world.now_ns = world.begun_ns + world.answer_ms * MS;
        ticket->id = 0;
        return DP_OK;
    }
    world.now_ns += timeout_ms * MS;
    struct dp_wait wait = {0};
    for (const struct said *s = world.said; s->at_ms < at + timeout_ms; s++)
        wait = (struct dp_wait){.reason = s->reason, .subject = s->subject};
    return dp_fail_wait(err, DP_TIMEOUT, wait, "not yet");
}

static struct dp_step_times waited(const struct said *said, uint64_t answer_ms)
{
    static struct dp_cluster cluster = {.training.timeout_ms = 10000};
    atomic_int stop = 0;
    const struct dp_clock clock = {now_of, NULL};
    struct dp_job job = {.cluster = &cluster, .stop = &stop, .clock = clock, .worker = 1};
    struct dp_step_times times = {0};
    struct dp_ticket ticket = {.id = 7};
    struct dp_error err = {0};
    world.said = said;
    world.answer_ms = answer_ms;
    world.begun_ns = world.now_ns = 5000 * MS;
    world.waits = 0;
    struct dp_step_timer watch = dp_step_timer_start(&clock, &times);
    assert_int_equal(dp_fetch_wait(&job, &ticket, &watch, NULL, &err), DP_OK);
    assert_true(fabs(dp_step_times_sum(&times) - (double)answer_ms / 1000) < 1e-9);
    return times;
}

/* Planted: a wait for its own push is the rule's; the phase of what is said after the slice; all of the wait is the rule's once it was said. */
static void a_rule_has_its_own_time(void **state)
{
    (void)state;
    static const struct said nothing[] = {{UINT64_MAX, DP_WAIT_NONE, 0}};
    static const struct said held[] = {{0, DP_WAIT_STEP, 0}, {UINT64_MAX, DP_WAIT_NONE, 0}};
    static const struct said both[] = {{0, DP_WAIT_STEP, 0},
                                       {2000, DP_WAIT_OPENING, 0},
                                       {5000, DP_WAIT_STEP, 0},
                                       {UINT64_MAX, DP_WAIT_NONE, 0}};
    static const struct said own[] = {
        {0, DP_WAIT_STEP, 1}, {2000, DP_WAIT_STEP, 2}, {UINT64_MAX, DP_WAIT_NONE, 0}};
    struct dp_step_times times = waited(nothing, 300);
    assert_true(times.seconds[DP_PHASE_WAITING_RULE] == 0 && world.waits < 10);
    times = waited(held, 40);
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 0.039) < 1e-9);
    times = waited(held, 60000); /* beyond the timeout, which the rule has not */
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 59.999) < 1e-9 && world.waits < 320);
    times = waited(both, 6000);
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 3.0) < 0.41);
    times = waited(own, 6000); /* for 2 s it waits for its own push */
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 4.0) < 0.41);
}

static void nothing_under_way_is_not_waited_for(void **state)
{
    (void)state;
    struct dp_ticket none = {0};
    world.waits = 0;
    assert_int_equal(dp_fetch_wait(NULL, &none, NULL, NULL, NULL), DP_OK);
    assert_int_equal(world.waits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_has_its_own_time),
        cmocka_unit_test(nothing_under_way_is_not_waited_for),
    };
    return cmocka_run_group_tests_name("fetch wait", tests, NULL, NULL);
}
