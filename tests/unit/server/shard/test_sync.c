/* Goal    Members of a run in mode sync train on a shard as one loop over their sums would, bit for bit, and what
 *         it refuses. Crashes at every operation of the disk, and members that leave and return, are the simulator's (tests/sim).
 * Method  The members of sync_bed.h, whose every pull is compared with the plain loop. */
#include "tests/unit/server/shard/sync_bed.h"

#include "common/model/optimizer.h"

#include <string.h>

static void test_equals_a_plain_loop(void **state)
{
    for (uint32_t members = 1; members <= 4; members++) {
        struct sync *s = sync_new(members, SYNC_STEPS, members, DP_DURABILITY_MACHINE, 0);
        sync_train(s, SYNC_STEPS);
        sync_check(s, SYNC_STEPS);
        assert_int_equal(bed_counter(&s->bed, "steps_closed"), SYNC_STEPS);
        assert_int_equal(bed_counter(&s->bed, "examples"), sync_examples(s, SYNC_STEPS));
        sync_free(s);
    }
}

/* Sums and rows that overflow f32 stay finite, are counted, and are the plain loop's, after crashes too. */
static void test_rows_stay_finite(void **state)
{
    for (uint32_t crashes = 0; crashes < 2; crashes++) {
        struct sync *s = sync_new(3, SYNC_STEPS, 1, DP_DURABILITY_MACHINE, 0);
        sync_go_wild(s);
        assert_true(s->bounded > 10);
        sync_train(s, SYNC_STEPS / 2);
        if (crashes)
            sync_crash(s, DP_SIM_NOTHING, true);
        sync_train(s, SYNC_STEPS);
        sync_check(s, SYNC_STEPS);
        assert_true(dp_all_finite_f32(s->before, sizeof s->before / sizeof(float)));
        if (!crashes)
            assert_int_equal(bed_counter(&s->bed, "rows_bounded"), s->bounded);
        sync_free(s);
    }
}

/* Stopped within a step: not clean, and it goes on. */
static void test_drain_within_a_step(void **state)
{
    for (uint32_t pushes = 0; pushes < 3; pushes++) {
        struct sync *s = sync_new(3, 6, 1 + pushes, DP_DURABILITY_MACHINE, 0);
        sync_train(s, 2);
        sync_let(s, (1u << pushes) - 1, 3);
        assert_true(sync_restart(s));
        assert_true(sync_restart(s)); /* and again, with nothing in between */
        sync_check(s, 2);
        sync_train(s, 6);
        sync_check(s, 6);
        sync_leave(s);
        assert_false(sync_restart(s));
        sync_check(s, 6);
        sync_free(s);
    }
}

static struct sync *begun(uint32_t members, uint64_t steps)
{
    struct sync *s = sync_new(members, SYNC_STEPS, 1, DP_DURABILITY_MACHINE, 0);
    sync_train(s, steps);
    sync_let(s, 1u, steps + 1);
    assert_int_equal(s->member[0].step, steps + 1);
    return s;
}

static void refused(struct sync *s, uint32_t rank, uint64_t number, float rate, uint64_t step,
                    const char *says)
{
    uint64_t id = sync_push_with(s, rank, number, rate, step);
    bed_turn(&s->bed);
    const struct bed_reply *reply = bed_expect(&s->bed, id, DP_INVALID);
    if (!strstr(reply->reply.reason, says))
        fail_msg("'%s' does not say '%s'", reply->reply.reason, says);
    s->member[rank].sequence++;
}

/* What is refused uses up no number and changes nothing. */
static void test_refused(void **state)
{
    struct sync *s = begun(2, 1); /* worker 0 has pushed step 1 */
    sync_let(s, 2u, 1);
    refused(s, 1, 3, 0.5f, 1, "rate 0.5");
    refused(s, 1, 3, 0.135f, 0, "the next of worker 1 is step 1");
    refused(s, 1, 3, 0.135f, 2, "the next of worker 1 is step 1");
    refused(s, 0, 40, 0.135f, 1, "the next of worker 0 is step 2");
    sync_train(s, 3);
    sync_check(s, 3);
    sync_free(s);
}

/* Bounds of a step, checked as its pushes come. */
static void test_bounds(void **state)
{
    struct sync *s = sync_new(2, 4, 1, DP_DURABILITY_MACHINE, 1000);
    sync_view(s);
    sync_let(s, 3u, 0);
    refused(s, 0, 0, 0.125f, 0, "cache_bytes");
    sync_free(s);
}

/* Members 0 and 1 may have pushed step 2; the third does step 1 again, which is closed: the weights of then are there. */
static void go_on_within_step_2(struct sync *s)
{
    bed_expect(&s->bed, bed_hello(&s->bed, 4, 1, false), DP_OK);
    s->member[2].met = true;
    s->member[2].sequence = 1;
    s->member[2].step = 1;
    s->member[2].pulled = false;
    sync_view(s);
    uint64_t id = sync_pull(s, 2);
    for (uint32_t i = 0; i < 3; i++) /* its rows may have to be read */
        bed_turn(&s->bed);
    sync_same(s, bed_expect(&s->bed, id, DP_OK), 1);
    s->member[2].sequence++;
    s->member[2].step = 2;
    sync_train(s, 6);
    sync_check(s, 6);
    sync_leave(s);
    assert_false(sync_restart(s));
    sync_check(s, 6);
    sync_free(s);
}

/* Each opening that a record came to takes a segment of the journal: here a view, as of a worker that joins again. However often a shard is opened within a step, there is room to close it. */
static void test_many_openings_within_a_step(void **state)
{
    for (uint32_t how = 0; how < 8; how++) {
        struct sync *s = sync_new(3, 6, 1 + how, DP_DURABILITY_MACHINE, 0);
        sync_train(s, 2);
        sync_let(s, how & 1 ? 3u : 0, 3);
        for (uint32_t i = 0; i < 30; i++) {
            if (how & 2)
                assert_true(sync_restart(s));
            else
                sync_crash(s, i % 3 ? DP_SIM_NOTHING : DP_SIM_ALL, how & 4);
            sync_check(s, 2);
            s->view.view.number++;
            sync_view(s);
            if (how & 4)
                s->bed.now_ns += UINT64_C(31000000000);
            bed_turn(&s->bed);
        }
        go_on_within_step_2(s);
    }
}

/* Of a later run nothing of the one before is left. */
static void test_later_run(void **state)
{
    struct sync *s = begun(2, 2);
    uint64_t lsn_before = bed_counter(&s->bed, "steps_closed");
    s->view.view.run++;
    s->view.view.number = 1;
    sync_view(s);
    for (uint32_t i = 0; i < 3; i++)
        bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), lsn_before);
    sync_check(s, 2);
    sync_crash(s, DP_SIM_NOTHING, false);
    sync_check(s, 2);
    assert_false(sync_restart(s)); /* nobody has pushed */
    sync_check(s, 2);
    sync_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_a_plain_loop),
        cmocka_unit_test(test_rows_stay_finite),
        cmocka_unit_test(test_drain_within_a_step),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_later_run),
        cmocka_unit_test(test_many_openings_within_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
