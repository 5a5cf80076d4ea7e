/* Goal    What stands between a synchronous step and its close: rows that must be read, or cannot be; a journal that others fill; a
 *         store that is open read-only.
 * Method  The members of sync_bed.h, on a store that holds or fails its reads. */
#include "tests/unit/server/shard/sync_bed.h"

#include "server/shard/shard_state.h"

#include <math.h>
#include <string.h>

#define ALL 0xfu

static uint64_t pull_of_nobody(struct sync *s)
{
    uint64_t id = bed_pull(&s->bed, 1, s->sequence++, "s", s->mixed, SYNC_KEYS);
    bed_turn(&s->bed);
    return id;
}

/* It closes by itself when it is opened, and all pulls wait for that. */
static void test_rows_are_read(void **state)
{
    struct sync *s = sync_gathered(2, 0, 6);
    uint64_t id = pull_of_nobody(s);
    assert_null(sync_reply(s, id));
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    dp_fake_store_hold(s->bed.fake, false);
    bed_turn(&s->bed);
    bed_turn(&s->bed);
    bed_expect(&s->bed, id, DP_OK);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    sync_check(s, 7);
    sync_train(s, 9);
    sync_check(s, 9);
    sync_free(s);
}

/* A step that is complete may be closed elsewhere: the run that comes next does not take it away. */
static void test_next_run_waits(void **state)
{
    struct sync *s = sync_gathered(2, 0, 6);
    s->view.view.run++;
    s->view.view.number = 1;
    uint64_t id = member_bed_put(&s->bed, &s->view);
    bed_turn(&s->bed);
    assert_int_equal(bed_expect(&s->bed, id, DP_AGAIN)->reply.wait.reason, DP_WAIT_STEP);
    dp_fake_store_hold(s->bed.fake, false);
    for (uint32_t i = 0; i < 3; i++)
        bed_turn(&s->bed);
    bed_expect(&s->bed, member_bed_put(&s->bed, &s->view), DP_OK);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    sync_free(s);
}

/* Rows that cannot be read: whoever waits for the next step hears why, so does who would see a part of it, and it is tried again. */
static void test_rows_cannot_be_read(void **state)
{
    struct sync *s = sync_gathered(2, 0, 6);
    uint64_t nobody = pull_of_nobody(s);
    dp_fake_store_fail(s->bed.fake, DP_STORE_READ, 1, DP_IO);
    dp_fake_store_hold(s->bed.fake, false);
    bed_turn(&s->bed);
    bed_turn(&s->bed);
    assert_non_null(strstr(bed_expect(&s->bed, nobody, DP_AGAIN)->reply.reason, "cannot close step 6"));
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    bed_expect(&s->bed, bed_hello(&s->bed, 2, 1, false), DP_OK);
    s->member[0].sequence = 1;
    uint64_t next = sync_pull(s, 0);
    bed_turn(&s->bed);
    const struct bed_reply *reply = bed_expect(&s->bed, next, DP_AGAIN);
    assert_non_null(strstr(reply->reply.reason, "cannot close step 6"));
    s->bed.now_ns += UINT64_C(1100000000);
    for (uint32_t i = 0; i < 4; i++)
        bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    next = sync_pull(s, 0);
    for (uint32_t i = 0; i < 3; i++)
        bed_turn(&s->bed);
    sync_same(s, bed_expect(&s->bed, next, DP_OK), 7);
    sync_free(s);
}

/* A drain closes what can be closed; what cannot is left to the next opening. */
static void test_drain_while_it_is_due(void **state)
{
    for (uint32_t fails = 0; fails < 2; fails++) {
        struct sync *s = sync_gathered(2, 0, 6);
        struct dp_error err = {0};
        if (fails)
            dp_fake_store_fail(s->bed.fake, DP_STORE_READ, 1, DP_IO);
        bed_turn(&s->bed);
        dp_shard_drain(s->bed.host.shard);
        bed_turn(&s->bed);
        assert_int_equal(dp_shard_drained(s->bed.host.shard, &err), DP_AGAIN);
        dp_fake_store_hold(s->bed.fake, false);
        assert_int_equal(bed_drained(&s->bed, &err), DP_OK);
        assert_int_equal(bed_counter(&s->bed, "steps_closed"), !fails);
        assert_true(dp_shard_keeps_journal(s->bed.host.shard));
        sync_crash(s, DP_SIM_PROCESS, false);
        sync_train(s, 9);
        sync_check(s, 9);
        sync_free(s);
    }
}

static void release_all_but_reads(struct sync *s)
{
    for (uint32_t at = 0; at < dp_fake_store_held(s->bed.fake);)
        if (dp_fake_store_held_job(s->bed.fake, at)->kind != DP_STORE_READ)
            dp_fake_store_release(s->bed.fake, at);
        else
            at++;
    (void)bed_one_turn(&s->bed);
}

/* A pull whose rows were read again and again has the row cache for itself; then it waits for the step, and the step for room.
 * Planted: it keeps the room while it waits. */
static void test_pull_that_has_the_room(void **state)
{
    struct sync *s = sync_new(2, SYNC_STEPS, 3, DP_DURABILITY_MACHINE, 0);
    uint64_t others[SYNC_KEYS];
    sync_fill(s);
    sync_train(s, 6);
    s->bed.now_ns += UINT64_C(31000000000);
    bed_turn(&s->bed);
    sync_let(s, 1u, 7);
    uint64_t id = sync_pull(s, 1);
    s->member[1].sequence++;
    bed_turn(&s->bed);
    sync_same(s, sync_reply(s, id), 6);
    memcpy(s->member[1].weights, s->before[6], sizeof(sync_weights));
    dp_fake_store_hold(s->bed.fake, true);
    sync_crash(s, DP_SIM_NOTHING, false); /* so that no row is in the cache */
    struct dp_shard *shard = s->bed.host.shard;
    bed_keys(&s->bed, 1000, SYNC_KEYS, others);
    uint64_t nobody = bed_pull(&s->bed, 1, s->sequence++, "s", others, SYNC_KEYS);
    bed_turn(&s->bed);
    struct dp_session *reads = dp_schedule_first(&shard->schedule, DP_WAIT_STORE);
    assert_non_null(reads);
    dp_cache_budget_make_urgent(&shard->budget, &reads->first->lookup);
    bed_expect(&s->bed, bed_hello(&s->bed, 3, 1, false), DP_OK);
    s->member[1].sequence = 1;
    id = sync_push(s, 1);
    for (uint32_t i = 0; i < 9; i++)
        release_all_but_reads(s);
    bed_expect(&s->bed, id, DP_OK);
    dp_fake_store_hold(s->bed.fake, false);
    for (uint32_t i = 0; i < 4; i++)
        bed_turn(&s->bed);
    bed_expect(&s->bed, nobody, DP_OK);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    s->member[1].step++;
    sync_check(s, 7);
    sync_free(s);
}

/* What staleness is counted in goes on after a crash. Planted: closes count in replay only. */
static void test_staleness_after_a_crash(void **state)
{
    struct sync *s = sync_new(2, SYNC_STEPS, 3, DP_DURABILITY_MACHINE, 0);
    uint64_t applied[2];
    sync_train(s, 6);
    sync_let(s, 1u, 7); /* one push is kept */
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t id = pull_of_nobody(s);
        applied[i] = bed_expect(&s->bed, id, DP_OK)->reply.applied;
        if (i == 0)
            sync_crash(s, DP_SIM_NOTHING, false);
    }
    assert_int_equal(applied[0], applied[1]);
    sync_free(s);
}

/* As bed_turn; but a full disk is tried again in a turn that nothing called for. */
static void some_turns(struct sync *s)
{
    for (uint32_t i = 0; i < 20; i++)
        (void)bed_one_turn(&s->bed);
}

/* Pushes without rows take what room is left in the journal, on a disk that has no more. */
static void fill_disk(struct sync *s)
{
    struct dp_request request = {
        .kind = DP_REQUEST_PUSH, .session = 500, .stream = MEMBER_BED_STREAM, .number = 50000, .rate = 1};
    const struct bed_reply *reply = NULL;
    bed_expect(&s->bed, bed_hello(&s->bed, 500, 1, false), DP_OK);
    dp_sim_disk_capacity(s->bed.host.sim, dp_sim_disk_used(s->bed.host.sim));
    while (!reply || reply->reply.status == DP_OK) { /* none: its answer waits for a mark */
        request.sequence++;
        request.number++;
        uint64_t id = bed_send(&s->bed, &request, NULL, 0);
        some_turns(s);
        reply = sync_reply(s, id);
        assert_true(request.sequence < 1000);
    }
    assert_int_equal(reply->reply.status, DP_AGAIN);
}

/* On a full disk: the close has no room, and nothing brings any. It is left to the next opening. Planted: a drain waits for room. */
static void test_drain_without_room(void **state)
{
    struct sync *s = sync_gathered(2, 0, 6);
    struct dp_error err = {0};
    fill_disk(s);
    dp_fake_store_hold(s->bed.fake, false);
    some_turns(s);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    dp_shard_drain(s->bed.host.shard);
    for (uint32_t ms = 0; ms < 500 && dp_shard_drained(s->bed.host.shard, &err) == DP_AGAIN; ms += 10) {
        s->bed.now_ns += UINT64_C(10000000);
        some_turns(s);
    }
    assert_int_not_equal(dp_shard_drained(s->bed.host.shard, &err), DP_AGAIN);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    dp_sim_disk_capacity(s->bed.host.sim, UINT64_MAX);
    sync_crash(s, DP_SIM_PROCESS, false);
    sync_train(s, 9);
    sync_check(s, 9);
    sync_free(s);
}

/* Something else that the journal has to take; or not, AGAIN. */
static void push_much(struct sync *s, uint64_t *pushes)
{
    static uint64_t keys[1000];
    bed_keys(&s->bed, 1000, 1000, keys);
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t session = 100 + (*pushes)++;
        bed_expect(&s->bed, bed_hello(&s->bed, session, 1, false), DP_OK);
        (void)bed_push(&s->bed, session, 1, "s", keys, 1000, 2, 1, MEMBER_BED_STREAM, 50000 + *pushes);
        bed_turn(&s->bed);
    }
}

/* While a step is open, its journal is not given to others: half of it is left for what closes the step. */
static void test_journal_that_others_fill(void **state)
{
    uint64_t pushes = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct sync *s = sync_new(2, SYNC_STEPS, seed, DP_DURABILITY_MACHINE, 0);
        for (uint64_t step = 1; step <= SYNC_STEPS; step++) {
            sync_let(s, 1u, step);
            for (uint32_t i = 0; i < 10; i++)
                push_much(s, &pushes);
            if (seed == 2)
                sync_crash(s, DP_SIM_NOTHING, false);
            sync_train(s, step);
        }
        sync_check(s, SYNC_STEPS);
        assert_true(seed == 2 || bed_counter(&s->bed, "requests_postponed") > 10);
        sync_free(s);
    }
}

/* Nor to the numbers that pushes without members use up by being refused. */
static void test_journal_that_refused_pushes_fill(void **state)
{
    struct sync *s = sync_new(2, SYNC_STEPS, 1, DP_DURABILITY_MACHINE, 0);
    uint32_t refused = 0, pushes = 0;
    sync_let(s, 1u, 1);
    bed_expect(&s->bed, bed_hello(&s->bed, 99, 1, false), DP_OK);
    for (; pushes < 300; pushes++) {
        uint64_t id =
            bed_push(&s->bed, 99, refused + 1, "s", s->mixed, 1, 2, NAN, MEMBER_BED_STREAM, 40000 + refused);
        bed_turn(&s->bed);
        const struct bed_reply *reply = sync_reply(s, id);
        assert_non_null(reply);
        if (reply->reply.status == DP_AGAIN)
            break;
        assert_int_equal(reply->reply.status, DP_NOT_FINITE);
        refused++;
    }
    assert_true(refused > 10 && pushes < 300);
    sync_train(s, SYNC_STEPS);
    sync_check(s, SYNC_STEPS);
    sync_free(s);
}

/* Read-only: what was closed, and no trace on the disk. */
/* A queue of the store that others have filled is no failure of the close: it is tried again soon, and nobody is told of it. */
static void test_queue_that_others_fill(void **state)
{
    struct sync *s = sync_new(2, SYNC_STEPS, 3, DP_DURABILITY_MACHINE, 0);
    uint64_t others[20], pull[20];
    sync_fill(s);
    sync_train(s, 6);
    s->bed.now_ns += UINT64_C(31000000000);
    bed_turn(&s->bed);
    sync_let(s, 1u, 7);
    uint64_t id = sync_pull(s, 1);
    s->member[1].sequence++;
    bed_turn(&s->bed);
    sync_same(s, sync_reply(s, id), 6);
    memcpy(s->member[1].weights, s->before[6], sizeof(sync_weights));
    dp_fake_store_hold(s->bed.fake, true);
    sync_crash(s, DP_SIM_NOTHING, false); /* so that no row is in the cache */
    bed_keys(&s->bed, 1000, 20, others);
    bed_expect(&s->bed, bed_hello(&s->bed, 3, 1, false), DP_OK);
    s->member[1].sequence = 1;
    for (uint32_t i = 0; i < 20; i++)
        bed_expect(&s->bed, bed_hello(&s->bed, 700 + i, 1, false), DP_OK);
    for (uint32_t i = 0; i < 9; i++)
        release_all_but_reads(s);
    id = sync_push(s, 1);
    for (uint32_t i = 0; i < 20; i++)
        pull[i] = bed_pull(&s->bed, 700 + i, 1, "s", &others[i], 1);
    bed_turn(&s->bed);
    bed_expect(&s->bed, id, DP_OK);
    bed_expect_wait(&s->bed, pull[19], DP_AGAIN, QUEUE);
    assert_int_equal(s->bed.host.shard->steps.stuck.status, DP_OK);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 0);
    dp_fake_store_hold(s->bed.fake, false);
    bed_turn(&s->bed);
    s->bed.now_ns += UINT64_C(20000000);
    for (uint32_t i = 0; i < 4; i++)
        bed_turn(&s->bed);
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), 1);
    s->member[1].step++;
    sync_check(s, 7);
    sync_free(s);
}

static void test_read_only(void **state)
{
    struct sync *s = sync_gathered(2, 0, 6);
    dp_fake_store_hold(s->bed.fake, false);
    s->bed.host.options.read_only = true;
    sync_crash(s, DP_SIM_NOTHING, false);
    uint64_t before = dp_sim_disk_operations(s->bed.host.sim);
    sync_check(s, 6);
    struct dp_error err = {0};
    assert_int_equal(bed_drain(&s->bed, &err), DP_OK);
    assert_false(dp_shard_keeps_journal(s->bed.host.shard));
    assert_int_equal(dp_sim_disk_operations(s->bed.host.sim), before);
    s->bed.host.options.read_only = false;
    sync_crash(s, DP_SIM_NOTHING, false);
    sync_train(s, SYNC_STEPS);
    sync_check(s, SYNC_STEPS);
    sync_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_read),
        cmocka_unit_test(test_next_run_waits),
        cmocka_unit_test(test_rows_cannot_be_read),
        cmocka_unit_test(test_drain_while_it_is_due),
        cmocka_unit_test(test_pull_that_has_the_room),
        cmocka_unit_test(test_staleness_after_a_crash),
        cmocka_unit_test(test_drain_without_room),
        cmocka_unit_test(test_journal_that_others_fill),
        cmocka_unit_test(test_journal_that_refused_pushes_fill),
        cmocka_unit_test(test_queue_that_others_fill),
        cmocka_unit_test(test_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
