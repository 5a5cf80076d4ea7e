/* Goal: a data set of users and items has each pair once, in order; what a user met is what the training
 * file says. Method: every example of a small one; a file with pairs that stand twice. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <string.h>

static void every_pair(void **state)
{
    static const uint64_t users[] = {9, 2, 5}, items[] = {100, 7, 30, 8};
    const struct dp_cross cross = {users, items, 3, 4};
    for (int triples = 0; triples < 2; triples++) {
        enum dp_data_form form = triples ? DP_FORM_TRIPLES : DP_FORM_PAIRS;
        struct dp_dataset *data = NULL;
        assert_int_equal(dp_dataset_open_cross(&cross, form, 5, &data, NULL), DP_OK);
        assert_int_equal(dp_dataset_examples(data), 12);
        assert_int_equal(dp_dataset_batches(data), 3);
        struct dp_batch *b = formats_batch(data);
        for (uint32_t e = 0; e < 12; e++) {
            dp_dataset_fill(data, 0, e / 5, b);
            assert_int_equal(b->examples, e < 10 ? 5 : 2);
            assert_true(formats_key(b, 0, 0, e % 5, 0) == dp_mix(users[e / 4]));
            assert_true(formats_key(b, 1, 1, e % 5, 0) == dp_mix(items[e % 4]));
            if (triples)
                assert_true(formats_key(b, 1, 2, e % 5, 0) == dp_mix(items[e % 4]));
            assert_true(b->labels[e % 5] == 0);
        }
        dp_dataset_close(&data);
    }
}

struct taken {
    uint64_t item[8];
    size_t count;
};

static void take(void *context, uint64_t item)
{
    struct taken *t = context;
    assert_true(t->count < 8);
    t->item[t->count++] = item;
}

static void what_users_met(void **state)
{
    struct taken taken = {0};
    struct dp_dataset_options options = {
        .form = DP_FORM_PAIRS, .labels = DP_LABELS_BINARY, .scale = 1, .negatives = 1, .batch = 4};
    options.path = write_text("pairs", "7 30\n7 4\n2 11\n7 30\n900 11\n2 8\n");
    struct dp_dataset *data = formats_open(&options);
    assert_true(dp_dataset_interactions(data, 7, take, &taken));
    assert_true(taken.count == 2 && taken.item[0] == 4 && taken.item[1] == 30);
    taken.count = 0;
    assert_true(dp_dataset_interactions(data, 900, take, &taken));
    assert_true(taken.count == 1 && taken.item[0] == 11);
    assert_false(dp_dataset_interactions(data, 3, take, &taken));
    assert_false(dp_dataset_interactions(data, 1000, take, &taken));
    assert_int_equal(taken.count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {FILES_TEST(every_pair), FILES_TEST(what_users_met)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
