/* bench draws: Zipf's frequencies are those of its formula, uniform ones even; figures of repeats are right.
 * Method: chi-square over the first ranks and the rest, at fixed seeds; a wrong exponent is seen.         */
#include "tests/lib/test.h"

#include "deploy/bench/bench_show.h"
#include "deploy/cli/draw.h"

#include <math.h>

#define RANKS 40

/* Sum of (seen - expected)^2 / expected over ranks 1 .. RANKS and the rest. */
static double chi_square(double drawn, double expected_exponent, uint64_t n, unsigned tries)
{
    struct dp_draw draw = {.state = 7};
    struct dp_zipf zipf;
    double seen[RANKS + 1] = {0}, sum = 0, chi = 0, rest = 1;
    dp_zipf_init(&zipf, n, drawn);
    for (unsigned i = 0; i < tries; i++) {
        uint64_t k = dp_zipf_draw(&zipf, &draw);
        assert_true(k >= 1 && k <= n);
        seen[k <= RANKS ? k - 1 : RANKS]++;
    }
    for (uint64_t k = 1; k <= n; k++)
        sum += pow((double)k, -expected_exponent);
    for (uint64_t k = 1; k <= RANKS + 1; k++) {
        double share = k <= RANKS ? pow((double)k, -expected_exponent) / sum : rest;
        rest -= share;
        double want = share * tries;
        chi += (seen[k - 1] - want) * (seen[k - 1] - want) / want;
    }
    return chi;
}

static void zipf_follows_its_formula(void **state)
{
    static const double exponents[] = {0.7, 1.0, 1.05, 2.0};
    for (int i = 0; i < 4; i++) {
        /* 40 degrees of freedom: 73.4 is the 99.9% point. */
        assert_true(chi_square(exponents[i], exponents[i], 100000, 400000) < 73.4);
        assert_true(chi_square(exponents[i], exponents[i] + 0.05, 100000, 400000) > 200);
    }
}

static void zipf_of_one_rank_is_one(void **state)
{
    struct dp_draw draw = {.state = 3};
    struct dp_zipf zipf;
    dp_zipf_init(&zipf, 1, 1.05);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(dp_zipf_draw(&zipf, &draw), 1);
}

static void uniform_draws_are_even(void **state)
{
    struct dp_draw draw = {.state = 11};
    double seen[10] = {0}, chi = 0;
    for (int i = 0; i < 100000; i++)
        seen[dp_draw_below(&draw, 10)]++;
    for (int i = 0; i < 10; i++)
        chi += (seen[i] - 10000) * (seen[i] - 10000) / 10000;
    assert_true(chi < 27.9); /* 9 degrees of freedom, 99.9% */
}

static void figures_are_medians_and_quantiles(void **state)
{
    struct dp_bench_figure figure = {0};
    uint64_t ns[1000];
    assert_true(dp_bench_median(&figure) == 0.0 && dp_bench_spread(&figure) == 0.0);
    dp_bench_add(&figure, 5);
    dp_bench_add(&figure, 1);
    assert_true(dp_bench_median(&figure) == 3.0);
    dp_bench_add(&figure, 2);
    assert_true(dp_bench_median(&figure) == 2.0 && dp_bench_spread(&figure) == 2.0);
    for (uint64_t i = 0; i < 1000; i++)
        ns[i] = 1000 - i;
    assert_true(dp_bench_quantile(ns, 1000, 0.5) == 501.0);
    assert_true(dp_bench_quantile(ns, 1000, 0.999) == 1000.0);
    assert_true(dp_bench_quantile(ns, 0, 0.5) == 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipf_follows_its_formula),
        cmocka_unit_test(zipf_of_one_rank_is_one),
        cmocka_unit_test(uniform_draws_are_even),
        cmocka_unit_test(figures_are_medians_and_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
