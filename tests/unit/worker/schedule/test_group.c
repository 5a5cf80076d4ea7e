/* Goal    shares and groups cut every epoch without gap or overlap, short last ones included.
 * Method  sweep small sizes, compare with counting one by one.                                           */
#include "tests/lib/test.h"
#include "worker/schedule/group.h"

static void check_shares(uint64_t examples, uint32_t batch, uint32_t workers)
{
    uint64_t batches = (examples + batch - 1) / batch, all_positions = 0, all_examples = 0;
    for (uint32_t worker = 0; worker < workers; worker++) {
        const struct dp_share share = {.batches = batches, .worker = worker, .workers = workers};
        uint64_t positions = 0, mine = 0;
        for (uint64_t n = 0; n < batches; n++) {
            if (n % workers != worker)
                continue;
            assert_int_equal(dp_share_number(share, positions), n);
            positions++;
            mine += n + 1 < batches ? batch : examples - n * batch;
        }
        assert_int_equal(dp_share_positions(share), positions);
        assert_int_equal(dp_share_examples(share, examples, batch), mine);
        all_positions += positions;
        all_examples += mine;
    }
    assert_int_equal(all_positions, batches);
    assert_int_equal(all_examples, examples);
}

static void test_shares(void **state)
{
    (void)state;
    for (uint64_t examples = 1; examples <= 40; examples++)
        for (uint32_t batch = 1; batch <= 9; batch++)
            for (uint32_t workers = 1; workers <= 6; workers++)
                check_shares(examples, batch, workers);
}

static void test_groups(void **state)
{
    (void)state;
    for (uint64_t positions = 0; positions <= 30; positions++) {
        for (uint32_t every = 1; every <= 32; every++) {
            uint64_t at = 0, groups = dp_groups(positions, every);
            for (uint64_t g = 0; g < groups; g++) {
                struct dp_group group = dp_group_at(positions, every, g);
                assert_int_equal(group.first, at);
                assert_true(group.count >= 1 && group.count <= every);
                if (g + 1 < groups)
                    assert_int_equal(group.count, every);
                for (uint32_t i = 0; i < group.count; i++, at++) {
                    assert_int_equal(dp_group_ends(positions, every, at), i + 1 == group.count);
                    assert_int_equal(at / every, g);
                }
            }
            assert_int_equal(at, positions);
        }
    }
}

/* The push numbers of all shares are those below their sum, each once. */
static void test_numbers_of_all(void **state)
{
    (void)state;
    for (uint64_t batches = 0; batches <= 30; batches++)
        for (uint32_t workers = 1; workers <= 7; workers++)
            for (uint32_t every = 1; every <= 9; every++) {
                struct dp_share share = {.batches = batches, .workers = workers};
                uint64_t all = dp_groups_of_all(share, every), seen = 0, sum = 0;
                for (uint32_t w = 0; w < workers; w++) {
                    share.worker = w;
                    uint64_t groups = dp_groups(dp_share_positions(share), every);
                    for (uint64_t g = 0; g < groups; g++, sum++) {
                        assert_true(w + workers * g < all);
                        seen |= UINT64_C(1) << (w + workers * g);
                    }
                }
                assert_true(sum == all && all < 64 && seen == (UINT64_C(1) << all) - 1);
            }
    struct dp_share share = {.batches = 30, .worker = 1, .workers = 4};
    assert_int_equal(dp_share_with(share, 11).worker, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shares), cmocka_unit_test(test_groups),
                                       cmocka_unit_test(test_numbers_of_all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
