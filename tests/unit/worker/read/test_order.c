/* Goal: dp_order_at is a bijection of [0, n), chosen by seed and epoch, without visible bias. */
#include "worker/read/order.h"

#include "tests/lib/test.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static void check_bijection(uint64_t n, uint64_t seed, uint32_t epoch)
{
    bool *seen = calloc(n, sizeof *seen);
    assert_non_null(seen);
    struct dp_order order;
    dp_order_init(&order, n, seed, epoch);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t at = dp_order_at(&order, i);
        if (at >= n || seen[at])
            fail_msg("n %lu seed %lu epoch %u: %lu -> %lu", (unsigned long)n, (unsigned long)seed, epoch,
                     (unsigned long)i, (unsigned long)at);
        seen[at] = true;
    }
    free(seen);
}

static void bijection(void **state)
{
    for (uint64_t n = 1; n <= 300; n++)
        for (uint32_t e = 0; e < 5; e++)
            check_bijection(n, n * 31, e);
    static const uint64_t large[] = {1023, 1024, 1025, 65535, 65536, 65537, 1000003};
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        check_bijection(large[i], 7, 1);
}

/* Too large to go through: elements stay inside, and none is met twice. */
static void huge(void **state)
{
    static const uint64_t ns[] = {((uint64_t)1 << 32) + 1, ((uint64_t)1 << 62) + 1, ((uint64_t)1 << 63) - 1};
    for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++) {
        struct dp_order order;
        dp_order_init(&order, ns[k], 1, 0);
        uint64_t got[200];
        for (uint64_t i = 0; i < 200; i++) {
            got[i] = dp_order_at(&order, i < 100 ? i : ns[k] - 1 - (i - 100));
            assert_true(got[i] < ns[k]);
            for (uint64_t j = 0; j < i; j++)
                assert_true(got[j] != got[i]);
        }
    }
}

/* Many side by side are the same as one after the other, whatever their number. */
static void each(void **state)
{
    static const uint64_t ns[] = {1, 2, 5, 17, 1000, 65537, ((uint64_t)1 << 62) + 1, ((uint64_t)1 << 63) - 1};
    for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++)
        for (uint32_t count = 0; count < 70; count++) {
            struct dp_order order;
            uint64_t at[70];
            dp_order_init(&order, ns[k], 3, count);
            for (uint32_t i = 0; i < count; i++)
                at[i] = i * UINT64_C(977) % ns[k];
            dp_order_each(&order, at, count);
            for (uint32_t i = 0; i < count; i++)
                assert_int_equal(at[i], dp_order_at(&order, i * UINT64_C(977) % ns[k]));
        }
}

static uint64_t equal_places(uint64_t n, uint64_t seed_a, uint32_t epoch_a, uint64_t seed_b, uint32_t epoch_b)
{
    struct dp_order a, b;
    dp_order_init(&a, n, seed_a, epoch_a);
    dp_order_init(&b, n, seed_b, epoch_b);
    uint64_t same = 0;
    for (uint64_t i = 0; i < n; i++)
        same += dp_order_at(&a, i) == dp_order_at(&b, i);
    return same;
}

static void seed_and_epoch_choose(void **state)
{
    assert_int_equal(equal_places(10000, 5, 3, 5, 3), 10000);
    /* Two random permutations agree in 1 place on average; in 12 once in a thousand million. */
    assert_true(equal_places(10000, 5, 3, 5, 4) < 12);
    assert_true(equal_places(10000, 5, 3, 6, 3) < 12);
    assert_true(equal_places(10000, 0, 1, 1, 0) < 12);
    assert_true(equal_places(10000, 0, 0, UINT64_MAX, UINT32_MAX) < 12);
}

/* Each of the 6 orders of 3, and each place of element 0 among 10, about equally often. */
static void no_bias(void **state)
{
    const int runs = 30000;
    int orders[27] = {0}, places[10] = {0};
    for (int e = 0; e < runs; e++) {
        struct dp_order order;
        dp_order_init(&order, 3, 11, (uint32_t)e);
        orders[dp_order_at(&order, 0) * 9 + dp_order_at(&order, 1) * 3 + dp_order_at(&order, 2)]++;
        dp_order_init(&order, 10, 11, (uint32_t)e);
        places[dp_order_at(&order, 0)]++;
    }
    int kinds = 0;
    for (int i = 0; i < 27; i++)
        if (orders[i] > 0) {
            kinds++;
            assert_in_range(orders[i], runs / 6 * 9 / 10, runs / 6 * 11 / 10); /* 8 sigma */
        }
    assert_int_equal(kinds, 6);
    for (int i = 0; i < 10; i++)
        assert_in_range(places[i], runs / 10 * 88 / 100, runs / 10 * 112 / 100); /* 7 sigma */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(bijection),
                                       cmocka_unit_test(huge),
                                       cmocka_unit_test(each),
                                       cmocka_unit_test(each),
                                       cmocka_unit_test(seed_and_epoch_choose),
                                       cmocka_unit_test(no_bias)};
    return cmocka_run_group_tests_name("order", tests, NULL, NULL);
}
