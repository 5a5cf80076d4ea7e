/* Goal    a worker learns while it computes that its step was committed without it: from the answer of the
 *         pull of the next step, and from nothing else; it looks at most once a millisecond. It continues at
 *         the greatest step that a pull told, and never back.
 * Method  a client that answers what a script says, and a clock that the test moves. */
#include "tests/lib/test.h"
#include "worker/loop/skipped_steps.h"

#include <string.h>

#define MS UINT64_C(1000000)

static struct {
    uint64_t now_ns, open;
    enum dp_status answer;
    unsigned asked;
} world;

static uint64_t now_of(void *self)
{
    return world.now_ns;
}

enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err);
enum dp_status __wrap_dp_client_wait(struct dp_client *client, struct dp_ticket *ticket, uint32_t timeout_ms,
                                     struct dp_outcome *outcome, struct dp_error *err)
{
    assert_true(timeout_ms == 0 && ticket->id == 7);
    world.asked++;
    if (world.answer == DP_OK) {
        outcome->open = world.open;
        ticket->id = 0;
        return DP_OK;
    }
    return dp_fail(err, world.answer, "as the script says");
}

struct bed {
    struct dp_job job;
    struct dp_skipped skipped;
    struct dp_ticket pull;
    struct dp_late late;
};

static void set_up(struct bed *b)
{
    memset(&world, 0, sizeof world);
    *b = (struct bed){.job.clock = {now_of, NULL}, .pull.id = 7};
    b->late = (struct dp_late){.job = &b->job, .skipped = &b->skipped};
    world.answer = DP_TIMEOUT;
    dp_late_begin(&b->late, &b->pull, 12);
}

/* Planted: a pull that is held makes it late; the open step is not heard; each call asks. */
static void the_answer_of_the_next_pull_says_so(void **state)
{
    struct bed b;
    set_up(&b);
    for (int i = 0; i < 100; i++) {
        world.now_ns += MS / 4;
        assert_false(dp_late_look(&b.late));
    }
    assert_int_equal(world.asked, 25);
    world.answer = DP_OK;
    world.open = 15;
    world.now_ns += MS;
    assert_true(dp_late_look(&b.late) && b.late.failed == DP_OK && b.pull.id == 0);
    assert_true(dp_skipped_is(&b.skipped, 14) && !dp_skipped_is(&b.skipped, 15));
    world.now_ns += 10 * MS;
    assert_true(dp_late_look(&b.late)); /* it stays so, and asks no more */
    assert_int_equal(world.asked, 26);
    dp_late_begin(&b.late, &b.pull, 13); /* the pull was answered: nothing is on its way */
    world.now_ns += MS;
    assert_false(dp_late_look(&b.late));
    dp_late_begin(&b.late, NULL, 0);
    world.now_ns += MS;
    assert_false(dp_late_look(&b.late));
    assert_int_equal(world.asked, 26);
}

/* Planted: a refused pull is waited for again, under a ticket that was used up. */
static void a_pull_that_fails_ends_the_computing(void **state)
{
    struct bed b;
    set_up(&b);
    world.answer = DP_REPLACED;
    world.now_ns += MS;
    assert_true(dp_late_look(&b.late) && b.late.failed == DP_REPLACED && b.pull.id == 0);
    assert_string_equal(b.late.err.text, "as the script says");
    assert_false(dp_skipped_is(&b.skipped, 0));
    set_up(&b);
    world.answer = DP_UNAVAILABLE; /* it may come yet */
    world.now_ns += MS;
    assert_true(!dp_late_look(&b.late) && b.pull.id == 7);
}

/* Planted: a later pull takes the open step back; the open step itself is skipped. */
static void the_open_step_only_rises(void **state)
{
    const struct dp_clock clock = {now_of, NULL};
    world.now_ns = 1;
    struct dp_skipped skipped = {0};
    assert_false(dp_skipped_is(&skipped, 0));
    dp_skipped_hears(&skipped, 5, 0, &clock); /* another mode */
    dp_skipped_hears(&skipped, 5, 5, &clock); /* as it asked */
    assert_false(dp_skipped_is(&skipped, 0));
    dp_skipped_hears(&skipped, 5, 9, &clock);
    assert_true(dp_skipped_is(&skipped, 8));
    assert_false(dp_skipped_is(&skipped, 9));
    dp_skipped_hears(&skipped, 6, 7, &clock); /* issued before; another shard answered last */
    assert_true(dp_skipped_is(&skipped, 8));
    dp_skipped_hears(&skipped, 9, 10, &clock);
    assert_true(dp_skipped_is(&skipped, 9));
    assert_false(dp_skipped_is(&skipped, 10));
    assert_true(skipped.told_ns == 1);
    world.now_ns += UINT64_C(9000000000);
    dp_skipped_hears(&skipped, 10, 11, &clock);
    assert_true(skipped.told_ns == 1); /* the log is not filled with it */
    world.now_ns += UINT64_C(1000000000);
    dp_skipped_hears(&skipped, 11, 12, &clock);
    assert_true(skipped.told_ns == world.now_ns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_of_the_next_pull_says_so),
        cmocka_unit_test(a_pull_that_fails_ends_the_computing),
        cmocka_unit_test(the_open_step_only_rises),
    };
    return cmocka_run_group_tests_name("skipped_steps", tests, NULL, NULL);
}
