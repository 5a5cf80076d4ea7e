/* Goal    With backup members a step closes without up to so many of them, with room for it, and with what came before it is
 *         tried again. Crashes, late pushes and closes that a crash could take back are the simulator's (tests/sim).
 * Method  The members of sync_bed.h, some of which stay behind for a while. Where a close must stay short of durable, the journal's
 *         commits do nothing (journal_seam.h). */
#include "tests/lib/journal_seam.h"
#include "tests/unit/server/shard/sync_bed.h"

#include <string.h>

static bool stuck; /* the journal's disk */
void dp_seam_journal_commit(struct dp_journal *journal)
{
    if (!stuck)
        dp_journal_commit(journal);
}

/* For each step some stay behind: as many as there are backups, or fewer; then all come as far. */
static void train(struct sync *s, uint64_t seed, uint64_t steps)
{
    uint32_t all = (1u << s->members) - 1;
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t random = (seed * 31 + step * 7 + 3) * UINT64_C(0x9e3779b97f4a7c15);
        uint32_t behind = 0;
        for (uint32_t b = 0; b < s->backups; b++)
            behind |= 1u << (random >> (8 + 8 * b)) % s->members;
        sync_let(s, all & ~behind, step + 1);
        if (dp_sim_disk_is_off(s->bed.host.sim))
            return;
    }
    sync_train(s, steps);
}

static void test_closes_without_some(void **state)
{
    for (uint32_t members = 2; members <= 4; members++)
        for (uint32_t backups = 1; backups < members; backups++) {
            struct sync *s =
                sync_new_with_backups(members, backups, SYNC_STEPS, members, DP_DURABILITY_MACHINE);
            train(s, members, SYNC_STEPS);
            sync_check(s, SYNC_STEPS);
            assert_int_equal(bed_counter(&s->bed, "steps_closed"), SYNC_STEPS);
            assert_int_equal(bed_counter(&s->bed, "examples"), sync_examples(s, SYNC_STEPS));
            assert_true(bed_counter(&s->bed, "pushes_dropped") >= SYNC_STEPS / 2);
            sync_leave(s);
            assert_false(sync_restart(s));
            sync_check(s, SYNC_STEPS);
            sync_free(s);
        }
}

static uint64_t late_push(struct sync *s)
{
    bed_expect(&s->bed, bed_hello(&s->bed, 4, s->member[2].sequence, false), DP_OK);
    uint64_t id = sync_push(s, 2);
    bed_turn(&s->bed);
    return id;
}

static void let_go(struct sync *s)
{
    dp_fake_store_hold(s->bed.fake, s->holds_reads = false);
    bed_turn(&s->bed);
    bed_turn(&s->bed);
}

/* While the pushes of a complete step become durable, its close is got ready; what comes meanwhile is taken, too. */
static void test_push_before_the_others_are_durable(void **state)
{
    struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    uint64_t id[3];
    sync_fill(s);
    sync_train(s, 6);
    for (uint32_t rank = 0; rank < 3; rank++) {
        id[rank] = sync_pull(s, rank);
        s->member[rank].sequence++;
    }
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        sync_same(s, sync_reply(s, id[rank]), 6);
        memcpy(s->member[rank].weights, s->before[6], sizeof(sync_weights));
    }
    uint64_t closed = bed_counter(&s->bed, "steps_closed");
    stuck = true;
    for (uint32_t rank = 0; rank < 2; rank++)
        id[rank] = sync_push(s, rank);
    bed_turn(&s->bed);
    id[2] = sync_push(s, 2);
    bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), closed);
    stuck = false;
    bed_turn(&s->bed);
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        assert_false(bed_expect(&s->bed, id[rank], DP_OK)->reply.dropped);
        s->kept[6] |= 1u << rank;
        s->member[rank].step++;
        s->member[rank].sequence++;
    }
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), closed + 1);
    sync_check(s, 7);
    assert_int_equal(s->counted[6], 7);
    sync_free(s);
}

/* A member that is behind does not fill the journal while a complete step has yet to be closed, which takes room itself. Planted: it does,
 * and the step can never be closed. */
static void test_dropped_pushes_leave_room(void **state)
{
    struct sync *s = sync_gathered(3, 1, 6);
    const struct bed_reply *reply = NULL;
    uint32_t pushes = 0;
    dp_fake_store_fail(s->bed.fake, DP_STORE_READ, 1, DP_IO);
    let_go(s);
    for (; !reply || reply->reply.status == DP_OK; pushes++) {
        struct dp_request push = {.kind = DP_REQUEST_PUSH,
                                  .session = 600 + pushes,
                                  .sequence = 1,
                                  .stream = MEMBER_BED_STREAM,
                                  .number = 61000 + pushes,
                                  .rate = 1,
                                  .member = member_bed_member(2, 3)};
        assert_true(pushes < 300);
        bed_expect(&s->bed, bed_hello(&s->bed, push.session, 1, false), DP_OK);
        uint64_t id = bed_send(&s->bed, &push, NULL, 0);
        bed_turn(&s->bed);
        reply = sync_reply(s, id);
        assert_non_null(reply);
        assert_true(reply->reply.status == DP_AGAIN || reply->reply.dropped);
    }
    assert_true(pushes > 10);
    assert_int_equal(reply->reply.status, DP_AGAIN);
    assert_non_null(strstr(reply->reply.reason, "half of its journal is full until step 6 is closed"));
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    s->bed.now_ns += UINT64_C(1100000000);
    bed_turn(&s->bed);
    bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    uint64_t id = late_push(s);
    assert_true(bed_expect(&s->bed, id, DP_OK)->reply.dropped);
    s->dropped[6] = 4;
    sync_check(s, 7);
    sync_free(s);
}

/* One that cannot be closed now takes what comes meanwhile. */
static void test_push_before_it_is_tried_again(void **state)
{
    struct sync *s = sync_gathered(3, 1, 6);
    uint64_t id = late_push(s);
    dp_fake_store_fail(s->bed.fake, DP_STORE_READ, 1, DP_IO);
    let_go(s);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    assert_false(bed_expect(&s->bed, id, DP_OK)->reply.dropped);
    s->bed.now_ns += UINT64_C(1100000000);
    bed_turn(&s->bed);
    bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    s->kept[6] = 7;
    sync_check(s, 7);
    sync_free(s);
}

/* Stopped between two steps a store is closed cleanly, as nobody asks for old weights; within one its journal is kept. */
static void test_drain(void **state)
{
    struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    train(s, 5, 3);
    assert_false(sync_restart(s));
    sync_let(s, 2u, 4);
    assert_true(sync_restart(s));
    assert_true(sync_restart(s));
    sync_check(s, 3);
    train(s, 6, 6);
    sync_crash(s, DP_SIM_NOTHING, false);
    assert_false(sync_restart(s));
    sync_check(s, 6);
    sync_free(s);
}

/* A step that is complete by a view which is not durable yet will be closed: no later run begins before, and no shard has ended. */
static void test_complete_by_a_view(void **state)
{
    struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    sync_will_leave(s, 1, 2);
    sync_will_leave(s, 2, 2);
    sync_train(s, 2);
    sync_let(s, 1u, 3);
    stuck = true;
    s->view.view.number++;
    s->view.member[1].until = s->view.member[2].until = 2;
    (void)member_bed_put(&s->bed, &s->view);
    bed_turn(&s->bed);
    struct member_bed_view later = s->view;
    later.view.run++;
    uint64_t id = member_bed_put(&s->bed, &later);
    bed_turn(&s->bed);
    bed_expect_wait(&s->bed, id, DP_AGAIN, STEP);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 2);
    dp_shard_drain(s->bed.host.shard);
    bed_turn(&s->bed);
    stuck = false;
    assert_false(sync_restart(s));
    sync_check(s, 3);
    sync_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes_without_some),
        cmocka_unit_test(test_push_before_the_others_are_durable),
        cmocka_unit_test(test_dropped_pushes_leave_room),
        cmocka_unit_test(test_push_before_it_is_tried_again),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_complete_by_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
