/* Waiting for room in the row cache, over a fake store: whose turn it is, who gives up, and what ends the wait. Table "t" of dim 100,
 * SGD at rate 1 from 0. */
#include "tests/unit/server/shard/bed.h"

#define T ((uint64_t)1 << 63 | 1)

/* A full cache with nothing to evict: the request waits, is answered when rows were written, or when its time is over. */
static void a_request_waits_for_room(void **state)
{
    struct bed bed;
    uint64_t keys[100], others[100];
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 110), 100);
    bed_keys(&bed, 1, 100, keys);
    bed_keys(&bed, 10000, 100, others);
    dp_fake_store_hold(bed.fake, true);
    (void)bed_push(&bed, 1, 2, "t", keys, 50, 100, 1, T, 0);
    bed_turn(&bed);
    (void)bed_push(&bed, 1, 3, "t", keys + 50, 50, 100, 1, T, 1);
    bed_turn(&bed);
    uint64_t late = bed_push(&bed, 1, 4, "t", others, 40, 100, 1, T, 2);
    uint64_t behind = bed_push(&bed, 2, 1, "t", others + 40, 40, 100, 1, T + 1, 0);
    bed_turn(&bed);
    assert_null(bed_reply_to(&bed, late));
    assert_int_equal(bed_counter(&bed, "requests_parked"), 2);
    uint64_t hit =
        bed_pull(&bed, 2, 2, "t", keys, 1); /* behind its session's push; nobody else waits for it */
    bed_meet(&bed, 3);
    uint64_t other = bed_pull(&bed, 3, 1, "t", keys, 1);
    bed_turn(&bed);
    bed_expect(&bed, other, DP_OK);
    bed.now_ns += 1001u * 1000000u;
    bed_turn(&bed);
    bed_expect_wait(&bed, late, DP_TIMEOUT, ROOM);
    bed_expect_wait(&bed, behind, DP_TIMEOUT, ROOM);
    assert_null(bed_reply_to(&bed, hit));
    late = bed_push(&bed, 1, 4, "t", others, 40, 100, 1, T, 2);
    bed_turn(&bed);
    assert_null(bed_reply_to(&bed, late));
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, late, DP_OK);
    bed_close(&bed);
}

/* The deadline of the first who waits for room passes, and nothing else happens: it is the next one's turn, who waits on. */
static void the_next_waits_for_room_when_the_first_gives_up(void **state)
{
    struct bed bed;
    uint64_t keys[100], others[80];
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 110), 100);
    bed_keys(&bed, 1, 100, keys);
    bed_keys(&bed, 10000, 80, others);
    dp_fake_store_hold(bed.fake, true);
    (void)bed_push(&bed, 1, 2, "t", keys, 50, 100, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", keys + 50, 50, 100, 1, T, 1);
    bed_turn(&bed);
    uint64_t first = bed_push(&bed, 1, 4, "t", others, 40, 100, 1, T, 2);
    bed_turn(&bed);
    bed.now_ns += 500u * 1000000u;
    uint64_t next = bed_push(&bed, 2, 1, "t", others + 40, 40, 100, 1, T + 1, 0);
    bed_turn(&bed);
    bed.now_ns += 501u * 1000000u;
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect_wait(&bed, first, DP_TIMEOUT, ROOM);
    assert_null(bed_reply_to(&bed, next));
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, next, DP_OK);
    bed_close(&bed);
}

/* Reads come, writes do not. */
static void release_reads(struct bed *bed)
{
    for (uint32_t at = 0; at < dp_fake_store_held(bed->fake);)
        if (dp_fake_store_held_job(bed->fake, at)->kind == DP_STORE_READ)
            dp_fake_store_release(bed->fake, at);
        else
            at++;
    bed_turn(bed);
}

/* There is room for the second, not for the first: else a large one might never have its turn. */
static void who_needs_less_room_does_not_overtake(void **state)
{
    struct bed bed;
    uint64_t keys[100], others[42];
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 110), 100);
    bed_keys(&bed, 1, 100, keys);
    bed_keys(&bed, 10000, 42, others);
    dp_fake_store_hold(bed.fake, true);
    (void)bed_push(&bed, 1, 2, "t", keys, 50, 100, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", keys + 50, 50, 100, 1, T, 1);
    bed_turn(&bed);
    release_reads(&bed);
    uint64_t large = bed_push(&bed, 1, 4, "t", others, 40, 100, 1, T, 2);
    bed_turn(&bed);
    uint64_t small = bed_push(&bed, 2, 1, "t", others + 40, 2, 100, 1, T + 1, 0);
    bed_turn(&bed);
    release_reads(&bed);
    release_reads(&bed);
    assert_null(bed_reply_to(&bed, large));
    assert_null(bed_reply_to(&bed, small));
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, large, DP_OK) < bed_expect(&bed, small, DP_OK));
    bed_close(&bed);
}

/* Rows that are all clean, and all in use in each turn: nothing under way will make room. The hand walks on, and gets it when they rest. */
static void rows_in_use_all_the_time_make_room_when_they_rest(void **state)
{
    enum { HALF = 50, DIM = 100, PULLS = 5 };
    struct bed bed;
    uint64_t keys[HALF], others[HALF], away;
    bed_start_with(&bed, 16, bed_budget(16 + 4 * DIM, HALF) * 9 / 5, DIM);
    bed_keys(&bed, 1, HALF, keys);
    bed_keys(&bed, 10000, HALF, others);
    bed_keys(&bed, 90000, 1, &away);
    (void)bed_push(&bed, 1, 2, "t", keys, HALF, DIM, 1, T, 0);
    (void)bed_push(&bed, 1, 3, "t", &away, 1, DIM, 1, T, 1); /* stays in the store: the cache is tight */
    bed_turn(&bed);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    for (uint64_t n = 0; n < PULLS; n++)
        (void)bed_pull(&bed, 2, 1 + n, "t", keys + 10 * n, 10);
    for (uint32_t turns = 0; turns < 5; turns++)
        bed_turn(&bed);
    assert_int_equal(bed_counter(&bed, "cache_rows"), HALF);
    uint64_t parked = bed_counter(&bed, "requests_parked");
    uint64_t push = bed_push(&bed, 1, 1, "t", others, HALF, DIM, 1, T, 2);
    for (uint64_t n = PULLS; n < 40 * PULLS; n++) {
        bed.replies = 0;
        (void)bed_pull(&bed, 2, 1 + n, "t", keys + 10 * (n % PULLS), 10);
        if (n % PULLS == PULLS - 1)
            (void)bed_one_turn(&bed);
    }
    assert_int_equal(bed_counter(&bed, "requests_parked"), parked + 1);
    assert_int_equal(bed_counter(&bed, "rows_evicted"), 0);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, push, DP_OK);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_waits_for_room),
        cmocka_unit_test(rows_in_use_all_the_time_make_room_when_they_rest),
        cmocka_unit_test(the_next_waits_for_room_when_the_first_gives_up),
        cmocka_unit_test(who_needs_less_room_does_not_overtake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
