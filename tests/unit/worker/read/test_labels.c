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

/* Which number class 0 has is found out by all labels, where only one number can be. */
static void bases(void **state)
{
    static const struct {
        enum dp_labels kind;
        uint32_t base;
        float labels[4]; /* up to 9 */
        int found;       /* -1: refused by map, -2: by settle */
        const char *why;
    } cases[] = {
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {1, 3, 2, 9}, 1, ""},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {1, 2, 9, 0}, 0, ""},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {0, 2, 9, 0}, 0, ""},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {0, 3, 9, 0}, -1, "label 3: expected a class from 0 to 2"},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {1, 3, 0, 9}, -1, "label 0: expected a class from 0 to 2"},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {1, 4, 9, 0}, -1, "or from 1 in all of the file"},
        {DP_LABELS_CLASS, DP_LABEL_BASE_AUTO, {3, 2, 9, 0}, -2, "labels of 3, but of neither 0 nor 1"},
        {DP_LABELS_CLASS, 0, {1, 3, 9, 0}, -1, "label 3: expected a class from 0 to 2"},
        {DP_LABELS_CLASS, 5, {5, 7, 9, 0}, 5, ""},
        {DP_LABELS_CLASS, 5, {4, 9, 0, 0}, -1, "label 4: expected a class from 5 to 7"},
        {DP_LABELS_CLASS, 5, {8, 9, 0, 0}, -1, "(data.label_base)"},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {1, 2, 2, 9}, 1, ""},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {1, -1, 9, 0}, 0, ""},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {1, 1, 9, 0}, 0, ""},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {1, 2, 0, 9}, -1, "label 0: expected 0 or 1"},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {-1, 2, 9, 0}, -1, "label 2: expected 0 or 1"},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {2, 2, 9, 0}, -2, "labels of 2, but of neither"},
        {DP_LABELS_BINARY, DP_LABEL_BASE_AUTO, {3, 9, 0, 0}, -1, "label 3"},
        {DP_LABELS_BINARY, 2, {2, 3, 9, 0}, 2, ""},
        {DP_LABELS_BINARY, 2, {1, 9, 0, 0}, -1, "expected 2 or 3, by the label base of 2 (--label-base"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_label_rule rule = {.kind = cases[i].kind, .classes = 3, .base = cases[i].base};
        struct dp_error err = {0};
        float out[4];
        uint32_t base = 77, n = 0;
        enum dp_status st = DP_OK;
        for (; st == DP_OK && n < 4 && cases[i].labels[n] < 9; n++)
            st = dp_label_map(&rule, cases[i].labels[n], &out[n], &err);
        if (st != (cases[i].found == -1 ? DP_DATA : DP_OK))
            fail_msg("case %zu: %s", i, err.text);
        if (st == DP_OK &&
            dp_label_settle(&rule, out, n, &base, &err) != (cases[i].found < 0 ? DP_DATA : DP_OK))
            fail_msg("case %zu: %s", i, err.text);
        assert_non_null(strstr(err.text, cases[i].why));
        if (cases[i].found < 0)
            continue;
        assert_int_equal(base, cases[i].found);
        for (uint32_t k = 0; k < n; k++) {
            float want = cases[i].labels[k] - (float)base;
            assert_true(out[k] == (want > 0 ? want : 0));
        }
    }
}

static void any(void **state)
{
    float out = 9;
    struct dp_label_rule rule = {.kind = DP_LABELS_ANY};
    assert_int_equal(map(&rule, -3.25f, &out), DP_OK);
    assert_true(out == -3.25f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(binary), cmocka_unit_test(classes),
                                       cmocka_unit_test(bases), cmocka_unit_test(any)};
    return cmocka_run_group_tests_name("labels", tests, NULL, NULL);
}
