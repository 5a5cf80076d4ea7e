/* Metrics: against formulas written out, AUC against all pairs; parts merged are the whole; damaged parts are
 * refused. */
#include "tests/lib/test.h"

#include "fixture.h"
#include "worker/compute/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct dp_metrics *fresh(enum dp_labels labels, uint32_t classes)
{
    struct dp_metrics *m;
    assert_int_equal(dp_metrics_new(labels, classes, 0, &m, NULL), DP_OK);
    return m;
}

static struct dp_figures figures(const struct dp_metrics *m)
{
    struct dp_figures f;
    assert_int_equal(dp_metrics_figures(m, &f, NULL), DP_OK);
    return f;
}

static double auc_of_pairs(const float *x, const float *y, size_t n)
{
    double right = 0, pairs = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            if (y[i] == 1 && y[j] == 0) {
                pairs += 1;
                right += x[i] > x[j] ? 1 : x[i] == x[j] ? 0.5 : 0;
            }
        }
    }
    return right / pairs;
}

/* levels > 0: that many different scores, so that many tie; 0 and -0 tie too. */
static void auc_is_the_share_of_pairs(void **state)
{
    enum { N = 500 };
    float x[N], y[N];
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t random = seed;
        size_t n = 2 + fixture_random(&random) % (N - 2);
        int levels = (int)(seed % 4) * 3;
        double loss = 0, right = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = 3 * fixture_uniform(&random);
            if (levels > 0)
                x[i] = truncf(x[i] * (float)levels / 3) * 0.1f;
            y[i] = i < 2 ? (float)i : fixture_uniform(&random) + 0.3f * x[i] > 0 ? 1 : 0;
            double p = 1 / (1 + exp(-(double)x[i]));
            loss -= y[i] == 1 ? log(p) : log(1 - p);
            right += (x[i] > 0) == (y[i] == 1);
        }
        struct dp_metrics *m = fresh(DP_LABELS_BINARY, 0);
        assert_int_equal(dp_metrics_add(m, x, y, NULL, (uint32_t)n / 2, NULL), DP_OK);
        assert_int_equal(dp_metrics_add(m, x + n / 2, y + n / 2, NULL, (uint32_t)(n - n / 2), NULL), DP_OK);
        struct dp_figures f = figures(m);
        assert_int_equal(f.examples, n);
        assert_true(fabs(f.auc - auc_of_pairs(x, y, n)) < 1e-12);
        assert_true(fabs(f.loss - loss / (double)n) < 1e-9);
        assert_true(fabs(f.accuracy - right / (double)n) < 1e-12);
        assert_true(isnan(f.rmse));
        dp_metrics_free(&m);
    }
}

static void figures_that_do_not_fit_are_nan(void **state)
{
    const float x[] = {1e4f, -1e4f, 3.4e38f}, ones[] = {1, 1, 1};
    struct dp_metrics *m = fresh(DP_LABELS_BINARY, 0);
    struct dp_figures f = figures(m);
    assert_true(f.examples == 0 && isnan(f.loss) && isnan(f.auc) && isnan(f.accuracy) && isnan(f.rmse));
    assert_true(isnan(f.hr10) && isnan(f.ndcg10));
    assert_int_equal(dp_metrics_add(m, x, ones, NULL, 3, NULL), DP_OK);
    f = figures(m);
    assert_true(isnan(f.auc)); /* one class only */
    assert_true(fabs(f.loss - 1e4 / 3) < 1e-6);
    dp_metrics_free(&m);
    dp_metrics_free(&m);
    struct dp_error err = {0};
    assert_int_equal(dp_metrics_new(DP_LABELS_CLASS, 1, 0, &m, &err), DP_ARGUMENT);
    assert_int_equal(dp_metrics_new((enum dp_labels)9, 1, 0, &m, &err), DP_ARGUMENT);
}

static void classes_and_values(void **state)
{
    const float logits[] = {1, 2, 0, 1e4f, 0, -1e4f, 5, 5, 5}, labels[] = {1, 0, 2};
    struct dp_metrics *m = fresh(DP_LABELS_CLASS, 3);
    assert_int_equal(dp_metrics_add(m, logits, labels, NULL, 3, NULL), DP_OK);
    struct dp_figures f = figures(m);
    double want = -log(exp(2) / (exp(1) + exp(2) + 1)) + 0 + log(3);
    assert_true(fabs(f.loss - want / 3) < 1e-9);
    assert_true(fabs(f.accuracy - 2.0 / 3) < 1e-12 && isnan(f.auc) && isnan(f.rmse));
    dp_metrics_free(&m);

    const float values[] = {1, -2}, targets[] = {2, 2};
    m = fresh(DP_LABELS_ANY, 0);
    assert_int_equal(dp_metrics_add(m, values, targets, NULL, 2, NULL), DP_OK);
    f = figures(m);
    assert_true(f.loss == 8.5 && fabs(f.rmse - sqrt(8.5)) < 1e-12 && isnan(f.accuracy) && isnan(f.auc));
    dp_metrics_free(&m);
    m = fresh(DP_LABELS_NONE, 0);
    assert_int_equal(dp_metrics_add(m, values, targets, NULL, 2, NULL), DP_OK);
    f = figures(m);
    assert_true(f.loss == -0.5 && isnan(f.rmse) && isnan(f.accuracy) && isnan(f.auc));
    dp_metrics_free(&m);
    m = fresh(DP_LABELS_ANY, 0);
    dp_metrics_set_unit(m, 1e30);
    assert_int_equal(dp_metrics_add(m, values, targets, NULL, 2, NULL), DP_OK);
    f = figures(m);
    assert_true(fabs(f.loss / 8.5e60 - 1) < 1e-12 && fabs(f.rmse / (sqrt(8.5) * 1e30) - 1) < 1e-12);
    dp_metrics_free(&m);
}

static void bad_parts_add_nothing(void **state)
{
    struct dp_metrics *m = fresh(DP_LABELS_BINARY, 0);
    struct dp_error err = {0};
    const float nan_at_1[] = {1, NAN}, inf_at_0[] = {INFINITY, 1}, good[] = {1, 2};
    const float labels[] = {0, 1}, other[] = {0, 2};
    assert_int_equal(dp_metrics_add(m, nan_at_1, labels, NULL, 2, &err), DP_NOT_FINITE);
    assert_non_null(strstr(err.text, "example 1"));
    assert_int_equal(dp_metrics_add(m, inf_at_0, labels, NULL, 2, &err), DP_NOT_FINITE);
    assert_int_equal(dp_metrics_add(m, good, other, NULL, 2, &err), DP_DATA);
    assert_int_equal(figures(m).examples, 0);
    dp_metrics_free(&m);
    m = fresh(DP_LABELS_CLASS, 2);
    assert_int_equal(dp_metrics_add(m, good, other + 1, NULL, 1, &err), DP_DATA);
    dp_metrics_free(&m);
}

static void parts_merged_are_the_whole(void **state)
{
    enum { N = 300, C = 4 };
    static const enum dp_labels kinds[] = {DP_LABELS_ANY, DP_LABELS_BINARY, DP_LABELS_CLASS};
    for (int kind = 0; kind < 3; kind++) {
        uint64_t random = 11;
        float x[N * C], y[N];
        uint32_t classes = kinds[kind] == DP_LABELS_CLASS ? C : 0, width = classes ? classes : 1;
        for (int i = 0; i < N * C; i++)
            x[i] = fixture_uniform(&random);
        for (int i = 0; i < N; i++)
            y[i] = (float)(fixture_random(&random) % (kinds[kind] == DP_LABELS_BINARY ? 2 : C));
        struct dp_metrics *whole = fresh(kinds[kind], classes), *sum = fresh(kinds[kind], classes);
        assert_int_equal(dp_metrics_add(whole, x, y, NULL, N, NULL), DP_OK);
        for (uint32_t from = 0; from < N; from += 100) {
            struct dp_metrics *part = fresh(kinds[kind], classes);
            uint32_t count = from == 100 ? 0 : 100 + (from == 0) * 100; /* 200, 0, 100 */
            uint32_t at = from;
            void *bytes;
            size_t size;
            assert_int_equal(dp_metrics_add(part, x + (size_t)at * width, y + at, NULL, count, NULL), DP_OK);
            assert_int_equal(dp_metrics_pack(part, &bytes, &size, NULL), DP_OK);
            assert_int_equal(dp_metrics_merge(sum, bytes, size, NULL), DP_OK);
            free(bytes);
            dp_metrics_free(&part);
        }
        struct dp_figures a = figures(whole), b = figures(sum);
        assert_int_equal(a.examples, b.examples);
        assert_true(fabs(a.loss - b.loss) < 1e-12);
        assert_memory_equal(&a.accuracy, &b.accuracy, sizeof a.accuracy);
        assert_memory_equal(&a.auc, &b.auc, sizeof a.auc);
        dp_metrics_free(&whole);
        dp_metrics_free(&sum);
    }
}

/* Every bit flipped in turn, every length cut, another kind. */
static void damaged_parts_are_refused(void **state)
{
    const float x[] = {1, -2, 3}, y[] = {0, 1, 1};
    struct dp_metrics *m = fresh(DP_LABELS_BINARY, 0), *other = fresh(DP_LABELS_ANY, 0);
    struct dp_error err = {0};
    void *bytes;
    size_t size;
    assert_int_equal(dp_metrics_add(m, x, y, NULL, 3, NULL), DP_OK);
    assert_int_equal(dp_metrics_pack(m, &bytes, &size, NULL), DP_OK);
    for (size_t bit = 0; bit < size * 8; bit++) {
        ((unsigned char *)bytes)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        assert_int_equal(dp_metrics_merge(m, bytes, size, &err), DP_DATA);
        ((unsigned char *)bytes)[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < size; cut++) {
        void *copy = malloc(cut + 1);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        assert_int_equal(dp_metrics_merge(m, copy, cut, &err), DP_DATA);
        free(copy);
    }
    assert_int_equal(dp_metrics_merge(other, bytes, size, &err), DP_DATA);
    assert_int_equal(figures(m).examples, 3);
    assert_int_equal(dp_metrics_merge(m, bytes, size, &err), DP_OK);
    assert_int_equal(figures(m).examples, 6);
    free(bytes);
    dp_metrics_free(&m);
    dp_metrics_free(&other);
}

/* Lists of different lengths whose examples come in any order, with many ties, cut among three parts: HR@10, NDCG@10 and
 * BPR's loss as the paper's formulas have them. */
static void ranked_lists(void **state)
{
    enum { LISTS = 40, N = 1500 };
    for (int kind = 0; kind < 2; kind++) {
        enum dp_labels labels = kind ? DP_LABELS_BINARY : DP_LABELS_ANY;
        uint64_t random = 5 + (uint64_t)kind;
        float x[N], y[N];
        uint32_t list[N];
        double hr = 0, ndcg = 0, bpr = 0;
        for (uint32_t i = 0; i < N; i++) { /* list l has its 1 at example 7 l */
            x[i] = roundf(fixture_uniform(&random) * 20);
            y[i] = i % 7 == 0 && i / 7 < LISTS;
            list[i] = y[i] == 1 ? i / 7 : (uint32_t)(fixture_random(&random) % LISTS);
        }
        for (uint32_t l = 0; l < LISTS; l++) {
            unsigned rank = 0;
            for (uint32_t i = 0; i < N; i++)
                if (list[i] == l && i != 7 * l) {
                    rank += x[i] >= x[7 * l];
                    bpr += log(1 + exp((double)(x[i] - x[7 * l]))) / (N - LISTS);
                }
            hr += rank < 10 ? 1.0 / LISTS : 0;
            ndcg += rank < 10 ? 1 / log2(rank + 2) / LISTS : 0;
        }
        assert_true(hr > 0.1 && hr < 0.9);
        struct dp_metrics *sum;
        assert_int_equal(dp_metrics_new(labels, 0, LISTS, &sum, NULL), DP_OK);
        for (uint32_t from = 0; from < N; from += 500) {
            struct dp_metrics *part;
            void *bytes;
            size_t size;
            assert_int_equal(dp_metrics_new(labels, 0, LISTS, &part, NULL), DP_OK);
            assert_int_equal(dp_metrics_add(part, x + from, y + from, list + from, 500, NULL), DP_OK);
            assert_int_equal(dp_metrics_pack(part, &bytes, &size, NULL), DP_OK);
            assert_int_equal(size, dp_metrics_pack_bytes(labels, LISTS, 500));
            assert_int_equal(dp_metrics_merge(sum, bytes, size, NULL), DP_OK);
            free(bytes);
            dp_metrics_free(&part);
        }
        struct dp_figures f = figures(sum);
        assert_true(fabs(f.hr10 - hr) < 1e-9 && fabs(f.ndcg10 - ndcg) < 1e-9);
        assert_true(kind || (fabs(f.loss - bpr) < 1e-9 && isnan(f.rmse)));
        dp_metrics_free(&sum);
    }
}

static void lists_that_cannot_be_ranked(void **state)
{
    const float x[] = {1, 2, 3, 4}, none[] = {1, 0, 0, 0}, two[] = {1, 1, 0, 1}, wrong[] = {2, 0, 0, 1};
    const uint32_t list[] = {0, 0, 1, 1}, beyond[] = {0, 0, 1, 2};
    struct dp_error err = {0};
    struct dp_figures f;
    struct dp_metrics *m;
    assert_int_equal(dp_metrics_new(DP_LABELS_CLASS, 2, 1, &m, &err), DP_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dp_metrics_new(DP_LABELS_ANY, 0, 2, &m, &err), DP_OK);
        assert_int_equal(dp_metrics_add(m, x, wrong, list, 4, &err), DP_DATA);
        assert_int_equal(dp_metrics_add(m, x, none, beyond, 4, &err), DP_DATA);
        assert_int_equal(dp_metrics_add(m, x, i ? two : none, list, 4, &err), DP_OK);
        assert_int_equal(dp_metrics_figures(m, &f, &err), DP_DATA);
        assert_non_null(strstr(err.text, i ? "list 0 has 2" : "list 1 has 0"));
        dp_metrics_free(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auc_is_the_share_of_pairs),
        cmocka_unit_test(figures_that_do_not_fit_are_nan),
        cmocka_unit_test(classes_and_values),
        cmocka_unit_test(bad_parts_add_nothing),
        cmocka_unit_test(parts_merged_are_the_whole),
        cmocka_unit_test(damaged_parts_are_refused),
        cmocka_unit_test(ranked_lists),
        cmocka_unit_test(lists_that_cannot_be_ranked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
