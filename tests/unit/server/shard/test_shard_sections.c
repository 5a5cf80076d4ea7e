/* Shard: requests over several tables, at the edges of its range, and jobs of different kinds at the store.
 */
#include "tests/unit/server/shard/bed.h"

#include <stdlib.h>
#include <string.h>

#define T ((uint64_t)1 << 63 | 1)

static const char *const names[3] = {"a", "b", "c"};

static void start(struct bed *bed, uint32_t shards)
{
    bed_open(bed, 0, shards);
    bed_meet(bed, 1);
    bed_meet(bed, 2);
    for (uint32_t i = 0; i < 3; i++) {
        struct dp_table_spec spec = bed_sgd(names[i], i + 1); /* each another width */
        bed_make_table(bed, 1, 1 + i, &spec);
    }
}

/* All three tables, the first one `first`; n keys of each; push: gradient 10 * table + row. */
static uint64_t send_all(struct bed *bed, bool push, uint64_t sequence, uint32_t first, const uint64_t *keys,
                         uint32_t n)
{
    struct dp_request request = {.kind = push ? DP_REQUEST_PUSH : DP_REQUEST_PULL,
                                 .session = 1,
                                 .sequence = sequence,
                                 .stream = push ? T : 0,
                                 .number = push ? sequence : 0,
                                 .rate = 1,
                                 .sections = 3};
    struct dp_frame frames[6];
    uint32_t made = 0;
    for (uint32_t s = 0; s < 3; s++) {
        uint32_t table = (first + s) % 3, dim = table + 1;
        /* Table t has its rows in another order of arrival: the row numbers of a key differ. */
        uint32_t skip = sequence == 4 && n > 2 ? table : 0, rows = n - skip;
        request.section[s] = (struct dp_section){.table = dp_table_id(names[table]), .rows = rows};
        frames[made++] = dp_frame_copy(keys + skip, rows * sizeof keys[0]);
        if (!push)
            continue;
        frames[made] = dp_frame_new((size_t)rows * dim * 4);
        for (uint32_t i = 0; i < rows * dim; i++) {
            float gradient = skip ? 0 : (float)(10 * table + i / dim);
            memcpy((char *)frames[made].data + (size_t)i * 4, &gradient, 4);
        }
        made++;
    }
    return bed_send(bed, &request, frames, made);
}

static void expect_all(struct bed *bed, bool push, uint64_t sequence, uint32_t first, const uint64_t *keys,
                       uint32_t n, enum dp_status wanted)
{
    uint64_t id = send_all(bed, push, sequence, first, keys, n);
    bed_turn(bed);
    bed_expect(bed, id, wanted);
}

static void check_all(const struct bed_reply *reply, uint32_t first, uint32_t n, float times)
{
    uint32_t at = 0;
    for (uint32_t s = 0; s < 3; s++) {
        uint32_t table = (first + s) % 3, dim = table + 1;
        for (uint32_t i = 0; i < n * dim; i++)
            assert_true(reply->value[at++] ==
                        -(table == 0 ? times + 1 : times) * (float)(10 * table + i / dim));
    }
    assert_int_equal(reply->values, at);
}

static void sections_stand_in_any_order(void **state)
{
    struct bed bed;
    uint64_t keys[7];
    start(&bed, 1);
    bed_keys(&bed, 1, 7, keys);
    for (uint32_t first = 0; first < 4; first++)
        expect_all(&bed, true, 4 + first, first % 3, keys, 7, DP_OK);
    for (uint32_t first = 0; first < 3; first++) {
        bed_restart(&bed); /* so that each order is read from the store too */
        bed_meet(&bed, 1);
        for (uint32_t again = 0; again < 2; again++) {
            uint64_t id = send_all(&bed, false, 1 + again, first, keys, 7);
            bed_turn(&bed);
            bed_turn(&bed);
            check_all(bed_expect(&bed, id, DP_OK), first, 7, 3);
        }
    }
    bed_close(&bed);
}

static void keys_beyond_either_end_are_refused(void **state)
{
    struct bed bed;
    start(&bed, 2);
    uint64_t last = UINT64_MAX / 2, keys[2] = {0, last};
    expect_all(&bed, true, 4, 0, keys, 2, DP_OK);
    keys[1] = last + 1;
    expect_all(&bed, true, 5, 0, keys, 2, DP_INVALID);
    expect_all(&bed, false, 6, 0, keys, 2, DP_INVALID);
    bed_close(&bed);
}

/* Each frame would be within its limit, the answer not. */
static void a_pull_whose_tables_are_too_large_together_is_refused(void **state)
{
    struct bed bed;
    bed_open(&bed, 0, 1);
    bed_meet(&bed, 1);
    for (uint32_t i = 0; i < 3; i++) {
        struct dp_table_spec spec = bed_sgd(names[i], DP_TABLE_DIM_MAX);
        bed_make_table(&bed, 1, 1 + i, &spec);
    }
    uint64_t *keys = malloc(700 * sizeof *keys);
    for (uint64_t i = 0; i < 700; i++)
        keys[i] = i;
    uint64_t id = send_all(&bed, false, 4, 0, keys, 700); /* 3 times 175 MiB */
    free(keys);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_INVALID);
    bed_close(&bed);
}

static void a_read_that_ends_does_not_wake_who_waits_for_a_table(void **state)
{
    struct bed bed;
    uint64_t key;
    start(&bed, 1);
    bed_keys(&bed, 1, 1, &key);
    expect_all(&bed, true, 4, 0, &key, 1, DP_OK);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    bed_meet(&bed, 2);
    struct dp_table_spec spec = bed_sgd("d", 1);
    dp_fake_store_hold(bed.fake, true);
    uint64_t create = bed_create(&bed, 2, 1, &spec);
    uint64_t pull = send_all(&bed, false, 1, 0, &key, 1);
    bed_turn(&bed);
    assert_int_equal(dp_fake_store_held(bed.fake), 2);
    dp_fake_store_release(bed.fake, 1); /* the read */
    bed_turn(&bed);
    bed_expect(&bed, pull, DP_OK);
    assert_null(bed_reply_to(&bed, create));
    dp_fake_store_hold(bed.fake, false);
    bed_turn(&bed);
    bed_expect(&bed, create, DP_OK);
    bed_close(&bed);
}

/* More streams than are reserved at once, and a restart in the second block. */
static void streams_go_on_behind_what_was_reserved(void **state)
{
    struct bed bed;
    uint64_t last = 0;
    bed_open(&bed, 0, 1);
    for (uint64_t i = 0; i < 1100; i++) {
        uint64_t id = bed_hello(&bed, 1000 + i, 1, true);
        bed_turn(&bed);
        uint64_t stream = bed_expect(&bed, id, DP_OK)->reply.stream;
        assert_true(stream > last);
        last = stream;
        bed.replies = 0;
        if (i == 30 || i == 1060)
            bed_restart(&bed);
    }
    bed_close(&bed);
}

/* After a restart: one table has rows that must be read, another none at all, and a request names new keys of both. */
static void a_table_without_rows_beside_one_that_is_read(void **state)
{
    struct bed bed;
    uint64_t keys[7];
    start(&bed, 1);
    bed_keys(&bed, 1, 7, keys);
    uint64_t id = bed_push(&bed, 1, 4, "b", keys, 1, 2, 1, T, 0);
    bed_turn(&bed);
    bed_expect(&bed, id, DP_OK);
    bed_restart(&bed);
    bed_meet(&bed, 1);
    id = send_all(&bed, false, 1, 0, keys, 7);
    bed_turn(&bed);
    bed_turn(&bed); /* what was read */
    bed_expect(&bed, id, DP_OK);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_without_rows_beside_one_that_is_read),
        cmocka_unit_test(sections_stand_in_any_order),
        cmocka_unit_test(keys_beyond_either_end_are_refused),
        cmocka_unit_test(a_pull_whose_tables_are_too_large_together_is_refused),
        cmocka_unit_test(a_read_that_ends_does_not_wake_who_waits_for_a_table),
        cmocka_unit_test(streams_go_on_behind_what_was_reserved),
    };
    return cmocka_run_group_tests_name("shard_sections", tests, NULL, NULL);
}
