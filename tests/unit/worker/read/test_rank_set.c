/* Goal: of a test set the pairs that can be ranked are there, each once, the others are counted; sampled items are drawn evenly
 * from those that a user did not meet. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/read/rank_set.h"

#include <stdio.h>
#include <string.h>

static struct dp_dataset_options options_of(const char *path, bool scored)
{
    return (struct dp_dataset_options){.path = path,
                                       .form = DP_FORM_PAIRS,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .negatives = 1,
                                       .scored = scored,
                                       .seed = 3,
                                       .batch = 8};
}

struct sets {
    struct dp_dataset *train, *test;
};

static void open_sets(const char *train, const char *test, struct sets *out)
{
    struct dp_dataset_options options = options_of(write_text("train", train), false);
    out->train = formats_open(&options);
    options = options_of(write_text("test", test), true);
    out->test = formats_open(&options);
}

static uint64_t item_of(const struct dp_rank_set *set, uint32_t place)
{
    return dp_unmix(set->items[place]);
}

static void what_can_be_ranked(void **state)
{
    struct dp_error err;
    struct sets sets;
    /* 9 and ann are strangers, 77 too; 1 has met 10. */
    open_sets("1 10\n1 11\n2 12\n2 10\n3 13\n3 x\n",
              "2 11\n1 13\n1 10\n9 10\n1 77\n1 12\n1 13\n2 x\nann 10\n", &sets);
    assert_int_equal(dp_dataset_rank(sets.test, sets.train, 3, true, &err), DP_OK);
    const struct dp_rank_set *set = dp_dataset_ranked(sets.test);
    assert_null(dp_dataset_ranked(sets.train));
    assert_int_equal(set->item_count, 5);
    assert_int_equal(set->user_count, 2);
    assert_int_equal(set->pairs, 4);
    assert_int_equal(set->unseen, 3);
    assert_int_equal(set->known, 1);
    const struct dp_rank_user *one = &set->user[0], *two = &set->user[1];
    assert_true(one->key == dp_mix(1) && two->key == dp_mix(2));
    assert_int_equal(one->test_count, 2);
    assert_true(item_of(set, one->test[0]) == 12 && item_of(set, one->test[1]) == 13);
    assert_int_equal(one->trained_count, 2);
    assert_true(item_of(set, one->trained[0]) == 10 && item_of(set, one->trained[1]) == 11);
    assert_int_equal(two->test_count, 2);
    assert_true(item_of(set, two->test[0]) == 11);
    uint32_t others[3];
    assert_int_equal(dp_rank_set_sample(set, one, 1, others), 1); /* x is left alone */
    assert_true(item_of(set, others[0]) > 13);
    open_sets("1 10\n2 11\n", "1 10\n3 10\n2 12\n", &sets);
    assert_int_equal(dp_dataset_rank(sets.test, sets.train, 3, true, &err), DP_DATA);
    assert_non_null(strstr(err.text,
                           "none of its 3 pairs can be ranked: of 2 the user or the item is not in the "
                           "training file, and 1 were trained on"));
}

/* Users of a round of 40 items each meet every third; the counts of what is sampled lie within 6 deviations of their mean. */
static void sampled_items_are_unmet(void **state)
{
    enum { USERS = 400, ITEMS = 40, SAMPLED = 7 };
    static char train[1 << 16], test[1 << 14];
    struct dp_error err;
    struct sets sets;
    uint32_t count[ITEMS] = {0}, others[SAMPLED], again[SAMPLED], n = 0;
    size_t len = 0, test_len = 0;
    for (uint32_t u = 0; u < USERS; u++) {
        for (uint32_t i = u % 3; i < ITEMS; i += 3)
            len += (size_t)snprintf(train + len, sizeof train - len, "%u %u\n", u, i);
        test_len += (size_t)snprintf(test + test_len, sizeof test - test_len, "%u %u\n", u,
                                     (u + 1) % 3 + 3 * (u % 13));
    }
    open_sets(train, test, &sets);
    assert_int_equal(dp_dataset_rank(sets.test, sets.train, SAMPLED, true, &err), DP_OK);
    const struct dp_rank_set *set = dp_dataset_ranked(sets.test);
    assert_int_equal(set->user_count, USERS);
    for (uint32_t u = 0; u < USERS; u++) {
        const struct dp_rank_user *user = &set->user[u];
        bool seen[ITEMS] = {false};
        assert_int_equal(dp_rank_set_sample(set, user, 0, others), SAMPLED);
        assert_int_equal(dp_rank_set_sample(set, user, 0, again), SAMPLED);
        assert_memory_equal(others, again, sizeof others);
        for (uint32_t i = 0; i < SAMPLED; i++, n++) {
            assert_true(others[i] < ITEMS && others[i] % 3 != dp_unmix(user->key) % 3 &&
                        others[i] != user->test[0]);
            assert_false(seen[others[i]]);
            seen[others[i]] = true;
            count[others[i]]++;
        }
    }
    double mean = (double)n / ITEMS;
    for (uint32_t i = 0; i < ITEMS; i++)
        assert_true((count[i] - mean) * (count[i] - mean) < 36 * mean);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(what_can_be_ranked),
        FILES_TEST(sampled_items_are_unmet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
