/* Goal    a page claims what its data carry: by Holm's steps over a family that the number of modes fixes, on pairs of seeds, outside what the
 *         instrument leaves open, and never of a mode with runs that did not end well. Interval and claim are one.
 * Method  comparisons made in memory, beside numbers by arithmetic; drawn families, in which each claim is held against its interval. */
#include "tests/lib/test.h"

#include "deploy/compare/claims.h"
#include "tests/system/compare/comparison_bed.h"

#include <stdlib.h>

static void near(double got, double right, double within)
{
    if (!(fabs(got - right) <= within))
        fail_msg("%.6f, not %.6f", got, right);
}

static struct dp_claim claim_of(const json_t *root, enum dp_comparison_quantity quantity, size_t mode,
                                size_t beside)
{
    struct dp_claims claims;
    struct dp_error err;
    assert_int_equal(dp_claims_of(root, &claims, &err), DP_OK);
    struct dp_claim out = dp_claims_find(&claims, quantity, mode, beside);
    dp_claims_clear(&claims);
    return out;
}

/* What a seed does to both modes is not in their difference. */
static void differences_are_paired(void **state)
{
    static const double async[3] = {0.5, 0.7, 0.9}, sync[3] = {0.55, 0.741, 0.917};
    json_t *root = bed_comparison(3);
    for (int s = 0; s < 3; s++) { /* not in the order of the seeds */
        bed_add(root, "async", 3 - s, &async[2 - s], 1, 100);
        bed_add(root, "sync", s + 1, &sync[s], 1, 50 + 0.01 * s);
    }
    struct dp_claim end = claim_of(root, DP_QUANTITY_METRIC, 1, 0);
    assert_int_equal(end.n, 3);
    /* By SciPy: logits differ by 0.2006707, 0.2038747, 0.2050423; speed takes the first of four steps, and this the second. */
    near(end.at.mean, 0.2031959, 1e-7);
    near(end.at.sd, 0.0022635, 1e-7);
    near(end.p * 1e5, 4.135907, 1e-6);
    near(end.alpha, 0.05 / 3, 1e-12);
    assert_true(end.shown);
    struct dp_claim speed = claim_of(root, DP_QUANTITY_EXAMPLES_S, 1, 0);
    near(speed.ratio.mean, 0.5001, 1e-6);
    near(speed.alpha, 0.0125, 1e-12);
    assert_true(speed.shown);
    struct dp_claim other = claim_of(root, DP_QUANTITY_EXAMPLES_S, 0, 1); /* the same, from the other side */
    near(other.ratio.low * speed.ratio.high, 1, 1e-12);
    near(other.difference.mean, -speed.difference.mean, 1e-12);
    json_decref(root);
}

/* Holm: of four, the k-th in order at 0.05 / (5 - k), up to the first that fails. */
static void steps_are_those_of_holm(void **state)
{
    struct dp_claims claims;
    struct dp_error err;
    unsigned seed = 1;
    for (int round = 0; round < 300; round++) {
        json_t *root = bed_comparison(5);
        double by = round % 3 * 0.03;
        for (int s = 1; s <= 5; s++)
            for (int m = 0; m < 2; m++) {
                double noise[4], at[5];
                for (int i = 0; i < 4; i++)
                    noise[i] = (double)rand_r(&seed) / RAND_MAX;
                for (int i = 0; i < 5; i++)
                    at[i] = 0.80 + 0.03 * i + 0.02 * noise[0] + m * by;
                bed_add(root, m ? "sync" : "async", s, at, 5, 100 + 20 * noise[1] + m * by * 500);
            }
        assert_int_equal(dp_claims_of(root, &claims, &err), DP_OK);
        size_t shown = 0;
        for (size_t i = 0; i < claims.count; i++)
            shown += claims.claim[i].shown;
        for (size_t i = 0; i < claims.count; i++) {
            const struct dp_claim *one = &claims.claim[i];
            size_t smaller = 0;
            for (size_t k = 0; k < claims.count; k++)
                smaller += claims.claim[k].p < one->p || (claims.claim[k].p == one->p && k < i);
            size_t step = smaller < shown ? smaller : shown;
            if (step == claims.count)
                step--;
            near(one->alpha, 0.05 / (double)(claims.count - step), 1e-12);
            assert_int_equal(one->shown, smaller < shown);
            if (one->n == 0 || isnan(one->difference.low))
                continue;
            assert_int_equal(one->shown, one->difference.low > 0 || one->difference.high < 0);
            assert_int_equal(one->shown, one->p <= one->alpha);
            if (one->ratio.n > 0)
                assert_int_equal(one->shown, one->ratio.low > 1 || one->ratio.high < 1);
        }
        dp_claims_clear(&claims);
        json_decref(root);
    }
}

static void too_little_shows_nothing(void **state)
{
    static const double high[] = {0.9}, higher[] = {0.91};
    json_t *root = bed_comparison(3);
    for (int s = 1; s <= 3; s++) {
        bed_add(root, "async", s, high, 1, 1);
        bed_add(root, "sync", s, higher, 1, 1);
    }
    /* Each seed differs by the same: by one test example, for all that is known. */
    assert_false(claim_of(root, DP_QUANTITY_METRIC, 1, 0).shown);
    json_decref(root);
}

/* With 100 test examples nothing of an accuracy is shown that 100,000 show. */
static void the_test_set_is_part_of_it(void **state)
{
    for (int examples = 100; examples <= 100000; examples *= 1000) {
        json_t *root = bed_comparison(5);
        for (int s = 1; s <= 5; s++) {
            const double one = 0.9 + 0.001 * s, other = one + 0.01 + 0.0005 * (s % 2);
            bed_add(root, "async", s, &one, 1, 10);
            bed_add(root, "sync", s, &other, 1, 10);
        }
        (void)json_object_set_new(json_array_get(json_object_get(root, "runs"), 3), "scored_examples",
                                  json_integer(examples));
        struct dp_claim end = claim_of(root, DP_QUANTITY_METRIC, 1, 0);
        assert_int_equal(end.shown, examples == 100000);
        assert_int_equal(end.coarse, examples == 100);
        json_decref(root);
    }
}

/* Samples at 1, 2, 3 s ...: a crossing in the same gap is no order, one in the next gap begins where that ends, one after it is an order. */
static void an_order_is_beyond_the_samples(void **state)
{
    static const double third[] = {0.5, 0.6, 0.95, 0.96, 0.96}, just[] = {0.5, 0.89, 0.91, 0.96, 0.96},
                        fourth[] = {0.5, 0.6, 0.7, 0.95, 0.96}, fifth[] = {0.5, 0.6, 0.7, 0.8, 0.96};
    const double *const other[] = {just, fourth, fifth};
    for (size_t i = 0; i < 3; i++) {
        json_t *root = bed_comparison(3);
        for (int s = 1; s <= 3; s++) {
            bed_add(root, "async", s, third, 5, 1);
            bed_add(root, "sync", s, other[i], 5, 1);
        }
        struct dp_claim time = claim_of(root, DP_QUANTITY_SECONDS_TO, 1, 0);
        assert_int_equal(time.shown, i == 2);
        assert_int_equal(time.coarse, i < 2); /* the same with each seed, and yet no order */
        json_decref(root);
    }
}

/* Three pairs differ by two seconds each; a fourth run of sync did not reach the target, or none did. */
static void a_target_of_some_seeds_is_compared_by_counts(void **state)
{
    static const double soon[] = {0.5, 0.95}, never[] = {0.5, 0.6};
    for (int reached = 0; reached <= 5; reached += 4) {
        json_t *root = bed_comparison(5);
        for (int s = 1; s <= 5; s++) {
            bed_add(root, "async", s, soon, 2, 1);
            bed_add(root, "sync", s, s <= reached ? soon : never, 2, 1);
        }
        struct dp_claim time = claim_of(root, DP_QUANTITY_SECONDS_TO, 1, 0);
        assert_true(time.by_count);
        assert_int_equal(time.n, 0);
        assert_int_equal(time.reached[0], reached);
        assert_int_equal(time.reached[1], 5);
        near(time.p, reached ? 1 : 0.0079365, 1e-7);
        assert_false(claim_of(root, DP_QUANTITY_EXAMPLES_TO, 1, 0).by_count); /* once */
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_paired),
        cmocka_unit_test(steps_are_those_of_holm),
        cmocka_unit_test(too_little_shows_nothing),
        cmocka_unit_test(the_test_set_is_part_of_it),
        cmocka_unit_test(an_order_is_beyond_the_samples),
        cmocka_unit_test(a_target_of_some_seeds_is_compared_by_counts),
    };
    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
