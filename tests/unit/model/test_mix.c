/* mix: a bijection (unmix gives every key back, both ways round) that spreads neighbouring keys. */
#include "tests/lib/test.h"

#include "common/model/mix.h"
#include "common/model/range.h"
#include "tests/unit/model/random.h"

static void both_ways_round(uint64_t key)
{
    assert_true(dp_unmix(dp_mix(key)) == key);
    assert_true(dp_mix(dp_unmix(key)) == key);
}

static void unmix_gives_back_every_key(void **state)
{
    uint64_t seed = 1;
    for (int i = 0; i < 1000000; i++)
        both_ways_round(random_u64(&seed));
    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t one = (uint64_t)1 << bit;
        both_ways_round(one);
        both_ways_round(one - 1);
        both_ways_round(one + 1);
        both_ways_round(~one);
        both_ways_round(0 - one);
    }
    assert_true(dp_mix(0) == 0);
}

/* MurmurHash3's finaliser, worked out by another program: a changed constant would strand every stored row.
 */
static void values_are_pinned(void **state)
{
    assert_true(dp_mix(1) == 0xb456bcfc34c2cb2cu);
    assert_true(dp_mix(UINT64_MAX) == 0x64b5720b4b825f21u);
    assert_true(dp_mix(0x0123456789abcdefu) == 0x87cbfbfe89022ceau);
}

static void keys_from_0_on_fall_evenly_on_shards(void **state)
{
    enum { SHARDS = 16, KEYS = 160000 };
    uint32_t count[SHARDS] = {0};
    for (uint64_t key = 0; key < KEYS; key++)
        count[dp_shard_of(dp_mix(key), SHARDS)]++;
    /* 10,000 expected, deviation 97. */
    for (int i = 0; i < SHARDS; i++)
        assert_in_range(count[i], 9500, 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unmix_gives_back_every_key),
        cmocka_unit_test(values_are_pinned),
        cmocka_unit_test(keys_from_0_on_fall_evenly_on_shards),
    };
    return cmocka_run_group_tests_name("mix", tests, NULL, NULL);
}
