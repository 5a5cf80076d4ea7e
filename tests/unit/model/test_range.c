/* range: for every number of shards the ranges cover each mixed key once, in order, evenly, and dp_shard_of
 * agrees at both ends of each. */
#include "tests/lib/test.h"

#include "common/model/range.h"
#include "tests/unit/model/random.h"

static void check_cover(uint32_t shards)
{
    uint64_t next = 0;
    for (uint32_t shard = 0; shard < shards; shard++) {
        struct dp_range range = dp_range_of_shard(shard, shards);
        assert_true(range.first == next);
        assert_true(range.first <= range.last);
        assert_int_equal(dp_shard_of(range.first, shards), shard);
        assert_int_equal(dp_shard_of(range.last, shards), shard);
        /* Sizes differ by one key at most. */
        uint64_t even = shards == 1 ? UINT64_MAX : (uint64_t)(((unsigned __int128)1 << 64) / shards);
        assert_true(range.last - range.first + (shards > 1) - even <= 1);
        next = range.last + 1;
    }
    assert_true(next == 0); /* past the last key */
}

static void ranges_cover_every_key_once(void **state)
{
    for (uint32_t shards = 1; shards <= 257; shards++)
        check_cover(shards);
    check_cover(65535);
    check_cover(65536);
}

static void ends_agree_for_the_most_shards(void **state)
{
    struct dp_range range = dp_range_of_shard(UINT32_MAX - 1, UINT32_MAX);
    assert_true(range.last == UINT64_MAX);
    assert_true(dp_shard_of(range.first, UINT32_MAX) == UINT32_MAX - 1);
    assert_true(dp_shard_of(range.first - 1, UINT32_MAX) == UINT32_MAX - 2);
}

static void a_key_lies_in_its_shards_range_only(void **state)
{
    uint64_t seed = 2;
    for (int i = 0; i < 20000; i++) {
        uint64_t mixed = random_u64(&seed);
        uint32_t shards = (uint32_t)(random_u64(&seed) % 20 + 1);
        for (uint32_t shard = 0; shard < shards; shard++) {
            bool has = dp_range_has(dp_range_of_shard(shard, shards), mixed);
            assert_true(has == (shard == dp_shard_of(mixed, shards)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_cover_every_key_once),
        cmocka_unit_test(ends_agree_for_the_most_shards),
        cmocka_unit_test(a_key_lies_in_its_shards_range_only),
    };
    return cmocka_run_group_tests_name("range", tests, NULL, NULL);
}
