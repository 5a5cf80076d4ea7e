/* Goal    a line holds what its model promises, at the ends of the range too. */
#include "tests/lib/test.h"
#include "worker/score/predict.h"

#include <stdlib.h>
#include <string.h>

static struct dp_label_scale scale;

static void assert_line(enum dp_labels labels, const float *output, uint32_t width, const char *want)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    dp_predict_line(stream, labels, &scale, output, width);
    (void)fclose(stream);
    assert_string_equal(text, want);
    free(text);
}

static void test_lines(void **state)
{
    const float zero = 0, high = 1e30f, low = -1e30f, third = 1.0f / 3;
    assert_line(DP_LABELS_BINARY, &zero, 1, "0.5\n");
    assert_line(DP_LABELS_BINARY, &high, 1, "1\n");
    assert_line(DP_LABELS_BINARY, &low, 1, "0\n");
    assert_line(DP_LABELS_ANY, &third, 1, "0.333333343\n");
    scale = (struct dp_label_scale){4000, 1000};
    assert_line(DP_LABELS_ANY, &zero, 1, "4000\n");
    assert_line(DP_LABELS_ANY, &(const float){-0.5f}, 1, "3500\n");
    assert_line(DP_LABELS_BINARY, &zero, 1, "0.5\n");
    const float equal[] = {5, 5, 5, 5}, far[] = {-1e30f, 1e30f, 0};
    assert_line(DP_LABELS_CLASS, equal, 4, "0.25 0.25 0.25 0.25\n");
    assert_line(DP_LABELS_CLASS, far, 3, "0 1 0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_lines)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
