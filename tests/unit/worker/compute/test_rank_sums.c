/* Goal: places, recall and NDCG are those of a full sort; sums of parts are those of the whole; scores by factors are the products.
 * Method: random scores with many ties, ranked by brute force in float64. */
#include "tests/lib/test.h"
#include "worker/compute/factors.h"
#include "worker/compute/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITEMS 300u
#define USERS 50u

static uint64_t random_state = 17;
static uint32_t draw(uint32_t below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(random_state >> 33) % below;
}

struct user {
    float scores[ITEMS];
    uint8_t what[ITEMS];
    uint32_t tests;
};

static void make(struct user *u)
{
    u->tests = 0;
    for (uint32_t i = 0; i < ITEMS; i++) {
        u->scores[i] = (float)draw(40) - 20; /* many are equal */
        u->what[i] = draw(5) == 0 ? DP_RANK_LEFT_OUT : draw(12) == 0 ? DP_RANK_WANTED : DP_RANK_ORDINARY;
        u->tests += u->what[i] == DP_RANK_WANTED;
    }
}

/* How many stand before a wanted item: better ones, equal ones that are not wanted, and wanted ones that are counted so far. */
static uint32_t place_of(const struct user *u, uint32_t item)
{
    uint32_t before = 0;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (u->what[i] != DP_RANK_LEFT_OUT && i != item)
            before += u->scores[i] > u->scores[item] ||
                      (u->scores[i] == u->scores[item] && (u->what[i] == DP_RANK_ORDINARY || i < item));
    return before;
}

static void brute(const struct user *u, uint32_t k, double *recall, double *ndcg)
{
    double found = 0, have = 0, best = 0;
    for (uint32_t i = 0; i < ITEMS; i++)
        if (u->what[i] == DP_RANK_WANTED && place_of(u, i) < k) {
            found++;
            have += 1 / log2(place_of(u, i) + 2.0);
        }
    for (uint32_t i = 0; i < k && i < u->tests; i++)
        best += 1 / log2(i + 2.0);
    *recall += found / u->tests;
    *ndcg += have / best;
}

static void figures_are_those_of_a_sort(void **state)
{
    static struct user user;
    struct dp_rank_sums sums[2] = {{.top = {10, 25}, .items = ITEMS}, {.top = {10, 25}, .items = ITEMS}};
    struct dp_rank_best heap[25];
    struct dp_figures figures;
    uint32_t places[25];
    double recall[2] = {0}, ndcg[2] = {0};
    uint64_t pairs = 0;
    for (uint32_t u = 0; u < USERS; u++) {
        make(&user);
        uint32_t hits = dp_rank_places(user.scores, user.what, ITEMS, 25, heap, places);
        for (uint32_t h = 0; h < hits; h++)
            assert_true(places[h] < 25 && (h == 0 || places[h] > places[h - 1]));
        dp_rank_sums_user(&sums[u % 2], places, hits, user.tests);
        pairs += user.tests;
        brute(&user, 10, &recall[0], &ndcg[0]);
        brute(&user, 25, &recall[1], &ndcg[1]);
    }
    dp_rank_sums_add(&sums[0], &sums[1]);
    dp_rank_sums_figures(&sums[0], DP_LABELS_BINARY, &figures);
    assert_true(figures.ranked_users == USERS && figures.ranked_items == ITEMS && sums[0].pairs == pairs);
    for (int t = 0; t < 2; t++) {
        assert_true(fabs(figures.recall[t] - recall[t] / USERS) < 1e-12);
        assert_true(fabs(figures.ndcg[t] - ndcg[t] / USERS) < 1e-12);
    }
    assert_true(isnan(figures.hr10) && isnan(figures.loss));
}

static void fewer_items_than_k(void **state)
{
    static const float scores[] = {1, 3, 2, 3};
    static const uint8_t what[] = {DP_RANK_WANTED, DP_RANK_ORDINARY, DP_RANK_LEFT_OUT, DP_RANK_WANTED};
    struct dp_rank_best heap[20];
    uint32_t places[20];
    assert_int_equal(dp_rank_places(scores, what, 4, 20, heap, places), 2);
    assert_true(places[0] == 1 && places[1] == 2);
    assert_int_equal(dp_rank_places(scores, what, 4, 2, heap, places), 1);
    assert_int_equal(dp_rank_places(scores, what, 4, 1, heap, places), 0);
}

/* A part that travels as bytes; what the sampled items say. */
static void parts_are_merged(void **state)
{
    static const float others[2][3] = {{-1, 2, 0.5f}, {4, 4, 4}};
    struct dp_error err;
    struct dp_figures figures;
    struct dp_metrics *all, *part;
    double loss = 0;
    assert_int_equal(dp_metrics_new(DP_LABELS_BINARY, 0, 0, &all, &err), DP_OK);
    for (int p = 0; p < 2; p++) {
        struct dp_rank_sums sums = {.top = {10, 20}};
        void *bytes;
        size_t size;
        dp_rank_sums_pair(&sums, DP_LABELS_BINARY, 0.5f, others[p], 3, true);
        for (int i = 0; i < 3; i++)
            loss += log(1 + exp((double)others[p][i]));
        loss += log(1 + exp(-0.5));
        assert_int_equal(dp_metrics_new(DP_LABELS_BINARY, 0, 0, &part, &err), DP_OK);
        dp_metrics_add_ranks(part, &sums);
        assert_int_equal(dp_metrics_pack(part, &bytes, &size, &err), DP_OK);
        assert_true(size == dp_metrics_pack_bytes(DP_LABELS_BINARY, 0, 0));
        assert_int_equal(dp_metrics_merge(all, bytes, size, &err), DP_OK);
        ((unsigned char *)bytes)[100] ^= 1;
        assert_int_equal(dp_metrics_merge(all, bytes, size, &err), DP_DATA);
        free(bytes);
        dp_metrics_free(&part);
    }
    assert_int_equal(dp_metrics_figures(all, &figures, &err), DP_OK);
    assert_int_equal(figures.examples, 8);
    assert_true(fabs(figures.loss - loss / 8) < 1e-9);
    assert_true(figures.accuracy == 3.0 / 8); /* the held one twice, and -1 */
    assert_true(figures.hr10 == 1 && isnan(figures.auc) && figures.ranked_users == 0);
    assert_true(fabs(figures.ndcg10 - (1 / log2(4) + 1 / log2(5)) / 2) < 1e-12); /* 2 and 3 are above it */
    dp_metrics_free(&all);
}

static void a_model_that_only_ranks(void **state)
{
    static const float others[2] = {1, -3};
    struct dp_rank_sums sums = {.top = {10, 20}};
    struct dp_figures figures;
    dp_rank_sums_pair(&sums, DP_LABELS_ANY, 2, others, 2, false);
    dp_rank_sums_figures(&sums, DP_LABELS_ANY, &figures);
    assert_true(fabs(figures.loss - (log(1 + exp(-1)) + log(1 + exp(-5))) / 2) < 1e-12);
    assert_true(figures.examples == 2 && isnan(figures.accuracy) && isnan(figures.hr10));
}

static void damaged_sums_are_refused(void **state)
{
    unsigned char bytes[DP_RANK_SUMS_BYTES];
    struct dp_rank_sums sums = {.top = {10, 20}, .users = 2, .examples = 1, .lists = 1}, back;
    const double none = (double)NAN;
    dp_rank_sums_pack(&sums, bytes);
    assert_true(dp_rank_sums_unpack(bytes, &back) && back.users == 2 && back.top[1] == 20);
    sums.correct = 2;
    dp_rank_sums_pack(&sums, bytes);
    assert_false(dp_rank_sums_unpack(bytes, &back));
    sums.correct = 0;
    memcpy(&sums.loss, &none, sizeof none);
    dp_rank_sums_pack(&sums, bytes);
    assert_false(dp_rank_sums_unpack(bytes, &back));
    sums.loss = 0, sums.users = UINT64_MAX;
    dp_rank_sums_pack(&sums, bytes);
    assert_false(dp_rank_sums_unpack(bytes, &back));
}

static void scores_by_factors(void **state)
{
    enum { U = 3, I = 5, W = 4 };
    float user[U * W], item[I * W], user_bias[U], item_bias[I], out[U * I];
    for (int i = 0; i < U * W; i++)
        user[i] = (float)draw(100) / 50 - 1;
    for (int i = 0; i < I * W; i++)
        item[i] = (float)draw(100) / 50 - 1;
    for (int i = 0; i < I; i++)
        item_bias[i] = (float)i, user_bias[i % U] = (float)(i % U) * 10;
    struct dp_factors f = {.width = W,
                           .user = user,
                           .item = item,
                           .user_bias = user_bias,
                           .item_bias = item_bias,
                           .bias = 0.25f};
    for (int biases = 1; biases >= 0; biases--) {
        dp_factors_scores(&f, U, I, out);
        for (int u = 0; u < U; u++)
            for (int i = 0; i < I; i++) {
                double want = biases ? (double)user_bias[u] + (double)item_bias[i] + 0.25 : 0;
                for (int c = 0; c < W; c++)
                    want += (double)user[u * W + c] * (double)item[i * W + c];
                assert_true(fabs((double)out[u * I + i] - want) < 1e-4);
            }
        f.user_bias = f.item_bias = NULL;
        f.bias = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_a_sort),
        cmocka_unit_test(fewer_items_than_k),
        cmocka_unit_test(parts_are_merged),
        cmocka_unit_test(a_model_that_only_ranks),
        cmocka_unit_test(damaged_sums_are_refused),
        cmocka_unit_test(scores_by_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
