/* Goal    whom a held pull waits for is said after 2 s and then every 10 s, with what that worker's note says of it.
 * Method  a clock of the test's, notes that it sets, and the lines that went to the log. */
#include "tests/lib/test.h"
#include "worker/loop/awaited.h"

#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define S UINT64_C(1000000000)

static struct {
    const char *note; /* of worker 2; NULL: the first server does not answer */
    char line[512];
    uint32_t lines, looks;
} world;

void __wrap_dp_log(enum dp_log_level level, const char *format, ...);
void __wrap_dp_log(enum dp_log_level level, const char *format, ...)
{
    va_list args;
    assert_int_equal(level, DP_LOG_WARN);
    va_start(args, format);
    (void)vsnprintf(world.line, sizeof world.line, format, args);
    va_end(args);
    world.lines++;
}

static enum dp_status notes(void *self, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err)
{
    (void)self;
    assert_string_equal(prefix, "run/7/progress/2.");
    assert_true(timeout_ms <= 1000);
    world.looks++;
    if (!world.note)
        return dp_fail(err, DP_TIMEOUT, "no answer");
    if (world.note[0])
        visit(context, "run/7/progress/2.", world.note, strlen(world.note));
    return DP_OK;
}

static struct dp_cluster cluster = {.training.run = 7};
static const struct dp_shared_ops ops = {.notes = notes};

static struct dp_job job_of(uint32_t worker)
{
    return (struct dp_job){.cluster = &cluster, .worker = worker, .shared = {&ops, &world}};
}

static struct dp_error held_by(uint64_t worker)
{
    struct dp_error told = {0};
    const struct dp_wait wait = {DP_WAIT_STEP, worker, 3, 4};
    (void)dp_fail_wait(&told, DP_TIMEOUT, wait, "step 4 waits");
    return told;
}

/* Planted: the first line after 10 s; each wait has its own count of 10 s; time without the rule counts. */
static void it_is_said_soon_and_then_now_and_then(void **state)
{
    (void)state;
    struct dp_job job = job_of(0);
    struct dp_awaited awaited = {0};
    const struct dp_error held = held_by(2), other = {.wait.reason = DP_WAIT_OPENING};
    world.note = "";
    world.lines = 0;
    for (uint64_t ms = 1000; ms < 3000; ms += 200) {
        dp_awaited_hear(&awaited, &job, ms * 1000000, &held);
        assert_int_equal(world.lines, 0);
        assert_string_equal(job.awaited, "");
    }
    dp_awaited_hear(&awaited, &job, 3 * S, &held);
    assert_int_equal(world.lines, 1);
    assert_string_equal(job.awaited, "step 4 waits"); /* for the progress note */
    dp_awaited_end(&job);
    assert_string_equal(job.awaited, "");
    assert_string_equal(world.line, "waiting for 2 s, without a limit: step 4 waits");
    dp_awaited_hear(&awaited, &job, 12 * S, &held);
    assert_int_equal(world.lines, 1);
    dp_awaited_hear(&awaited, &job, 13 * S, &held);
    assert_int_equal(world.lines, 2);
    assert_string_equal(world.line, "waiting for 12 s, without a limit: step 4 waits");
    awaited = (struct dp_awaited){0}; /* the next wait */
    dp_awaited_hear(&awaited, &job, 14 * S, &held);
    dp_awaited_hear(&awaited, &job, 22 * S, &held);
    assert_int_equal(world.lines, 2);
    dp_awaited_hear(&awaited, &job, 23 * S, &other);
    dp_awaited_hear(&awaited, &job, 24 * S, &held);
    assert_int_equal(world.lines, 2);
    dp_awaited_hear(&awaited, &job, 26 * S, &held);
    assert_int_equal(world.lines, 3);
    assert_string_equal(world.line, "waiting for 2 s, without a limit: step 4 waits");
}

static void says(const char *note, uint32_t worker, uint32_t looks, const char *behind)
{
    struct dp_job job = job_of(worker);
    struct dp_awaited awaited = {.since_ns = S};
    const struct dp_error held = held_by(2);
    char line[512];
    world.note = note;
    world.looks = 0;
    dp_awaited_hear(&awaited, &job, 3 * S, &held);
    assert_int_equal(world.looks, looks);
    (void)snprintf(line, sizeof line, "waiting for 2 s, without a limit: step 4 waits%s", behind);
    assert_string_equal(world.line, line);
}

/* Planted: no look at the note. */
static void the_note_is_said(void **state)
{
    (void)state;
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
        cmocka_unit_test(it_is_said_soon_and_then_now_and_then),
        cmocka_unit_test(the_note_is_said),
    };
    return cmocka_run_group_tests_name("awaited", tests, NULL, NULL);
}
