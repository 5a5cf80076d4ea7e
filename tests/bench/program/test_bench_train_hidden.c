/* Goal    the hidden share is that of its definition (bench_train_hidden.h), in cases that are known beforehand; compare.py's is
 *         held to the same ones (test_compare.py). */
#include "tests/bench/program/bench_train_hidden.h"

#include "tests/lib/test.h"

#include <math.h>

static void known_cases(void **state)
{
    static const struct {
        struct dp_bench_train_lanes
            lanes; /* whole, pulls, copy in, compute, copy out, waiting for the device */
        double hidden;
    } cases[] = {
        {{10, 2, 4, 10, 3, 9}, 1},                               /* the device never stood still */
        {{11, 2, 4, 10, 3, 9}, 0.75},                            /* 1 of at least 4 s of transfers was bare */
        {{13, 2, 4, 10, 3, 9}, 0.25}, {{20, 2, 4, 10, 3, 9}, 0}, /* never below 0 */
        {{20, 12, 4, 10, 3, 0}, 1}, /* pulls are longer: the thread never waited for the device */
        {{20, 12, 4, 10, 3, 1}, 0.9}, {{20, 12, 4, 10, 3, 15}, 0},
        {{30, 1, 2, 10, 20, 4}, 0.6}, /* copies out are longer */
        {{30, 1, 20, 10, 2, 4}, 0.6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(fabs(dp_bench_train_hidden(&cases[i].lanes) - cases[i].hidden) < 1e-12);
}

static void nothing_to_hide(void **state)
{
    static const struct dp_bench_train_lanes host = {10, 2, 0, 0, 0, 0}, alone = {10, 0, 0, 9, 0, 9};
    assert_true(isnan(dp_bench_train_hidden(&host)));
    assert_true(isnan(dp_bench_train_hidden(&alone)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_cases),
        cmocka_unit_test(nothing_to_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
