/* Goal    the time of a wait for rows is the mode's from when a shard said so until it says something else,
 *         and the network's else; none is lost or counted twice. The worker that a pull waits for is logged after 2 s
 *         and then every 10 s, with what that worker's note says of it.
 * Method  a client that answers by a script, a clock that its waits move, notes of a script, and the lines of
 *         the log. */
#include "tests/lib/test.h"
#include "worker/loop/pull_wait.h"

#include "common/base/log.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
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
    const char *note; /* of worker 2; NULL: the first server does not answer */
    uint32_t lines, looks;
    uint64_t line_ms[8];
    char line[512];
} world;

static struct dp_cluster cluster = {.training = {.run = 7, .timeout_ms = 10000}};
static struct dp_job job;
static struct dp_progress progress = {.job = &job};

static uint64_t now_of(void *self)
{
    return world.now_ns;
}

void __wrap_dp_log(enum dp_log_level level, const char *format, ...);
void __wrap_dp_log(enum dp_log_level level, const char *format, ...)
{
    va_list args;
    assert_int_equal(level, DP_LOG_WARN);
    assert_string_equal(progress.awaited, "step 4 waits"); /* for the progress note */
    va_start(args, format);
    (void)vsnprintf(world.line, sizeof world.line, format, args);
    va_end(args);
    world.line_ms[world.lines++ % 8] = (world.now_ns - world.begun_ns) / MS;
}

static enum dp_status notes(struct dp_client *self, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err)
{
    assert_string_equal(prefix, "run/7/progress/2.");
    assert_true(timeout_ms <= 1000);
    world.looks++;
    if (!world.note)
        return dp_fail(err, DP_TIMEOUT, "no answer");
    if (world.note[0])
        visit(context, "run/7/progress/2.", world.note, strlen(world.note));
    return DP_OK;
}

enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err);
enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err)
{
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
    return dp_fail_wait(err, DP_TIMEOUT, wait, "step 4 waits");
}

static atomic_int never;

static void begin(uint32_t worker)
{
    static const struct dp_shared_ops ops = {.notes = notes};
    memset(&world, 0, sizeof world);
    world.now_ns = 5000 * MS;
    world.note = "";
    progress = (struct dp_progress){.job = &job};
    job = (struct dp_job){.cluster = &cluster,
                          .stop = &never,
                          .clock = {now_of, NULL},
                          .worker = worker,
                          .shared = &ops,
                          .client = (struct dp_client *)&world};
}

static struct dp_step_times waited(const struct said *said, uint64_t answer_ms)
{
    struct dp_step_times times = {0};
    struct dp_ticket ticket = {.id = 7};
    struct dp_error err = {0};
    world.said = said;
    world.answer_ms = answer_ms;
    world.begun_ns = world.now_ns;
    world.waits = 0;
    struct dp_step_timer watch = dp_step_timer_start(&job.clock, &times);
    assert_int_equal(dp_pull_wait(&progress, &ticket, &watch, NULL, &err), DP_OK);
    assert_true(fabs(dp_step_times_sum(&times) - (double)answer_ms / 1000) < 1e-9);
    assert_string_equal(progress.awaited, "");
    return times;
}

static const struct said nothing[] = {{UINT64_MAX, DP_WAIT_NONE, 0}},
                         blocked[] = {{0, DP_WAIT_STEP, 2}, {UINT64_MAX, DP_WAIT_NONE, 0}},
                         both[] = {{0, DP_WAIT_STEP, 2},
                                   {2000, DP_WAIT_OPENING, 0},
                                   {5000, DP_WAIT_STEP, 2},
                                   {UINT64_MAX, DP_WAIT_NONE, 0}},
                         own[] = {
                             {0, DP_WAIT_STEP, 1}, {2000, DP_WAIT_STEP, 2}, {UINT64_MAX, DP_WAIT_NONE, 0}};

/* Planted: a wait for its own push is the rule's; the phase of what is said after the slice; all of the wait
 * is the rule's once it was said. */
static void a_rule_has_its_own_time(void **state)
{
    begin(1);
    struct dp_step_times times = waited(nothing, 300);
    assert_true(times.seconds[DP_PHASE_WAITING_RULE] == 0 && world.waits < 10);
    times = waited(blocked, 40);
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 0.039) < 1e-9);
    times = waited(blocked, 60000); /* beyond the timeout, which the rule has not */
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 59.999) < 1e-9 && world.waits < 320);
    times = waited(both, 6000);
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 3.0) < 0.41);
    times = waited(own, 6000); /* for 2 s it waits for its own push */
    assert_true(fabs(times.seconds[DP_PHASE_WAITING_RULE] - 4.0) < 0.41);
    struct dp_ticket none = {0};
    world.waits = 0;
    assert_int_equal(dp_pull_wait(NULL, &none, NULL, NULL, NULL), DP_OK); /* nothing is in flight */
    assert_int_equal(world.waits, 0);
}

/* Planted: the first line after 10 s; each wait has its own count of 10 s; time without the rule counts. */
static void it_is_said_soon_and_then_now_and_then(void **state)
{
    begin(1);
    (void)waited(blocked, 1900);
    assert_int_equal(world.lines, 0);
    (void)waited(blocked, 14000);
    assert_int_equal(world.lines, 2);
    assert_in_range(world.line_ms[0], 2000, 2400);
    assert_in_range(world.line_ms[1], world.line_ms[0] + 10000, world.line_ms[0] + 10400);
    assert_string_equal(world.line, "waiting for 12 s, without a limit: step 4 waits");
    (void)waited(blocked, 7000); /* the next wait, less than 10 s after that line */
    assert_int_equal(world.lines, 2);
    begin(1);
    (void)waited(both, 9000);
    assert_int_equal(world.lines, 1);
    assert_in_range(world.line_ms[0], 7000, 7400);
    assert_string_equal(world.line, "waiting for 2 s, without a limit: step 4 waits");
}

static void says(const char *note, uint32_t worker, uint32_t looks, const char *behind)
{
    char line[512];
    begin(worker);
    world.note = note;
    (void)waited(blocked, 3000);
    assert_int_equal(world.looks, looks);
    (void)snprintf(line, sizeof line, "waiting for 2 s, without a limit: step 4 waits%s", behind);
    assert_string_equal(world.line, line);
}

/* Planted: no look at the note. */
static void the_note_is_said(void **state)
{
    says("{\"state\":\"failed\"}", 0, 1,
         "; worker 2 has failed, and its own messages say why: mend that, and start it again");
    says("{\"state\":\"stopped\"}", 0, 1, "; worker 2 was stopped: start it again");
    says("{\"state\":\"reading\"}", 0, 1, "; worker 2 is reading its data");
    says("{\"state\":\"training\"}", 0, 1, "");
    says("rubbish", 0, 1, "");
    says("", 0, 1, "");
    says(NULL, 0, 1, "");
    says("{\"state\":\"reading\"}", 2, 0, ""); /* itself: its own push is not answered yet */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_has_its_own_time),
        cmocka_unit_test(it_is_said_soon_and_then_now_and_then),
        cmocka_unit_test(the_note_is_said),
    };
    return cmocka_run_group_tests_name("pull_wait", tests, NULL, NULL);
}
