/* One worker without overlap pushes in one order: every cut of the key space gives the same rows, bit for
 * bit, and so the same scores. The scores are written with nine digits, which tell any two f32 apart. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <string.h>

static const char *scores(struct dp_place *place, const char *name, const char *servers, const char *shards)
{
    const char *run = dp_place_path(place, "%s", name), *out = dp_place_path(place, "%s.scores", name);
    (void)dp_place_try(place, 0, "downpour", "run", "--dir", run, "--servers", servers, "--shards", shards,
                       "--workers", "1", "--no-overlap", "--model", "mlp:64-32-10", "--train",
                       DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "16", "--rate", "0.005", "--epochs",
                       "2");
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", DP_DIGITS_TEST, "--out",
                       out);
    return dp_place_read(place, out, NULL);
}

static void same_again(void **state)
{
    struct dp_place *place = *state;
    assert_string_equal(scores(place, "first", "1", "1"), scores(place, "second", "1", "1"));
}

static void same_on_more_shards(void **state)
{
    struct dp_place *place = *state;
    const char *one = scores(place, "one", "1", "1");
    assert_string_equal(scores(place, "two", "1", "2"), one);
    assert_string_equal(scores(place, "four", "1", "4"), one);
}

static void same_on_more_servers(void **state)
{
    struct dp_place *place = *state;
    const char *one = scores(place, "one", "1", "1");
    assert_string_equal(scores(place, "two", "2", "1"), one);
    assert_string_equal(scores(place, "three", "3", "2"), one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(same_again, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(same_on_more_shards, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(same_on_more_servers, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("same bits", tests, NULL, NULL);
}
