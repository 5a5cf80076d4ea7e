/* Goal: what labels may be, kind by kind. */
#include "worker/read/labels.h"

#include "tests/lib/test.h"

#include <math.h>
#include <string.h>

static enum dp_status map(struct dp_label_rule *rule, float label, float *out)
{
    struct dp_error err = {0};
    enum dp_status st = dp_label_map(rule, label, out, &err);
    assert_true((st == DP_OK) == (err.text[0] == '\0'));
    return st;
}

static void binary(void **state)
{
    (void)state;
    float out = 9;
    struct dp_label_rule signs = {.kind = DP_LABELS_BINARY}, bits = {.kind = DP_LABELS_BINARY};
    assert_int_equal(map(&signs, -1, &out), DP_OK);
    assert_true(out == 0);
    assert_int_equal(map(&signs, 1, &out), DP_OK);
    assert_true(out == 1);
    assert_int_equal(map(&signs, 0, &out), DP_DATA);
    assert_int_equal(map(&bits, 0, &out), DP_OK);
    assert_true(out == 0);
    assert_int_equal(map(&bits, 1, &out), DP_OK);
    assert_int_equal(map(&bits, 2, &out), DP_DATA);
    assert_int_equal(map(&bits, 0.5f, &out), DP_DATA);
    assert_int_equal(map(&bits, -1, &out), DP_DATA);
}

static void classes(void **state)
{
    (void)state;
    float out = 9;
    struct dp_label_rule rule = {.kind = DP_LABELS_CLASS, .classes = 3};
    for (int c = 0; c < 3; c++) {
        assert_int_equal(map(&rule, (float)c, &out), DP_OK);
        assert_true(out == (float)c);
    }
    assert_int_equal(map(&rule, -0.0f, &out), DP_OK);
    assert_false(signbit(out));
    static const float bad[] = {-1, 3, 1.5f, 1e30f, -1e30f};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(map(&rule, bad[i], &out), DP_DATA);
}

static void any(void **state)
{
    (void)state;
    float out = 9;
    struct dp_label_rule rule = {.kind = DP_LABELS_ANY};
    assert_int_equal(map(&rule, -3.25f, &out), DP_OK);
    assert_true(out == -3.25f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(binary), cmocka_unit_test(classes),
                                       cmocka_unit_test(any)};
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
