/* Snapshots: a shard keeps its rows of one moment and goes back to them; nothing that was counted then or since is free again.
 * On the fake store, without a journal; with one, and with crashes: test_shard_crash and the system tests. */
#include "tests/lib/test.h"
#include "tests/unit/server/shard/bed.h"

#include <string.h>

#define RUN    3u
#define STREAM ((uint64_t)1 << 63 | (uint64_t)RUN << 32) /* of epoch 1, as orders count */

/* The store's answers, too, and what follows from them. */
static void turn(struct bed *bed)
{
    for (uint32_t i = 0; i < 6; i++)
        bed_turn(bed);
}

static void push(struct bed *bed, uint64_t sequence, uint64_t key, uint64_t number, float gradient)
{
    uint64_t id = bed_push(bed, 1, sequence, "t", &key, 1, 2, gradient, STREAM, number);
    turn(bed);
    bed_expect(bed, id, DP_OK);
}

static const struct bed_reply *order(struct bed *bed, enum dp_snapshot_action action, uint32_t epoch,
                                     enum dp_status wanted)
{
    uint64_t id = bed_snapshot(bed, action, RUN, epoch, 0);
    turn(bed);
    return bed_expect(bed, id, wanted);
}

static bool is_held(struct bed *bed, uint32_t epoch)
{
    return order(bed, DP_SNAPSHOT_LOOK, epoch, DP_OK)->reply.held;
}

static void rows_go_back_and_ids_stay(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, 10, 1, 1);
    push(&bed, 3, 20, 2, 1);
    assert_true(order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK)->reply.held);
    push(&bed, 4, 10, 3, 4);
    push(&bed, 5, 30, 4, 4);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    bed_go_back(&bed);
    const struct bed_reply *done = order(&bed, DP_SNAPSHOT_REVERT, 1, DP_OK); /* asked again */
    assert_int_equal(done->reply.run, RUN);
    assert_int_equal(done->reply.epoch, 1);
    assert_false(is_held(&bed, 1));
    bed_meet(&bed, 1);
    assert_float_equal(bed_value(&bed, 1, 1, 10), -1, 0);
    assert_float_equal(bed_value(&bed, 1, 2, 20), -1, 0);
    assert_float_equal(bed_value(&bed, 1, 3, 30), 0, 0);
    uint64_t key = 30;
    for (uint64_t number = 1; number <= 4; number++) {
        uint64_t id = bed_push(&bed, 1, 3 + number, "t", &key, 1, 2, 4, STREAM, number);
        turn(&bed);
        assert_true(bed_expect(&bed, id, DP_OK)->reply.repeated);
    }
    push(&bed, 8, 30, 5, 2);
    assert_float_equal(bed_value(&bed, 1, 9, 30), -2, 0);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    assert_float_equal(bed_value(&bed, 1, 1, 30), -2, 0);
    assert_int_equal(order(&bed, DP_SNAPSHOT_LOOK, 1, DP_OK)->reply.epoch, 1);
    bed_close(&bed);
}

/* The table's mark counts rows that are gone. */
static void rows_are_counted_anew(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, 10, 1, 1);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    for (uint64_t i = 0; i < 5; i++)
        push(&bed, 3 + i, 100 + i, 2 + i, 1);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    bed_go_back(&bed);
    turn(&bed);
    struct dp_request status = {.kind = DP_REQUEST_STATUS};
    uint64_t id = bed_send(&bed, &status, NULL, 0);
    assert_int_equal(bed_expect(&bed, id, DP_OK)->table_rows, 1);
    bed_close(&bed);
}

/* A push that comes while rows are written back is not in the snapshot by half: another cycle follows. */
static void a_push_meanwhile_puts_it_off(void **state)
{
    struct bed bed;
    uint64_t a = 10, b = 20;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, a, 1, 1);
    push(&bed, 3, b, 2, 1);
    dp_fake_store_hold(bed.fake, true);
    uint64_t id = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 1, 0);
    turn(&bed);
    assert_int_equal(dp_fake_store_held(bed.fake), 1); /* the cycle's rows */
    push(&bed, 4, a, 3, 4);
    for (uint32_t i = 0; i < 20 && dp_fake_store_held(bed.fake) > 0; i++) {
        dp_fake_store_release(bed.fake, 0);
        turn(&bed);
    }
    bed_expect(&bed, id, DP_OK);
    dp_fake_store_hold(bed.fake, false);
    assert_int_equal(dp_fake_store_jobs(bed.fake, DP_STORE_WRITE), 2);
    push(&bed, 5, b, 4, 8);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    bed_go_back(&bed);
    bed_meet(&bed, 1);
    assert_float_equal(bed_value(&bed, 1, 1, a), -5, 0);
    assert_float_equal(bed_value(&bed, 1, 2, b), -1, 0);
    bed_close(&bed);
}

/* Nothing is written back between the cycle and the copy, and requests are answered meanwhile. */
static void the_copy_has_nothing_newer(void **state)
{
    struct bed bed;
    uint64_t key = 10;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, key, 1, 1);
    dp_fake_store_hold(bed.fake, true);
    uint64_t id = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 1, 0);
    turn(&bed);
    while (dp_fake_store_held_job(bed.fake, 0)->kind != DP_STORE_SNAPSHOT) {
        dp_fake_store_release(bed.fake, 0);
        turn(&bed);
        assert_int_equal(dp_fake_store_held(bed.fake), 1);
    }
    push(&bed, 3, key, 2, 4);
    assert_float_equal(bed_value(&bed, 2, 1, key), -5, 0);
    dp_fake_store_hold(bed.fake, false);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    bed_go_back(&bed);
    bed_meet(&bed, 1);
    assert_float_equal(bed_value(&bed, 1, 1, key), -1, 0);
    bed_close(&bed);
}

static void orders_may_come_again(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, 10, 1, 1);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    push(&bed, 3, 10, 2, 1);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK); /* of then, still */
    bed_restart(&bed);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 2, DP_NOT_FOUND);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_STOPPING);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 2, DP_STOPPING);
    bed_go_back(&bed);
    bed_meet(&bed, 1);
    assert_float_equal(bed_value(&bed, 1, 1, 10), -1, 0);
    (void)order(&bed, DP_SNAPSHOT_DROP, 0, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_DROP, 0, DP_OK);
    bed_close(&bed);
}

/* Of orders that come while one is under way, the same one waits with it; another hears AGAIN. */
static void one_order_at_a_time(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, 10, 1, 1);
    dp_fake_store_hold(bed.fake, true);
    uint64_t first = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 1, 0);
    turn(&bed);
    uint64_t again = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 1, 0);
    uint64_t other = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 2, 0);
    turn(&bed);
    bed_expect(&bed, other, DP_AGAIN);
    assert_null(bed_reply_to(&bed, first));
    bed.now_ns += 300000000; /* long enough: it hears how far it is, and asks again */
    turn(&bed);
    const struct dp_wait at = bed_expect(&bed, again, DP_AGAIN)->reply.wait;
    assert_int_equal(at.reason, DP_WAIT_SNAPSHOT);
    assert_true(at.subject == ((uint64_t)RUN << 32 | 1) && at.done == 1 && at.total == 1);
    bed_expect_wait(&bed, other, DP_AGAIN, SNAPSHOT);
    again = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 1, 0);
    dp_fake_store_hold(bed.fake, false);
    turn(&bed);
    bed_expect(&bed, again, DP_OK);
    assert_true(is_held(&bed, 1));
    bed_close(&bed);
}

/* What cannot be taken is told, and nothing else fails. */
static void a_snapshot_that_fails_fails_nothing_else(void **state)
{
    static const enum dp_status whys[] = {DP_FULL, DP_IO};
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct bed bed;
        bed_start(&bed);
        push(&bed, 2, 10, 1, 1);
        dp_fake_store_fail(bed.fake, DP_STORE_SNAPSHOT, 1, whys[i]);
        (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_AGAIN);
        assert_false(is_held(&bed, 1));
        push(&bed, 3, 10, 2, 1);
        (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
        bed_restart(&bed);
        bed_meet(&bed, 1);
        assert_float_equal(bed_value(&bed, 1, 1, 10), -2, 0);
        bed_close(&bed);
    }
}

static void a_full_disk_is_told_while_rows_are_written_back(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, 10, 1, 1);
    dp_fake_store_fail(bed.fake, DP_STORE_WRITE, 1, DP_FULL);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_AGAIN);
    bed.now_ns += UINT64_C(2000000000); /* there is room again */
    turn(&bed);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    bed_close(&bed);
}

/* A worker 0 that had stood still since an earlier run. */
static void an_earlier_run_takes_nothing_back(void **state)
{
    struct bed bed;
    uint64_t key = 10;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, key, 1, 1);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    uint64_t id =
        bed_push(&bed, 1, 3, "t", &key, 1, 2, 4, (uint64_t)1 << 63 | (uint64_t)(RUN + 1) << 32 | 1, 1);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_REVERT, 1, DP_INVALID);
    assert_float_equal(bed_value(&bed, 2, 1, key), -5, 0);
    (void)order(&bed, DP_SNAPSHOT_DROP, 0, DP_INVALID);
    assert_true(is_held(&bed, 1));
    id = bed_snapshot(&bed, DP_SNAPSHOT_DROP, RUN + 1, 0, 0);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    assert_false(is_held(&bed, 1));
    bed_close(&bed);
}

/* A worker that had stood still since an earlier epoch: what is kept since stays, and rows of now do not take its name. */
static void an_earlier_epoch_is_not_kept(void **state)
{
    struct bed bed;
    uint64_t key = 10;
    (void)state;
    bed_start(&bed);
    push(&bed, 2, key, 1, 1);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    uint64_t id = bed_push(&bed, 1, 3, "t", &key, 1, 2, 4, STREAM + 1, 1);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 2, DP_OK);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_INVALID);
    assert_true(is_held(&bed, 2) && !is_held(&bed, 1));
    (void)order(&bed, DP_SNAPSHOT_DROP, 0, DP_OK);
    bed_close(&bed);
}

static void the_one_that_is_named_stays(void **state)
{
    struct bed bed;
    (void)state;
    bed_start(&bed);
    (void)order(&bed, DP_SNAPSHOT_TAKE, 1, DP_OK);
    push(&bed, 2, 10, 1, 1);
    uint64_t id = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 4, 1);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    assert_true(is_held(&bed, 1) && is_held(&bed, 4));
    id = bed_snapshot(&bed, DP_SNAPSHOT_TAKE, RUN, 4, 4);
    turn(&bed);
    bed_expect(&bed, id, DP_OK);
    assert_true(!is_held(&bed, 1) && is_held(&bed, 4));
    (void)order(&bed, DP_SNAPSHOT_DROP, 0, DP_OK);
    assert_false(is_held(&bed, 4));
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_back_and_ids_stay),
        cmocka_unit_test(rows_are_counted_anew),
        cmocka_unit_test(a_push_meanwhile_puts_it_off),
        cmocka_unit_test(the_copy_has_nothing_newer),
        cmocka_unit_test(orders_may_come_again),
        cmocka_unit_test(one_order_at_a_time),
        cmocka_unit_test(a_snapshot_that_fails_fails_nothing_else),
        cmocka_unit_test(a_full_disk_is_told_while_rows_are_written_back),
        cmocka_unit_test(an_earlier_run_takes_nothing_back),
        cmocka_unit_test(an_earlier_epoch_is_not_kept),
        cmocka_unit_test(the_one_that_is_named_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
