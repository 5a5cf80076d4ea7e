/* Goal    a worker learns while it computes that its step was closed without it: from the answer of the pull of the next step, and from nothing
 *         else; it looks at most once a millisecond.
 * Method  a client that answers what a script says, and a clock that the test moves. */
#include "tests/lib/test.h"
#include "worker/loop/late.h"

#include <string.h>

#define MS UINT64_C(1000000)

static struct {
    uint64_t now_ns, open;
    enum dp_status answer;
    unsigned asked;
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
    struct dp_behind behind;
    struct dp_ticket pull;
    struct dp_late late;
};

static void set_up(struct bed *b)
{
    memset(&world, 0, sizeof world);
    *b = (struct bed){.job.clock = {now_of, NULL}, .pull.id = 7};
    b->late = (struct dp_late){.job = &b->job, .behind = &b->behind};
    world.answer = DP_TIMEOUT;
    dp_late_begin(&b->late, &b->pull, 12);
}

/* Planted: a pull that is held makes it late; the open step is not heard; each call asks. */
static void the_answer_of_the_next_pull_says_so(void **state)
{
    (void)state;
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
    assert_true(dp_behind_is(&b.behind, 14) && !dp_behind_is(&b.behind, 15));
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
    (void)state;
    struct bed b;
    set_up(&b);
    world.answer = DP_REPLACED;
    world.now_ns += MS;
    assert_true(dp_late_look(&b.late) && b.late.failed == DP_REPLACED && b.pull.id == 0);
    assert_string_equal(b.late.err.text, "as the script says");
    assert_false(dp_behind_is(&b.behind, 0));
    set_up(&b);
    world.answer = DP_UNAVAILABLE; /* it may come yet */
    world.now_ns += MS;
    assert_true(!dp_late_look(&b.late) && b.pull.id == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_of_the_next_pull_says_so),
        cmocka_unit_test(a_pull_that_fails_ends_the_computing),
    };
    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
