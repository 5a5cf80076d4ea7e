/* Goal    Members of a run in mode sync train on a shard as one loop over their sums would, bit for bit, whatever crashes and whenever;
 *         nothing that was answered is lost, nothing counts twice.
 * Method  The members of sync_bed.h, whose every pull is compared with the plain loop. */
#include "tests/lib/timeouts.h"
#include "tests/unit/server/shard/sync_bed.h"

#include "common/model/optimizer.h"

#include <string.h>

static void test_equals_a_plain_loop(void **state)
{
    (void)state;
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
    (void)state;
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

struct how {
    uint32_t members;
    enum dp_durability durability;
    enum dp_sim_survival survival;
    bool with_workers;
    bool writes_back;
};

/* Cut at this operation of the disk. Workers go on with what they have and send again what was not answered or, with them, begin
 * their step anew. False: training ended before. */
static bool crash_at(const struct how *how, uint64_t operation)
{
    struct sync *s = sync_new(how->members, 6, operation, how->durability, 0);
    s->writes_back = how->writes_back;
    dp_sim_disk_cut_at(s->bed.host.sim, operation);
    sync_train(s, 6);
    bool cut = dp_sim_disk_is_off(s->bed.host.sim);
    if (cut) {
        sync_crash(s, how->survival, how->with_workers);
        sync_train(s, 6);
    }
    dp_sim_disk_cut_at(s->bed.host.sim, 0);
    sync_check(s, 6);
    sync_leave(s);
    bool kept = sync_restart(s);
    assert_false(kept);
    sync_check(s, 6);
    sync_free(s);
    return cut;
}

static void crash_everywhere(uint32_t members, enum dp_durability durability, enum dp_sim_survival survival,
                             bool with_workers)
{
    for (uint32_t writes_back = 0; writes_back < 2; writes_back++) {
        const struct how how = {members, durability, survival, with_workers, writes_back};
        uint64_t operation = 1 + (members + 3 * survival + writes_back) % dp_stride(7); /* others for each */
        while (crash_at(&how, operation))
            operation += dp_stride(7);
        assert_true(operation > 10);
    }
}

static void test_power_goes(void **state)
{
    (void)state;
    crash_everywhere(2, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, false);
    crash_everywhere(3, DP_DURABILITY_MACHINE, DP_SIM_RANDOM, false);
    crash_everywhere(2, DP_DURABILITY_MACHINE, DP_SIM_ALL, true);
    crash_everywhere(3, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, true);
}

static void test_process_dies(void **state)
{
    (void)state;
    crash_everywhere(2, DP_DURABILITY_PROCESS, DP_SIM_PROCESS, false);
    crash_everywhere(3, DP_DURABILITY_PROCESS, DP_SIM_PROCESS, true);
    crash_everywhere(2, DP_DURABILITY_MACHINE, DP_SIM_PROCESS, true);
}

/* Many crashes of one training, at any time. */
static void test_crashes_again_and_again(void **state)
{
    uint32_t crashes = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct sync *s = sync_new(2 + (uint32_t)(seed % 3), SYNC_STEPS, seed, DP_DURABILITY_MACHINE, 0);
        s->writes_back = true;
        for (uint64_t cut = seed;; cut = cut * 7 % 53 + 1) {
            dp_sim_disk_cut_at(s->bed.host.sim, cut);
            sync_train(s, SYNC_STEPS);
            if (!dp_sim_disk_is_off(s->bed.host.sim))
                break;
            sync_crash(s, (enum dp_sim_survival)(cut % 3), cut % 2);
            assert_true(s->crashes < 400);
        }
        dp_sim_disk_cut_at(s->bed.host.sim, 0);
        crashes += s->crashes;
        sync_check(s, SYNC_STEPS);
        sync_free(s);
    }
    assert_true(crashes > 60);
}

/* A shard has closed a step that another has not: the member that does it again gets the weights of then, after a crash of the
 * shard too, and after its rows were written back. */
static void test_torn_step(void **state)
{
    (void)state;
    for (uint32_t crashes = 0; crashes < 4; crashes++) {
        struct sync *s = sync_new(2, 4, 1 + crashes, DP_DURABILITY_MACHINE, 0);
        sync_train(s, 2);
        sync_check(s, 2);
        for (uint32_t i = 0; i < 3 && crashes >= 2; i++) {
            s->bed.now_ns += UINT64_C(31000000000);
            bed_turn(&s->bed);
        }
        if (crashes >= 2)
            assert_true(bed_counter(&s->bed, "write_back_cycles") > 0);
        if (crashes % 2)
            sync_crash(s, DP_SIM_NOTHING, false);
        for (uint32_t rank = 0; rank < 2; rank++) {
            struct sync_member *member = &s->member[rank];
            if (!member->met)
                bed_expect(&s->bed, bed_hello(&s->bed, 2 + rank, member->sequence, false), DP_OK);
            member->met = true;
            member->step = 1;
            uint64_t id = sync_pull(s, rank);
            bed_turn(&s->bed);
            sync_same(s, bed_expect(&s->bed, id, DP_OK), 1);
            assert_int_equal(bed_expect(&s->bed, id, DP_OK)->reply.open, 1);
            member->sequence++;
            member->step = 0; /* too old */
            id = sync_pull(s, rank);
            bed_turn(&s->bed);
            bed_expect(&s->bed, id, DP_INVALID);
            member->sequence++;
            member->step = 2;
        }
        sync_train(s, 4);
        sync_check(s, 4);
        sync_free(s);
    }
}

/* Stopped within a step: not clean, and it goes on. */
static void test_drain_within_a_step(void **state)
{
    (void)state;
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

/* Sent again after its answer was lost, or by a process that does its step again: kept once. */
static void test_repeated_push(void **state)
{
    (void)state;
    struct sync *s = begun(2, 1);
    for (uint32_t i = 0; i < 3; i++) {
        s->member[0].step = 1;
        uint64_t id = sync_push(s, 0);
        bed_turn(&s->bed);
        assert_true(bed_expect(&s->bed, id, DP_OK)->reply.repeated);
        s->member[0].sequence++;
        if (i == 1)
            sync_crash(s, DP_SIM_NOTHING, false);
        if (i == 1)
            bed_expect(&s->bed, bed_hello(&s->bed, 2, s->member[0].sequence, false), DP_OK);
        s->member[0].met = true;
    }
    s->member[0].step = 2;
    sync_train(s, 4);
    sync_check(s, 4);
    sync_free(s);
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
    (void)state;
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

/* A step is kept once it is open, so that no two of them overlap in the journal. */
static void test_early_push(void **state)
{
    (void)state;
    struct sync *s = begun(2, 1); /* worker 0 has pushed step 1 */
    for (int i = 0; i < 2; i++) {
        uint64_t id = sync_push(s, 0);
        bed_turn(&s->bed);
        const struct bed_reply *reply = bed_expect(&s->bed, id, DP_AGAIN);
        assert_true(reply->reply.wait.reason == DP_WAIT_STEP && reply->reply.wait.subject == 1);
    }
    sync_train(s, 4);
    sync_check(s, 4);
    sync_free(s);
}

/* Whoever has left is waited for no more, with his last push or before the others have come as far. */
static void test_one_leaves(void **state)
{
    (void)state;
    for (uint32_t how = 0; how < 8; how++) {
        struct sync *s = sync_new(3, SYNC_STEPS, 1 + how, DP_DURABILITY_MACHINE, 0);
        sync_will_leave(s, 1, 5);
        sync_train(s, 4);
        sync_let(s, how & 1 ? 2u : 7u, 5);
        assert_int_equal(bed_counter(&s->bed, "steps_closed"), how & 1 ? 4 : 5);
        sync_leave_one(s, 1);
        if (how & 2)
            sync_crash(s, DP_SIM_NOTHING, how & 4);
        sync_train(s, SYNC_STEPS);
        sync_check(s, SYNC_STEPS);
        s->view.view.number++;
        for (uint32_t rank = 0; rank < 3; rank += 2)
            s->view.member[rank].until = SYNC_STEPS;
        sync_view(s);
        assert_false(sync_restart(s));
        sync_check(s, SYNC_STEPS);
        sync_free(s);
    }
}

/* It may have pushed the open step before it left: then that has it, though it is back by a later view when the step closes. */
static void test_one_returns(void **state)
{
    (void)state;
    for (uint32_t how = 0; how < 16; how++) {
        struct sync *s = sync_new(3, SYNC_STEPS, 1 + how, DP_DURABILITY_MACHINE, 0);
        sync_will_leave(s, 1, 5);
        sync_will_return(s, 1, 8);
        sync_train(s, 4);
        sync_let(s, how & 1 ? 2u : 7u, 5);
        assert_int_equal(bed_counter(&s->bed, "steps_closed"), how & 1 ? 4 : 5);
        sync_leave_one(s, 1);
        sync_return_one(s, 1);
        if (how & 2)
            assert_true(sync_restart(s)); /* by the marks */
        if (how & 4)
            sync_crash(s, DP_SIM_NOTHING, how & 8);
        sync_let(s, 5, SYNC_STEPS);
        assert_int_equal(s->member[0].step, 9); /* step 8 waits for it */
        sync_train(s, SYNC_STEPS);
        sync_check(s, SYNC_STEPS);
        sync_leave(s);
        assert_false(sync_restart(s));
        sync_check(s, SYNC_STEPS);
        sync_free(s);
    }
}

/* All others leave: what is nobody's step is skipped, after a crash too. */
static void test_one_returns_alone(void **state)
{
    (void)state;
    for (uint32_t how = 0; how < 8; how++) {
        struct sync *s = sync_new(2, SYNC_STEPS, 1 + how, DP_DURABILITY_MACHINE, 0);
        sync_will_leave(s, 0, 5);
        sync_will_leave(s, 1, 4);
        sync_will_return(s, 1, 8);
        sync_train(s, 4);
        sync_leave_one(s, 1);
        sync_return_one(s, 1);
        sync_let(s, 1, 5);
        if (how & 1)
            sync_crash(s, DP_SIM_NOTHING, false);
        sync_leave_one(s, 0);
        if (how & 2)
            sync_crash(s, DP_SIM_NOTHING, false);
        if (how & 4)
            (void)sync_restart(s);
        sync_train(s, SYNC_STEPS);
        sync_check(s, SYNC_STEPS);
        assert_int_equal(s->member[1].step, SYNC_STEPS);
        sync_free(s);
    }
}

/* Bounds of a step, checked as its pushes come. */
static void test_bounds(void **state)
{
    (void)state;
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
    (void)state;
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

/* Within one opening views fill it. False: nothing was cut. */
static bool crash_while_views_come(uint64_t operation)
{
    struct sync *s = sync_new(3, 6, operation, DP_DURABILITY_MACHINE, 0);
    sync_train(s, 2);
    sync_let(s, operation & 1 ? 3u : 0, 3);
    dp_sim_disk_cut_at(s->bed.host.sim, operation);
    for (uint32_t i = 0; i < 150 && !dp_sim_disk_is_off(s->bed.host.sim); i++) {
        s->view.view.number++;
        (void)member_bed_put(&s->bed, &s->view);
        bed_turn(&s->bed);
    }
    bool cut = dp_sim_disk_is_off(s->bed.host.sim);
    sync_crash(s, (enum dp_sim_survival)(operation % 3), operation & 2);
    go_on_within_step_2(s);
    return cut;
}

static void test_crashes_while_it_is_appended_anew(void **state)
{
    uint64_t operation = 100; /* half of the journal is full somewhat later */
    (void)state;
    while (crash_while_views_come(operation))
        operation += 3;
    assert_true(operation > 300);
}

/* Of a later run nothing of the one before is left. */
static void test_later_run(void **state)
{
    (void)state;
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
        cmocka_unit_test(test_power_goes),
        cmocka_unit_test(test_process_dies),
        cmocka_unit_test(test_crashes_again_and_again),
        cmocka_unit_test(test_torn_step),
        cmocka_unit_test(test_drain_within_a_step),
        cmocka_unit_test(test_repeated_push),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_early_push),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_later_run),
        cmocka_unit_test(test_many_openings_within_a_step),
        cmocka_unit_test(test_crashes_while_it_is_appended_anew),
        cmocka_unit_test(test_one_leaves),
        cmocka_unit_test(test_one_returns),
        cmocka_unit_test(test_one_returns_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
