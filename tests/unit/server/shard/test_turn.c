/* Turn: how much one of them does. Rows of reads come into the cache a portion a turn, so that a large request does not
 * make the others wait. Sessions 1, 2, ...; table "t" of dim 2, SGD at rate 1 from 0. */
#include "tests/unit/server/shard/bed.h"

#include <stdlib.h>

#define T    ((uint64_t)1 << 63 | 1)
#define ROWS 40u

/* Rows of value -1, in the store only; sessions 1 to 3. */
static void start(struct bed *bed, uint32_t taken_rows, uint64_t keys[ROWS])
{
    bed_start(bed);
    bed_keys(bed, 0, ROWS, keys);
    uint64_t push = bed_push(bed, 1, 2, "t", keys, ROWS, 2, 1, T, 0);
    bed_turn(bed);
    bed_expect(bed, push, DP_OK);
    bed->host.options.taken_rows_max = taken_rows;
    bed_restart(bed);
    for (uint64_t session = 1; session < 4; session++)
        bed_meet(bed, session);
}

/* A push on a row that is still to be taken in waits for it, though it was read before that push; other keys' do not. */
static void a_large_read_is_taken_in_over_several_turns(void **state)
{
    struct bed bed;
    uint64_t keys[ROWS];
    start(&bed, 4, keys);
    dp_fake_store_hold(bed.fake, true);
    uint64_t large = bed_pull(&bed, 1, 1, "t", keys, ROWS);
    bed_turn(&bed);
    dp_fake_store_hold(bed.fake, false);
    assert_true(bed_one_turn(&bed)); /* there is more to do, and nobody else says so */
    assert_int_equal(bed_counter(&bed, "rows_read"), 4);
    uint64_t late = bed_push(&bed, 2, 1, "t", &keys[ROWS - 1], 1, 2, 1, T, 1);
    uint64_t early = bed_push(&bed, 3, 1, "t", &keys[0], 1, 2, 1, T, 2);
    for (uint32_t taken = 8; taken < ROWS; taken += 4) {
        assert_true(bed_one_turn(&bed));
        assert_int_equal(bed_counter(&bed, "rows_read"), taken);
        assert_null(bed_reply_to(&bed, large));
        assert_null(bed_reply_to(&bed, late));
        bed_expect(&bed, early, DP_OK);
    }
    bed_turn(&bed);
    assert_int_equal(bed_counter(&bed, "rows_read"), ROWS);
    assert_int_equal(bed_counter(&bed, "misses"), ROWS); /* each key was asked for once */
    const struct bed_reply *reply = bed_expect(&bed, large, DP_OK);
    assert_true(reply->value[0] == -2 && reply->value[2] == -1 && reply->value[2 * (ROWS - 1)] == -1);
    bed_expect(&bed, late, DP_OK);
    assert_true(bed_value(&bed, 1, 2, keys[ROWS - 1]) == -2);
    bed_close(&bed);
}

/* Nothing of it is forgotten when the shard ends before. */
static void a_drain_waits_for_what_is_taken_in(void **state)
{
    struct bed bed;
    struct dp_error err = {0};
    uint64_t keys[ROWS];
    start(&bed, 1, keys);
    uint64_t pull = bed_pull(&bed, 1, 1, "t", keys, ROWS);
    (void)bed_one_turn(&bed); /* asks for it */
    for (uint32_t turns = 0; turns < 3; turns++)
        assert_true(bed_one_turn(&bed));
    assert_in_range(bed_counter(&bed, "rows_read"), 1, 4);
    dp_shard_drain(bed.host.shard);
    assert_true(bed_one_turn(&bed));
    assert_int_equal(dp_shard_drained(bed.host.shard, &err), DP_AGAIN);
    assert_int_equal(bed_drain(&bed, &err), DP_OK);
    bed_expect(&bed, pull, DP_OK);
    bed_close(&bed);
}

static void a_shard_is_closed_while_reads_are_taken_in(void **state)
{
    struct bed bed;
    uint64_t keys[ROWS];
    start(&bed, 1, keys);
    (void)bed_pull(&bed, 1, 1, "t", keys, ROWS / 2);
    (void)bed_pull(&bed, 2, 1, "t", keys + ROWS / 2, ROWS / 2); /* behind that one */
    (void)bed_one_turn(&bed);                                   /* asks for it */
    for (uint32_t turns = 0; turns < 3; turns++)
        assert_true(bed_one_turn(&bed));
    assert_in_range(bed_counter(&bed, "rows_read"), 1, 4);
    shard_bed_close(&bed.host); /* as after a crash; a sanitizer looks for what is left */
    bed_clear(&bed);
}

/* One that failed is told when it is taken in in full, and is asked for again. */
static void a_failed_read_is_taken_in_as_well(void **state)
{
    struct bed bed;
    uint64_t keys[ROWS];
    start(&bed, 4, keys);
    dp_fake_store_fail(bed.fake, DP_STORE_READ, 1, DP_IO);
    uint64_t pull = bed_pull(&bed, 1, 1, "t", keys, ROWS);
    (void)bed_one_turn(&bed); /* asks for it */
    for (uint32_t taken = 4; taken < ROWS; taken += 4) {
        assert_true(bed_one_turn(&bed));
        assert_null(bed_reply_to(&bed, pull));
    }
    bed_turn(&bed);
    bed_expect(&bed, pull, DP_AGAIN);
    uint64_t again = bed_pull(&bed, 1, 1, "t", keys, ROWS);
    bed_turn(&bed);
    bed_turn(&bed);
    assert_true(bed_expect(&bed, again, DP_OK)->value[2 * (ROWS - 1)] == -1);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_read_is_taken_in_over_several_turns),
        cmocka_unit_test(a_drain_waits_for_what_is_taken_in),
        cmocka_unit_test(a_shard_is_closed_while_reads_are_taken_in),
        cmocka_unit_test(a_failed_read_is_taken_in_as_well),
    };
    return cmocka_run_group_tests_name("turn", tests, NULL, NULL);
}
