/* Shard: rows that memory has no room for, over a fake store: reading what only the store has, the budget and what leaves for
 * it, writes that fail. Table "t" of dim 2 unless a test says else, SGD at rate 1 from 0. */
#include "tests/unit/server/shard/bed.h"

#include "common/model/row.h"

#include <stdlib.h>
#include <string.h>

#define T ((uint64_t)1 << 63 | 1)

static void misses_are_read_once_and_in_order(void **state)
{
    struct bed bed;
    uint64_t keys[20];
    bed_start(&bed);
    bed_keys(&bed, 1000, 20, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 10, 2, 1, T, 0);
    bed_turn(&bed);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    dp_fake_store_hold(bed.fake, true);
    uint64_t a = bed_pull(&bed, 1, 1, "t", keys, 15);
    uint64_t push = bed_push(&bed, 1, 2, "t", keys, 1, 2, 1, T, 1);
    uint64_t later = bed_pull(&bed, 1, 3, "t", keys, 1);
    uint64_t b = bed_pull(&bed, 2, 1, "t", keys + 5, 10); /* keys that are being read already */
    bed_turn(&bed);
    assert_int_equal(dp_fake_store_jobs(bed.fake, DP_STORE_READ), 1);
    assert_null(bed_reply_to(&bed, a));
    assert_null(bed_reply_to(&bed, push));
    dp_fake_store_release_all(bed.fake);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, a, DP_OK)->value[0] == -1); /* before the push behind it */
    assert_true(bed_expect(&bed, a, DP_OK)->value[2 * 12] == 0);
    assert_true(bed_expect(&bed, b, DP_OK)->value[0] == -1);
    assert_true(bed_expect(&bed, later, DP_OK)->value[0] == -2);
    assert_int_equal(dp_fake_store_jobs(bed.fake, DP_STORE_READ), 1);
    bed_close(&bed);
}

/* What the request behind the one that waits lacks is read beside it; the answers keep their order, and a read ahead that failed is
 * nobody's failure: who needs the rows asks again. */
static void the_next_of_a_session_is_read_ahead(void **state)
{
    for (uint32_t fails = 0; fails < 2; fails++) {
        struct bed bed;
        uint64_t keys[30];
        bed_start(&bed);
        bed_keys(&bed, 1000, 30, keys);
        (void)bed_push(&bed, 1, 2, "t", keys, 30, 2, 1, T, 0);
        bed_turn(&bed);
        bed_restart(&bed);
        bed_meet(&bed, 1);
        dp_fake_store_hold(bed.fake, true);
        uint64_t first = bed_pull(&bed, 1, 1, "t", keys, 10);
        uint64_t push = bed_push(&bed, 1, 2, "t", keys + 5, 15, 2, 1, T, 1);
        uint64_t third = bed_pull(&bed, 1, 3, "t", keys, 30);
        bed_turn(&bed);
        assert_int_equal(dp_fake_store_jobs(bed.fake, DP_STORE_READ), 2);
        assert_int_equal(bed_counter(&bed, "misses"), 20); /* of the push those that the pull does not read */
        if (fails)
            dp_fake_store_fail(bed.fake, DP_STORE_READ, 2, DP_IO);
        dp_fake_store_release_all(bed.fake);
        dp_fake_store_hold(bed.fake, false);
        for (uint32_t turns = 0; turns < 5; turns++)
            bed_turn(&bed);
        assert_true(bed_expect(&bed, first, DP_OK)->value[2 * 9] == -1);
        bed_expect(&bed, push, DP_OK);
        const float *values = bed_expect(&bed, third, DP_OK)->value;
        assert_true(values[0] == -1 && values[2 * 5] == -2 && values[2 * 19] == -2 && values[2 * 20] == -1);
        bed_close(&bed);
    }
}

/* A store takes so many jobs and no more: reads that nobody waits for leave the most of them to the others. */
static void reads_ahead_leave_the_store_to_who_waits(void **state)
{
    enum { SESSIONS = 48, AHEAD_MOST = 32 };
    struct bed bed;
    uint64_t keys[2 * SESSIONS];
    bed_start_with(&bed, 256, 64u << 20, 2);
    bed_keys(&bed, 1000, 2 * SESSIONS, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 2 * SESSIONS, 2, 1, T, 0);
    bed_turn(&bed);
    bed_restart(&bed);
    for (uint64_t s = 1; s <= SESSIONS; s++)
        bed_meet(&bed, s);
    dp_fake_store_hold(bed.fake, true);
    for (uint64_t s = 1; s <= SESSIONS; s++)
        for (uint64_t n = 1; n <= 2; n++)
            (void)bed_pull(&bed, s, n, "t", &keys[2 * (s - 1) + n - 1], 1);
    bed_turn(&bed);
    assert_in_range(dp_fake_store_jobs(bed.fake, DP_STORE_READ), SESSIONS + 1, SESSIONS + AHEAD_MOST);
    dp_fake_store_release_all(bed.fake);
    dp_fake_store_hold(bed.fake, false);
    bed.replies = 0;
    for (uint32_t turns = 0; turns < 5; turns++)
        bed_turn(&bed);
    assert_int_equal(bed.replies, 2 * SESSIONS);
    bed_close(&bed);
}

static void others_are_served_while_one_waits_for_the_store(void **state)
{
    struct bed bed;
    uint64_t keys[20];
    bed_start(&bed);
    bed_keys(&bed, 1000, 20, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 20, 2, 1, T, 0);
    bed_turn(&bed);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    uint64_t warm = bed_pull(&bed, 2, 1, "t", keys, 1);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, warm, DP_OK);
    dp_fake_store_hold(bed.fake, true);
    uint64_t slow = bed_pull(&bed, 1, 1, "t", keys, 20);
    uint64_t quick = bed_pull(&bed, 2, 2, "t", keys, 1);
    bed_turn(&bed);
    bed_expect(&bed, quick, DP_OK);
    assert_null(bed_reply_to(&bed, slow));
    bed_close(&bed);
}

static void a_failed_read_is_told_and_tried_again(void **state)
{
    struct bed bed;
    uint64_t keys[4];
    bed_start(&bed);
    bed_keys(&bed, 1000, 4, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 4, 2, 1, T, 0);
    bed_turn(&bed);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    dp_fake_store_fail(bed.fake, DP_STORE_READ, 1, DP_CORRUPT);
    dp_fake_store_hold(bed.fake, true);
    uint64_t a = bed_pull(&bed, 1, 1, "t", keys, 4);
    uint64_t b = bed_pull(&bed, 2, 1, "t", keys, 4);
    bed_turn(&bed);
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_turn(&bed);
    bed_expect(&bed, a, DP_CORRUPT);
    assert_true(bed_expect(&bed, b, DP_OK)->value[0] == -1); /* it asked for itself */
    bed_close(&bed);
}

/* Its rows would not fit beside anything else, now or ever: it is not told to try again. */
static void a_request_that_is_too_large_is_refused_for_good(void **state)
{
    struct bed bed;
    uint64_t keys[500];
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 500, 100), 500);
    bed_keys(&bed, 1, 500, keys);
    uint64_t push = bed_push(&bed, 1, 2, "t", keys, 80, 500, 1, T, 0);
    bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, push, DP_INVALID)->reply.reason, "cache_bytes"));
    assert_int_equal(bed_counter(&bed, "cache_rows"), 0);
    push = bed_push(&bed, 1, 3, "t", keys, 40, 500, 1, T, 1);
    bed_turn(&bed);
    bed_expect(&bed, push, DP_OK);
    bed_close(&bed);
}

/* Large pushes of new rows, each of which needs nearly all of the cache: rows leave while others are still being written, and the
 * index shrinks under the hand. Whoever waits for room gets it as soon as all rows are written, without waiting for anything else. */
static void a_large_push_gets_all_the_room_that_there_is(void **state)
{
    enum { ROWS = 16384, DIM = 48, SETS = 4, PUSHES = 24 };
    struct bed bed;
    uint64_t *keys = malloc(ROWS * sizeof *keys);
    uint64_t random = 1;
    /* A push and the read before it fit when all other rows have left, not before. */
    bed_start_with(&bed, 64, 9214304, DIM);
    dp_fake_store_hold(bed.fake, true);
    for (uint64_t n = 0; n < PUSHES; n++) {
        bed_keys(&bed, 1 + n % SETS * ROWS, ROWS, keys);
        bed.replies = 0;
        uint64_t push = bed_push(&bed, 1, 2 + n, "t", keys, ROWS, DIM, 1, T, n);
        for (uint32_t step = 0; step < 1000 && !bed_reply_to(&bed, push); step++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            for (uint64_t turns = 1 + (random >> 60) % 8; turns > 0; turns--)
                (void)bed_one_turn(&bed);
            if (dp_fake_store_held(bed.fake) > 0)
                dp_fake_store_release(bed.fake, 0);
            else
                bed_turn(&bed);
        }
        bed_expect(&bed, push, DP_OK);
    }
    dp_fake_store_hold(bed.fake, false);
    free(keys);
    bed_close(&bed);
}

/* Rows that cannot be written make no room: who needs some hears why. What is clean still goes. */
static void a_store_that_takes_no_rows_is_the_cause_told(void **state)
{
    struct bed bed;
    struct dp_error err = {0};
    uint64_t keys[60], others[60];
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 110), 100);
    bed_keys(&bed, 1, 60, keys);
    bed_keys(&bed, 10000, 60, others);
    (void)bed_push(&bed, 1, 2, "t", keys, 50, 100, 1, T, 0);
    bed_turn(&bed);
    dp_fake_store_fail(bed.fake, DP_STORE_WRITE, 1, DP_IO);
    (void)bed_push(&bed, 1, 3, "t", others, 50, 100, 1, T, 1);
    bed_turn(&bed);
    bed_keys(&bed, 90000, 60, others);
    uint64_t push = bed_push(&bed, 1, 4, "t", others, 50, 100, 1, T, 2);
    bed_turn(&bed);
    bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, push, DP_AGAIN)->reply.reason, "cannot be written back"));
    bed_expect_wait(&bed, push, DP_AGAIN, ROOM);
    assert_int_equal(bed_counter(&bed, "rows_evicted"), 0);
    assert_true(bed_value(&bed, 1, 4, keys[0]) == -1);
    assert_int_equal(bed_drain(&bed, &err), DP_IO);
    bed_close(&bed);
}

/* A disk that is full is not the end: what it did not take is written when there is space. */
static void a_full_disk_is_tried_again(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct bed bed;
        struct dp_error err = {0};
        uint64_t keys[60], others[60];
        bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 110), 100);
        bed_keys(&bed, 1, 60, keys);
        (void)bed_push(&bed, 1, 2, "t", keys, 50, 100, 1, T, 0);
        bed_turn(&bed);
        dp_fake_store_fail(bed.fake, kind ? DP_STORE_MARKS : DP_STORE_WRITE, 1, DP_FULL);
        if (kind) { /* what drains does not wait for space */
            assert_int_equal(bed_drain(&bed, &err), DP_FULL);
            bed_close(&bed);
            continue;
        }
        bed_keys(&bed, 10000, 60, others);
        (void)bed_push(&bed, 1, 3, "t", others, 50, 100, 1, T, 1);
        bed_turn(&bed);
        bed_keys(&bed, 90000, 60, others);
        uint64_t push = bed_push(&bed, 1, 4, "t", others, 50, 100, 1, T, 2);
        bed_turn(&bed);
        bed_turn(&bed);
        assert_non_null(strstr(bed_expect(&bed, push, DP_AGAIN)->reply.reason, "cannot be written back"));
        assert_int_equal(bed_counter(&bed, "writes_full"), 1);
        bed.now_ns += 1000u * 1000000u;
        bed_turn(&bed);
        bed_turn(&bed);
        push = bed_push(&bed, 1, 4, "t", others, 50, 100, 1, T, 2);
        bed_turn(&bed);
        bed_turn(&bed);
        bed_expect(&bed, push, DP_OK);
        assert_true(bed_value(&bed, 1, 5, keys[0]) == -1);
        bed_restart(&bed);
        bed_meet(&bed, 1);
        assert_true(bed_value(&bed, 1, 1, keys[0]) == -1 && bed_value(&bed, 1, 2, others[0]) == -1);
        bed_close(&bed);
    }
}

/* One table has the whole cache, then another is used: it gets what the first does not use any more. */
static void memory_goes_to_the_table_that_is_used(void **state)
{
    struct bed bed;
    struct dp_table_spec u = bed_sgd("u", 100);
    uint64_t keys[500], sequence = 3, number = 0, before = 0;
    bed_start_with(&bed, 16, bed_budget(16 + 4 * 100, 1000) + bed_budget(16 + 4 * 100, 1), 100);
    bed_make_table(&bed, 1, 2, &u);
    for (uint32_t use = 0; use < 3; use++)
        for (uint64_t i = 0; i < 300; i++) {
            bed_keys(&bed, 100000 * (i % 10 + 1), 80, keys);
            uint64_t id = bed_push(&bed, 1, sequence++, use == 1 ? "u" : "t", keys, 80, 100, 1, T, number++);
            for (uint32_t turns = 0; turns < 10; turns++)
                bed_turn(&bed);
            bed_expect(&bed, id, DP_OK);
            assert_true(bed_counter(&bed, "cache_bytes") <= bed.host.options.cache_bytes);
            bed.replies = 0;
            /* 800 rows are in use: in the end they are all in the cache. */
            before = i == 250 ? bed_counter(&bed, "misses") : before;
            assert_true(i < 250 || bed_counter(&bed, "misses") == before);
        }
    bed_close(&bed);
}

/* Two tables that would each fit, and not together: nothing of the request is done. */
static void all_tables_of_a_push_share_the_budget(void **state)
{
    struct bed bed;
    uint64_t keys[600];
    bed_start_with(&bed, 16, 140000, 2);
    struct dp_table_spec u = bed_sgd("u", 2);
    bed_make_table(&bed, 1, 2, &u);
    bed_keys(&bed, 1, 600, keys);
    struct dp_request both = {
        .kind = DP_REQUEST_PUSH, .session = 1, .sequence = 3, .stream = T, .rate = 1, .sections = 2};
    struct dp_frame frames[4];
    for (uint32_t i = 0; i < 2; i++) {
        both.section[i] = (struct dp_section){.table = dp_table_id(i ? "u" : "t"), .rows = 600};
        frames[2 * i] = dp_frame_copy(keys, sizeof keys);
        frames[2 * i + 1] = dp_frame_new(600 * 8);
        memset(frames[2 * i + 1].data, 0, 600 * 8);
    }
    uint64_t id = bed_send(&bed, &both, frames, 4);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    assert_int_equal(bed_counter(&bed, "cache_rows"), 0);
    id = bed_push(&bed, 1, 4, "u", keys, 600, 2, 1, T, 1); /* one alone does fit */
    bed_turn(&bed);
    bed_expect(&bed, id, DP_OK);
    bed_close(&bed);
}

static void a_store_with_more_rows_than_its_mark_is_corrupt(void **state)
{
    struct bed bed;
    uint64_t keys[3];
    bed_start(&bed);
    bed_keys(&bed, 10, 3, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 2, 2, 1, T, 0);
    bed_turn(&bed);
    struct dp_error err = {0};
    assert_int_equal(bed_drain(&bed, &err), DP_OK);
    size_t bytes;
    char row[64];
    const void *had = dp_fake_store_row(bed.fake, (struct dp_store_key){dp_table_id("t"), keys[0]}, &bytes);
    memcpy(row, had, bytes);
    dp_fake_store_put_row(bed.fake, (struct dp_store_key){dp_table_id("t"), keys[2]}, row, bytes);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    uint64_t id = bed_pull(&bed, 1, 1, "t", keys, 3);
    bed_turn(&bed);
    bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, id, DP_CORRUPT)->reply.reason, "'t'"));
    assert_int_equal(bed_counter(&bed, "store_damage"), 1);
    bed_close(&bed);
}

/* The store has what the journal, or a clean close, does not know of: such a row would not take new pushes. */
static void a_row_ahead_of_the_last_push_is_corrupt(void **state)
{
    struct bed bed;
    uint64_t keys[2];
    size_t bytes;
    char row[64];
    struct dp_error err = {0};
    bed_start(&bed);
    bed_keys(&bed, 10, 2, keys);
    (void)bed_push(&bed, 1, 2, "t", keys, 2, 2, 1, T, 0);
    bed_turn(&bed);
    assert_int_equal(bed_drain(&bed, &err), DP_OK);
    struct dp_store_key at = {dp_table_id("t"), keys[0]};
    const void *had = dp_fake_store_row(bed.fake, at, &bytes);
    memcpy(row, had, bytes);
    dp_row_set_lsn(row, 2);
    dp_fake_store_put_row(bed.fake, at, row, bytes);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    uint64_t pull = bed_pull(&bed, 1, 1, "t", keys, 1);
    uint64_t push = bed_push(&bed, 1, 2, "t", keys, 1, 2, 1, T, 1);
    for (uint32_t turns = 0; turns < 4; turns++)
        bed_turn(&bed);
    assert_non_null(strstr(bed_expect(&bed, pull, DP_CORRUPT)->reply.reason, "push 2 "));
    bed_expect(&bed, push, DP_CORRUPT);
    assert_int_equal(bed_counter(&bed, "store_damage"), 2);
    assert_true(bed_value(&bed, 1, 3, keys[1]) == -1); /* that of the last push is not */
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misses_are_read_once_and_in_order),
        cmocka_unit_test(the_next_of_a_session_is_read_ahead),
        cmocka_unit_test(reads_ahead_leave_the_store_to_who_waits),
        cmocka_unit_test(others_are_served_while_one_waits_for_the_store),
        cmocka_unit_test(a_failed_read_is_told_and_tried_again),
        cmocka_unit_test(a_request_that_is_too_large_is_refused_for_good),
        cmocka_unit_test(a_large_push_gets_all_the_room_that_there_is),
        cmocka_unit_test(a_store_that_takes_no_rows_is_the_cause_told),
        cmocka_unit_test(a_full_disk_is_tried_again),
        cmocka_unit_test(memory_goes_to_the_table_that_is_used),
        cmocka_unit_test(all_tables_of_a_push_share_the_budget),
        cmocka_unit_test(a_store_with_more_rows_than_its_mark_is_corrupt),
        cmocka_unit_test(a_row_ahead_of_the_last_push_is_corrupt),
    };
    return cmocka_run_group_tests_name("shard room", tests, NULL, NULL);
}
