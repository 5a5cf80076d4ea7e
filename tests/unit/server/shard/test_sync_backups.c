/* Goal    With backup members a step closes without up to so many of them, whatever crashes and whenever: it takes each push that was
 *         answered as taken and none that was dropped, and nothing shows a close that a crash could take back.
 * Method  The members of sync_bed.h, some of which stay behind for a while. Where a close must stay short of durable, the journal's
 *         commits do nothing (journal_seam.h). */
#include "tests/lib/journal_seam.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/server/shard/sync_bed.h"

#include <string.h>

static bool stuck;        /* the journal's disk */
static uint32_t takes;    /* so many appends, and is behind then for the next one; 0: all */
static uint32_t appended; /* since it was behind last */

enum dp_status dp_seam_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                      uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    if (takes == 0 || appended++ < takes)
        return dp_journal_append(journal, pieces, count, lsn, err);
    appended = 0;
    return dp_fail(err, DP_BEHIND, "journal: the disk has not taken 16 MiB yet that were appended");
}

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
    (void)state;
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

struct how {
    uint32_t members, backups;
    enum dp_durability durability;
    enum dp_sim_survival survival;
    bool with_workers;
    bool writes_back;
};

/* As test_sync.c does. False: training ended before. */
static bool crash_at(const struct how *how, uint64_t operation)
{
    struct sync *s = sync_new_with_backups(how->members, how->backups, 6, operation, how->durability);
    s->writes_back = how->writes_back;
    dp_sim_disk_cut_at(s->bed.host.sim, operation);
    train(s, operation, 6);
    bool cut = dp_sim_disk_is_off(s->bed.host.sim);
    if (cut) {
        sync_crash(s, how->survival, how->with_workers);
        train(s, operation + 1, 6);
    }
    dp_sim_disk_cut_at(s->bed.host.sim, 0);
    sync_check(s, 6);
    sync_leave(s);
    assert_false(sync_restart(s));
    sync_check(s, 6);
    sync_free(s);
    return cut;
}

static void crash_everywhere(struct how how)
{
    uint64_t operation = 1 + (how.members + 3 * how.survival + how.writes_back) % dp_stride(7);
    while (crash_at(&how, operation))
        operation += dp_stride(7);
    assert_true(operation > 10);
}

static void test_power_goes(void **state)
{
    (void)state;
    crash_everywhere((struct how){2, 1, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, false, true});
    crash_everywhere((struct how){3, 1, DP_DURABILITY_MACHINE, DP_SIM_RANDOM, false, false});
    crash_everywhere((struct how){3, 2, DP_DURABILITY_MACHINE, DP_SIM_ALL, true, true});
    crash_everywhere((struct how){4, 1, DP_DURABILITY_MACHINE, DP_SIM_NOTHING, true, false});
}

static void test_process_dies(void **state)
{
    (void)state;
    crash_everywhere((struct how){3, 1, DP_DURABILITY_PROCESS, DP_SIM_PROCESS, false, true});
    crash_everywhere((struct how){3, 2, DP_DURABILITY_MACHINE, DP_SIM_PROCESS, true, false});
}

/* Member 2 of three has pulled this step, the others have pushed it; it is not closed: opened again while the store holds reads. */
static struct sync *gathered(uint64_t step)
{
    struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    uint64_t id[3];
    sync_fill(s);
    sync_train(s, step);
    s->bed.now_ns += UINT64_C(31000000000);
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        id[rank] = sync_pull(s, rank);
        s->member[rank].sequence++;
    }
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < 3; rank++) {
        sync_same(s, sync_reply(s, id[rank]), step);
        memcpy(s->member[rank].weights, s->before[step], sizeof(sync_weights));
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        id[rank] = sync_push(s, rank);
    (void)bed_one_turn(&s->bed);
    for (uint32_t rank = 0; rank < 2; rank++) {
        bed_expect(&s->bed, id[rank], DP_OK); /* so both are durable */
        s->kept[step] |= 1u << rank;
        s->member[rank].step++;
    }
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), step);
    dp_fake_store_hold(s->bed.fake, s->holds_reads = true);
    sync_crash(s, DP_SIM_NOTHING, false);
    return s;
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

/* What comes while the step is being closed waits for that, and is dropped. */
static void test_push_beside_the_close(void **state)
{
    (void)state;
    struct sync *s = gathered(6);
    uint64_t id = late_push(s);
    assert_null(sync_reply(s, id));
    let_go(s);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    const struct dp_reply *reply = &bed_expect(&s->bed, id, DP_OK)->reply;
    assert_true(reply->dropped && !reply->repeated);
    assert_int_equal(bed_counter(&s->bed, "pushes_dropped"), 1);
    s->dropped[6] = 4;
    sync_check(s, 7);
    assert_int_equal(s->counted[6], 3);
    sync_free(s);
}

/* While the pushes of a complete step become durable, its close is got ready; what comes meanwhile is taken, too. */
static void test_push_before_the_others_are_durable(void **state)
{
    (void)state;
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
    (void)state;
    struct sync *s = gathered(6);
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
    (void)state;
    struct sync *s = gathered(6);
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

/* A push of a step that was closed without it uses up its number, for good, and changes nothing. */
static void test_late_push(void **state)
{
    (void)state;
    struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    sync_train(s, 2);
    uint64_t id = sync_pull(s, 2);
    bed_turn(&s->bed);
    sync_same(s, bed_expect(&s->bed, id, DP_OK), 2);
    memcpy(s->member[2].weights, s->before[2], sizeof(sync_weights));
    s->member[2].sequence++;
    sync_let(s, 3u, 4);
    uint64_t rows = bed_counter(&s->bed, "push_rows"), pushes = bed_counter(&s->bed, "pushes");
    for (uint32_t time = 0; time < 4; time++) {
        id = sync_push(s, 2);
        bed_turn(&s->bed);
        const struct dp_reply *reply = &bed_expect(&s->bed, id, DP_OK)->reply;
        assert_true(reply->dropped == (time == 0) && reply->repeated == (time > 0));
        s->member[2].sequence++;
        if (time == 0)
            assert_true(bed_counter(&s->bed, "push_rows") == rows &&
                        bed_counter(&s->bed, "pushes") == pushes);
        if (time == 1 || time == 2) {
            if (time == 2) { /* what is in the store by then is not replayed */
                s->bed.now_ns += UINT64_C(31000000000);
                bed_turn(&s->bed);
            }
            sync_crash(s, DP_SIM_NOTHING, false);
            bed_expect(&s->bed, bed_hello(&s->bed, 4, s->member[2].sequence, false), DP_OK);
        }
    }
    s->dropped[2] |= 4;
    s->member[2].step = 5; /* each of its steps once, in order */
    id = sync_push_empty(s, 2);
    bed_turn(&s->bed);
    assert_non_null(strstr(bed_expect(&s->bed, id, DP_INVALID)->reply.reason, "is step 3"));
    s->member[2].sequence++;
    s->member[2].step = 3;
    s->member[2].met = true;
    sync_let(s, 4u, 5); /* it hears the open step, and goes on there */
    assert_true(s->member[2].open == 4 && s->member[2].step == 5);
    sync_train(s, 6);
    sync_check(s, 6);
    sync_free(s);
}

/* Nothing shows a close before it is durable: pulls wait, whoever would see it otherwise hears AGAIN. */
static void test_close_that_is_not_durable(void **state)
{
    (void)state;
    for (uint32_t fails = 0; fails < 2; fails++) {
        struct sync *s = sync_new_with_backups(3, 1, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
        sync_train(s, 2);
        uint64_t closed = bed_counter(&s->bed, "steps_closed"), id[3];
        uint64_t first = sync_pull(s, 0), second = sync_pull(s, 1);
        bed_turn(&s->bed);
        sync_same(s, bed_expect(&s->bed, first, DP_OK), 2);
        bed_expect(&s->bed, second, DP_OK);
        for (uint32_t rank = 0; rank < 2; rank++) {
            s->member[rank].sequence++;
            memcpy(s->member[rank].weights, s->before[2], sizeof(sync_weights));
            id[rank] = sync_push(s, rank);
        }
        (void)bed_one_turn(&s->bed); /* they are durable; the close comes next */
        stuck = true;
        id[2] = sync_pull(s, 2);
        uint64_t nobody = bed_pull(&s->bed, 1, s->sequence++, "s", s->mixed, SYNC_KEYS);
        bed_turn(&s->bed);
        assert_int_equal(bed_counter(&s->bed, "steps_closed"), closed + 1);
        s->view.view.number++;
        uint64_t view = member_bed_put(&s->bed, &s->view);
        bed_turn(&s->bed);
        assert_true(!sync_reply(s, id[2]) && !sync_reply(s, nobody));
        bed_expect_wait(&s->bed, view, DP_AGAIN, STEP);
        stuck = false;
        if (fails)
            dp_sim_disk_cut_at(s->bed.host.sim, 1);
        for (uint32_t i = 0; i < 3; i++) {
            s->bed.now_ns += UINT64_C(1000000000);
            bed_turn(&s->bed);
        }
        const struct bed_reply *reply = bed_expect(&s->bed, nobody, fails ? DP_AGAIN : DP_OK);
        assert_true(fails || reply->reply.open == 3);
        reply = bed_expect(&s->bed, id[2], fails ? DP_AGAIN : DP_OK);
        assert_true(fails || reply->reply.open == 3);
        dp_sim_disk_cut_at(s->bed.host.sim, 0);
        sync_free(s);
    }
}

/* Who leaves is no backup, and no member of a step that is waited for. */
static void test_some_leave(void **state)
{
    (void)state;
    struct sync *s = sync_new_with_backups(4, 2, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    for (uint32_t rank = 1; rank < 4; rank++)
        sync_will_leave(s, rank, 4);
    sync_train(s, 4);
    sync_let(s, 1u, 6);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 4); /* one of four is too few */
    for (uint32_t rank = 1; rank < 4; rank++) {
        sync_leave_one(s, rank);
        if (rank == 2)
            sync_crash(s, DP_SIM_NOTHING, false);
    }
    sync_train(s, 8); /* and one of one is enough */
    sync_check(s, 8);
    sync_free(s);
}

/* Stopped between two steps a store is closed cleanly, as nobody asks for old weights; within one its journal is kept. */
static void test_drain(void **state)
{
    (void)state;
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
    (void)state;
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

/* What is kept of an open step goes into the journal anew though the disk is behind now and then, each push once. */
static void test_appended_anew_bit_by_bit(void **state)
{
    (void)state;
    for (uint32_t backups = 0; backups < 2; backups++) {
        struct sync *s = sync_new_with_backups(4, backups, 6, 1, DP_DURABILITY_MACHINE);
        uint32_t pushed = backups ? 3u : 7u; /* one is missing */
        sync_train(s, 2);
        sync_let(s, pushed, 3);
        for (uint32_t i = 0; i < 200; i++) {
            takes = 1 + i % 2;
            s->view.view.number++;
            (void)member_bed_put(&s->bed, &s->view);
            for (uint32_t turns = 0; turns < 4; turns++) {
                s->bed.now_ns += UINT64_C(20000000);
                bed_turn(&s->bed);
            }
        }
        takes = 0;
        sync_view(s);
        if (backups)
            sync_crash(s, DP_SIM_NOTHING, false);
        sync_train(s, 6);
        sync_check(s, 6);
        sync_leave(s);
        assert_false(sync_restart(s));
        sync_check(s, 6);
        sync_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closes_without_some),
        cmocka_unit_test(test_power_goes),
        cmocka_unit_test(test_process_dies),
        cmocka_unit_test(test_push_beside_the_close),
        cmocka_unit_test(test_push_before_the_others_are_durable),
        cmocka_unit_test(test_dropped_pushes_leave_room),
        cmocka_unit_test(test_push_before_it_is_tried_again),
        cmocka_unit_test(test_late_push),
        cmocka_unit_test(test_close_that_is_not_durable),
        cmocka_unit_test(test_some_leave),
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_appended_anew_bit_by_bit),
        cmocka_unit_test(test_complete_by_a_view),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
